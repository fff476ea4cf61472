/** Characters of random texts. */
import fc from 'fast-check';

const FIRST_HALF = 0xd800;
const HALVES = 0x800;
const LAST = 0x10ffff;

function indexOf(text: unknown): number {
  const code = typeof text === 'string' ? text.codePointAt(0) : undefined;
  if (code === undefined || text !== String.fromCodePoint(code) || (code >= FIRST_HALF && code < FIRST_HALF + HALVES))
    throw new Error('not one whole character');
  return code < FIRST_HALF ? code : code - HALVES;
}

/**
 * Any character of Unicode except lone surrogates. fast-check's unit `binary` is the same, but takes a second of
 * processor time and 125 MB for its table in each process.
 */
export const anyCharacter = fc
  .nat(LAST - HALVES)
  .map((index) => String.fromCodePoint(index < FIRST_HALF ? index : index + HALVES), indexOf);
