/**
 * Reading the names of tools as a person would: whatever letters, separators and invisible characters a name is written with, the words
 * that it shows are found. The table of letters is that of kit/text; pure.
 */
import { inLatin } from '../kit/text/hidden-characters.ts';

/** Signs that one letter is written with for another, each as one of them: `tr4n5fer` and `transfer`, `deIete` and `delete` are one. */
function skeleton(text: string): string {
  const signs: Readonly<Record<string, string>> = {
    '0': 'o',
    '3': 'e',
    '4': 'a',
    '5': 's',
    '7': 't',
    '@': 'a',
    $: 's',
  };
  return text
    .toLowerCase()
    .replace(/[034579@$]/g, (sign) => signs[sign] ?? sign)
    .replace(/[i1|!]/g, 'l')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w');
}

/** `simulateSwap`, `simulate_swap` and `simulate-swap` are two words each, `listANDtransfer` and `PAYNow` are what they show. */
function split(name: string): string[] {
  const words = name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu}{2,})(\p{Ll}{2,})/gu, (whole, capitals: string, rest: string) =>
      // `ANDtransfer` is a word in capitals and another; `PAYNow` begins its second word with the last capital.
      [whole, `${capitals} ${rest}`, `${capitals.slice(0, -1)} ${capitals.at(-1)}${rest}`].join(' '),
    )
    .toLowerCase()
    .split(/[^\p{L}\p{N}@$]+/u)
    .filter((word) => word !== '');
  // `p_a_y` spells a word.
  const spelt = words.join(' ').replace(/(?<=\b\w) (?=\w\b)/g, '');
  return [...new Set([...words, ...spelt.split(' ')])];
}

export type ReadName = {
  /** Its words in lower case, in order; where capitals can be read in several ways, all of these. */
  readonly words: readonly string[];
  /** Whether every character of it is printable ASCII: no letter can be another one's look-alike. */
  readonly isPlain: boolean;
  /** Whether it contains this, read with or without separators. @returns `reads` where other letters or signs stand for it */
  contains(part: string): 'is' | 'reads' | undefined;
};

export function readName(name: string): ReadName {
  const latin = inLatin(name);
  const folded = [name.normalize('NFKC').toLowerCase(), name.toLowerCase()];
  const joined = skeleton(latin).replace(/[^\p{L}\p{N}]+/gu, '');
  const words = split(latin);
  return {
    words: [...new Set([...words, ...words.map(skeleton)])],
    isPlain: /^[\x20-\x7e]*$/.test(name),
    contains(part) {
      if (folded.some((text) => text.includes(part.toLowerCase()))) return 'is';
      const wanted = skeleton(inLatin(part)).replace(/[^\p{L}\p{N}]+/gu, '');
      return wanted !== '' && joined.includes(wanted) ? 'reads' : undefined;
    },
  };
}
