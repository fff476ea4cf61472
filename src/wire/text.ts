/** Schemas for text that must survive every hop and every store unchanged. */
import { z } from 'zod';

/** Length in bytes of a string's UTF-8 form. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/**
 * Text kept byte for byte. A lone surrogate has no UTF-8 form, so it could not arrive unchanged: it is refused instead of
 * being replaced.
 */
export function verbatimText(maxBytes: number) {
  return z.string().superRefine((text, context) => {
    const bytes = utf8Bytes(text);
    if (bytes === 0) context.addIssue({ code: 'custom', message: 'must not be empty' });
    if (bytes > maxBytes)
      context.addIssue({ code: 'custom', message: `must be at most ${maxBytes} bytes of UTF-8, it has ${bytes}` });
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
