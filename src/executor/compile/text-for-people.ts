/** Taking a text for people apart: into plain words, which may be put together anew, and all else, which may not. Pure. */

/** Letters, with a hyphen or an apostrophe between them at most. */
const PLAIN = /^[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*$/u;
const AROUND = /^[([{<"'‘“„«]+|[)\]}>"'’”»“.,:;!?…]+$/gu;

export type TextPart = {
  readonly text: string;
  /** Whether it is one plain word. */
  readonly plain: boolean;
};

/**
 * The parts of a text. Neighbours that are no plain words (`DE89 3704 0044`) stay together as they stand: put together from pieces they
 * would be a value that nobody has written.
 */
export function textsInWords(text: string): readonly TextPart[] {
  const parts: { start: number; end: number; plain: boolean }[] = [];
  for (const { 0: word, index } of text.matchAll(/\S+/gu)) {
    const bare = word.replace(AROUND, '');
    if (bare === '') continue;
    const start = index + word.indexOf(bare);
    const plain = PLAIN.test(bare);
    const last = parts.at(-1);
    if (!plain && last && !last.plain) last.end = start + bare.length;
    else parts.push({ start, end: start + bare.length, plain });
  }
  return parts.map(({ start, end, plain }) => ({ text: text.slice(start, end), plain }));
}
