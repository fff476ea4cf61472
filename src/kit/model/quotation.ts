/**
 * Quotes external text for a model: unchanged, between marker lines with a code. The code is derived from the context
 * and does not occur in the text. No text can therefore end its own quotation and imitate Neo. Pure.
 */
import { createHash } from 'node:crypto';

/**
 * A code that none of the texts contains: 16 hex digits.
 *
 * @param seed makes the code differ by context; the same context always has the same code
 */
export function codeFor(seed: readonly unknown[], texts: readonly string[]): string {
  for (let round = 0; ; round++) {
    const digest = createHash('sha256')
      .update(JSON.stringify([round, ...seed]))
      .digest('hex');
    const code = digest.slice(0, 16);
    if (!texts.some((text) => text.includes(code))) return code;
  }
}

/** A text between its marker lines. */
export function quoted(what: string, code: string, text: string): string {
  return `<<<${what} ${code}\n${text}\n${what} ${code}>>>`;
}
