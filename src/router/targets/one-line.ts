/** Text from a target, fit to stand in an error. */
import { hiddenBlanked } from '../../kit/text/hidden-characters.ts';
import { spokenText } from '../providers/spoken-text.ts';

const CHARACTERS = 600;

/** The beginning of a text on one line, without control characters, terminal colours and the given secrets. */
export function oneLine(text: string, secrets: readonly string[] = []): string {
  const clean = hiddenBlanked(spokenText(text, secrets)).replace(/\s+/g, ' ').trim();
  return clean.length > CHARACTERS ? `${clean.slice(0, CHARACTERS).toWellFormed()}…` : clean;
}
