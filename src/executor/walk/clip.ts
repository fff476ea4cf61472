/** Texts of others, cut to a length and made fit for a receipt. Pure. */

/** At most so many characters, without half ones; says how much is missing. */
export function clip(text: string, characters: number): string {
  if (text.length <= characters) return text.toWellFormed();
  return `${text.slice(0, characters).toWellFormed()}… (${text.length} characters in all)`;
}
