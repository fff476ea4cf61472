/**
 * Words from outside as a model is shown them: unchanged, but between marker lines whose code is derived from their
 * context and does not occur in them. So no text, whoever wrote it, can end its quotation and speak as Neo. Pure.
 */
import { createHash } from 'node:crypto';

/**
 * A code that none of the texts contains: 16 hex digits.
 *
 * @param seed makes the code differ from place to place; it never does so from time to time
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
