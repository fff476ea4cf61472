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
 * Any character of Unicode, half ones excepted: what fast-check's unit `binary` is, which takes a second of processor
 * time and 125 MB in each process that uses it, for a table of them all.
 */
export const anyCharacter = fc
  .nat(LAST - HALVES)
  .map((index) => String.fromCodePoint(index < FIRST_HALF ? index : index + HALVES), indexOf);
