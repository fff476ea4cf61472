/** What a process said last, fit to be quoted in an error that travels to the alarm's ledger. */
import { HIDDEN } from '../machines/machine.ts';

const LINES = 6;
const CHARACTERS = 400;
/** Shorter values stand in ordinary text by chance. */
const SHORTEST_SECRET = 6;

/**
 * The last lines of a process's output in one line, without control characters, terminal colours and the given secrets.
 */
export function lastWords(output: string, secrets: readonly string[]): string {
  let text = output;
  // The longest first: one may be a part of another.
  for (const secret of secrets.toSorted((one, other) => other.length - one.length)) {
    if (secret.length >= SHORTEST_SECRET) text = text.replaceAll(secret, HIDDEN);
  }
  const lines = text
    .replace(/\x1b\[[0-9;]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .map((line) => line.replace(/[\x00-\x1f\x7f]/g, ' ').trim())
    .filter((line) => line !== '');
  const said = lines.slice(-LINES).join(' | ');
  return said.length > CHARACTERS ? `…${said.slice(-CHARACTERS)}` : said;
}
