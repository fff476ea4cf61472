/** Text from a target, fit to stand in an error. */
import { HIDDEN } from '../machines/machine.ts';

const CHARACTERS = 600;
/** Shorter values stand in ordinary text by chance. */
const SHORTEST_SECRET = 6;

/** The beginning of a text on one line, without control characters, terminal colours and the given secrets. */
export function oneLine(text: string, secrets: readonly string[] = []): string {
  let clean = text;
  for (const secret of secrets.toSorted((one, other) => other.length - one.length)) {
    if (secret.length >= SHORTEST_SECRET) clean = clean.replaceAll(secret, HIDDEN);
  }
  clean = clean
    .replace(/\x1b\[[0-9;]*[A-Za-z]/g, '')
    .replace(/[\s\x00-\x1f\x7f]+/g, ' ')
    .trim()
    .toWellFormed();
  return clean.length > CHARACTERS ? `${clean.slice(0, CHARACTERS).toWellFormed()}…` : clean;
}
