/** Schemas for text that must survive every hop and every store unchanged. */
import { z } from 'zod';

/** Length in bytes of a string's UTF-8 form. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

const SENTENCE_END = /[.;:!?](?=\s)/g;

/**
 * The beginning of a text for people: it ends with a sentence where one ends in its second half, else with a word, and
 * says with an ellipsis that something is missing.
 */
export function beginningOf(text: string, characters: number): string {
  if (text.length <= characters) return text.toWellFormed();
  const start = text.slice(0, characters - 1);
  const ends = [...start.matchAll(SENTENCE_END)].map(({ index }) => index + 1);
  const end = ends.findLast((at) => at > characters / 2) ?? start.lastIndexOf(' ');
  return `${(end > characters / 2 ? start.slice(0, end) : start).toWellFormed()}…`;
}

/**
 * Text kept byte for byte. A lone surrogate has no UTF-8 form, so it could not arrive unchanged: it is refused instead
 * of being replaced.
 */
export function verbatimText(maxBytes: number) {
  const tooLong = (text: string) => `must be at most ${maxBytes} bytes of UTF-8, it has ${utf8Bytes(text)}`;
  // No text has fewer bytes than characters: the published schema says of the bound what JSON Schema can say.
  return z
    .string()
    .min(1, { error: 'must not be empty' })
    .max(maxBytes, { error: ({ input }) => tooLong(input as string), abort: true })
    .superRefine((text, context) => {
      if (utf8Bytes(text) > maxBytes) context.addIssue({ code: 'custom', message: tooLong(text) });
      if (!text.isWellFormed())
        context.addIssue({ code: 'custom', message: 'must be well-formed Unicode; it holds half of a surrogate pair' });
    });
}

/** A short human label: any characters but NUL, which some databases cannot store. */
export function shortText(maxCharacters: number) {
  return z
    .string()
    .max(maxCharacters)
    .refine(
      (text) => !text.includes('\0') && text.isWellFormed(),
      'must be well-formed Unicode without NUL characters',
    );
}
