/** What a process said last, fit to be quoted in an error that travels to the alarm's ledger. */
import { hiddenBlanked } from '../../text-kit/hidden-characters.ts';
import { spokenText } from './spoken-text.ts';

const LINES = 6;
const CHARACTERS = 400;

/** Lines of a stack trace say where in the program; what happened stands above them, and is what a reader needs. */
const FRAME = /^at .+:\d+:\d+\)?(?: \{)?$|^[{}^]$/;

/**
 * The last lines of a process's output in one well-formed line, without stack frames, control characters, terminal colours and the given secrets.
 */
export function lastWords(output: string, secrets: readonly string[]): string {
  const lines = spokenText(output, secrets)
    .split(/[\r\n]+/)
    .map((line) => hiddenBlanked(line).trim())
    .filter((line) => line !== '' && !FRAME.test(line));
  const said = lines.slice(-LINES).join(' | ');
  return said.length > CHARACTERS ? `…${said.slice(-CHARACTERS).toWellFormed()}` : said;
}
