/**
 * Schemas for text that every hop and every store must keep unchanged, and for instants (docs/reference/api.md, "Common
 * rules").
 */
import { z } from 'zod';
import { parseInstant } from './rfc3339.ts';

/** Length in bytes of a string's UTF-8 form. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/**
 * `text` without the characters of `set` at its end. An expression such as `/x+$/` takes quadratic time on a text of
 * many `x` that ends otherwise.
 */
export function withoutTrailing(text: string, set: string): string {
  let end = text.length;
  while (end > 0 && set.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

/** Lower-case hex digits: a digest, a key or a signature. */
export function hexDigits(digits: number) {
  return z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`), `must be ${digits} lower-case hex digits`);
}

const SENTENCE_END = /[.;:!?](?=\s)/g;

/**
 * The beginning of a text for people, with an ellipsis. It ends at a sentence end in its second half if there is one,
 * else at a word end.
 */
export function beginningOf(text: string, characters: number): string {
  if (text.length <= characters) return text.toWellFormed();
  const start = text.slice(0, characters - 1);
  const ends = [...start.matchAll(SENTENCE_END)].map(({ index }) => index + 1);
  const end = ends.findLast((at) => at > characters / 2) ?? start.lastIndexOf(' ');
  return `${(end > characters / 2 ? start.slice(0, end) : start).toWellFormed()}…`;
}

/**
 * Text that is kept byte for byte. A lone surrogate has no UTF-8 form and could not arrive unchanged, so it is refused.
 */
export function verbatimText(maxBytes: number) {
  const tooLong = (text: string) => `must be at most ${maxBytes} bytes of UTF-8, it has ${utf8Bytes(text)}`;
  // JSON Schema can only express a limit of characters. A text never has fewer bytes than characters.
  return z
    .string()
    .min(1, { error: 'must not be empty' })
    .max(maxBytes, { error: ({ input }) => tooLong(input as string), abort: true })
    .superRefine((text, context) => {
      if (utf8Bytes(text) > maxBytes) context.addIssue({ code: 'custom', message: tooLong(text) });
      if (!text.isWellFormed())
        context.addIssue({ code: 'custom', message: 'must be well-formed Unicode; it contains a lone surrogate' });
    });
}

/** A short label: any characters except NUL, which some databases cannot store. */
export function shortText(maxCharacters: number) {
  return z
    .string()
    .max(maxCharacters)
    .refine(
      (text) => !text.includes('\0') && text.isWellFormed(),
      'must be well-formed Unicode without NUL characters',
    );
}

/** An instant on the wire; parses to milliseconds since the epoch. */
export const instantSchema = z.string().transform((text, context) => {
  const epochMs = parseInstant(text);
  if (epochMs !== undefined) return epochMs;
  context.addIssue({
    code: 'custom',
    message: 'must be an RFC 3339 instant with an offset, such as 2026-06-15T08:10:00Z',
  });
  return z.NEVER;
});

/** Types of events, separated by commas. */
export const typeList = <Type extends string>(known: readonly Type[]) =>
  shortText(300)
    .refine(
      (text) => text.split(',').every((type) => known.includes(type as Type)),
      `must be types of ${known.join(', ')}, separated by commas`,
    )
    .transform((text) => text.split(',') as Type[]);
