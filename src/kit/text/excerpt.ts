/** Short quotations of external text: a program's last lines, and the beginning of a text. */

export const QUOTED_LINES = 6;
const CHARACTERS = 400;

const FRAME = /^at .+:\d+:\d+\)?(?: \{)?$|^[{}^]$/;

/** Whether a line belongs to a stack trace. The message above it is what a reader needs. */
export const isStackFrame = (line: string): boolean => FRAME.test(line.trim());

/**
 * The last of these lines, joined in one well-formed line, without blank ones and stack frames.
 *
 * @param lines without secrets and control characters
 */
export function quoteLast(lines: readonly string[]): string {
  const messages = lines.map((line) => line.trim()).filter((line) => line !== '' && !isStackFrame(line));
  const quotation = messages.slice(-QUOTED_LINES).join(' | ');
  return quotation.length > CHARACTERS ? `…${quotation.slice(-CHARACTERS).toWellFormed()}` : quotation;
}

/** At most `characters` of a text, without lone surrogates; a cut text ends with its full length. */
export function clip(text: string, characters: number): string {
  if (text.length <= characters) return text.toWellFormed();
  return `${text.slice(0, characters).toWellFormed()}… (${text.length} characters in all)`;
}
