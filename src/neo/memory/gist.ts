/**
 * When two texts are the same memory. Pure.
 *
 * A gist leaves out only what cannot carry meaning: letter case of plain words, punctuation at the edges of words, articles, a few
 * filler words. It keeps numbers, negations, identifiers and the order of words, because "Alice manages Bob" and "Bob manages Alice"
 * are two memories, and to lose one of them is worse than to keep something twice. Paraphrases meet through their claim instead.
 */

const FILLERS = new Set(['the', 'a', 'an', 'really', 'very', 'just', 'also', 'that', 'please']);

const EDGE_PUNCTUATION = '.,;:!?…"\'`´“”„‘’«»()\\[\\]{}、。，；：！？「」『』';
/** A full stop or comma before a digit is part of the number. */
const LEADING = new RegExp(`^(?:[${EDGE_PUNCTUATION}](?!\\p{N}))+`, 'u');
const TRAILING = new RegExp(`[${EDGE_PUNCTUATION}]+$`, 'u');

/** Identifiers, addresses and hashes can differ in letter case alone: whatever has a digit, or a capital after a small letter. */
const CASE_COUNTS = /\p{N}|\p{Ll}\p{Lu}/u;

function gistOfWord(word: string): string {
  const bare = word.replace(LEADING, '').replace(TRAILING, '');
  return CASE_COUNTS.test(bare) ? bare : bare.toLowerCase().replace(/n[’']t$/, ' not');
}

/** The gist of a text: equal gists are one memory. Never empty for a text that is not blank. */
export function gistOf(text: string): string {
  const words = text.normalize('NFKC').trim().split(/\s+/u);
  const gist = words
    .map(gistOfWord)
    .filter((word) => word !== '' && !FILLERS.has(word))
    .join(' ');
  return gist === '' ? words.join(' ') : gist;
}
