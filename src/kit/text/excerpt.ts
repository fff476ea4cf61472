/** Texts of others, short enough to be quoted: what a program said last, and the beginning of anything. */

/** How many lines are quoted. */
export const QUOTED_LINES = 6;
const CHARACTERS = 400;

const FRAME = /^at .+:\d+:\d+\)?(?: \{)?$|^[{}^]$/;

/** Lines of a stack trace say where in the program; what happened stands above them, and is what a reader needs. */
export const isStackFrame = (line: string): boolean => FRAME.test(line.trim());

/**
 * The last of these lines in one well-formed line, without blank ones and stack frames.
 *
 * @param lines without secrets and control characters
 */
export function quoteLast(lines: readonly string[]): string {
  const told = lines.map((line) => line.trim()).filter((line) => line !== '' && !isStackFrame(line));
  const said = told.slice(-QUOTED_LINES).join(' | ');
  return said.length > CHARACTERS ? `…${said.slice(-CHARACTERS).toWellFormed()}` : said;
}

/** At most so many characters of a text, without half ones; says how many there are in all. */
export function clip(text: string, characters: number): string {
  if (text.length <= characters) return text.toWellFormed();
  return `${text.slice(0, characters).toWellFormed()}… (${text.length} characters in all)`;
}
