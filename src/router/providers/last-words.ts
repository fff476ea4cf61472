/** What a process said last, fit to be quoted in an error that travels to the alarm's ledger. */
import { hiddenBlanked } from '../../kit/text/hidden-characters.ts';
import { quoteLast } from '../../kit/text/last-words.ts';
import { spokenText } from './spoken-text.ts';

/**
 * The last lines of a process's output in one well-formed line, without stack frames, control characters, terminal colours and the given secrets.
 */
export function lastWords(output: string, secrets: readonly string[]): string {
  return quoteLast(
    spokenText(output, secrets)
      .split(/[\r\n]+/)
      .map(hiddenBlanked),
  );
}
