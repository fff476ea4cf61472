/** Text that a program or a server wrote, before any of it is quoted. */
import { withoutColours } from '../../kit/text/hidden-characters.ts';
import { HIDDEN } from './redaction.ts';

/** Shorter values stand in ordinary text by chance. */
const SHORTEST_SECRET = 6;

/** Without the given secrets and without terminal colours; half a character becomes U+FFFD, for no file and no answer can hold it. */
export function spokenText(text: string, secrets: readonly string[]): string {
  let clean = text;
  // The longest first: one may be a part of another.
  for (const secret of secrets.toSorted((one, other) => other.length - one.length)) {
    if (secret.length >= SHORTEST_SECRET) clean = clean.replaceAll(secret, HIDDEN);
  }
  return withoutColours(clean).toWellFormed();
}
