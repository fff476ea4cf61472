/**
 * Characters that a reader cannot see, or that turn what he sees around. What a person approves must be what he reads, so they are never
 * passed over in silence: a task with them is refused, and where they have to be shown they are shown by their code points. Pure.
 */

/** Controls but tab and line ends, format characters, line separators, fillers, variation selectors, private and unassigned ones. */
const HIDDEN =
  /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0]|\p{Variation_Selector}|\u034f/gu;

const JOINERS = /^[\u200c\u200d]$/;
/** Scripts that need joiners to be written correctly; none has letters that look like Latin ones. */
const JOINED_SCRIPTS =
  /^[\p{sc=Arabic}\p{sc=Syriac}\p{sc=Devanagari}\p{sc=Bengali}\p{sc=Gurmukhi}\p{sc=Gujarati}\p{sc=Oriya}\p{sc=Tamil}\p{sc=Telugu}\p{sc=Kannada}\p{sc=Malayalam}\p{sc=Sinhala}\p{sc=Khmer}]$/u;
const PICTURE = /^(?:[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f)$/u;
const BEFORE_EMOJI_SELECTOR = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}]$/u;

/** A character that cannot be seen, and where it stands. */
export type HiddenCharacter = {
  /** `U+200B` */
  readonly codePoint: string;
  /** In UTF-16 units from the beginning. */
  readonly index: number;
};

const nameOf = (character: string) => `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;

/** The code point that ends before a place; half of one where the text is not well-formed. */
function before(text: string, index: number): string {
  const pair = text.slice(Math.max(0, index - 2), index);
  return [...pair].at(-1) ?? '';
}

/** Joiners and selectors that belong to an emoji or to a script that cannot do without. */
function belongs(character: string, text: string, index: number): boolean {
  const previous = before(text, index);
  if (character === '\ufe0f') return BEFORE_EMOJI_SELECTOR.test(previous);
  if (!JOINERS.test(character)) return false;
  const next = String.fromCodePoint(text.codePointAt(index + 1) ?? 0);
  if (JOINED_SCRIPTS.test(previous)) return JOINED_SCRIPTS.test(next);
  return character === '\u200d' && PICTURE.test(previous) && PICTURE.test(next);
}

/** Every hidden character of a text; none for text that reads as it is. */
export function hiddenCharacters(text: string): readonly HiddenCharacter[] {
  return [...text.matchAll(HIDDEN)]
    .filter(({ 0: character, index }) => !belongs(character, text, index))
    .map(({ 0: character, index }) => ({ codePoint: nameOf(character), index }));
}

/** The text with each hidden character written as `\u{200b}`. */
export function withHiddenShown(text: string): string {
  return text.replace(HIDDEN, (character, index: number) =>
    belongs(character, text, index) ? character : `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

const LATIN = /\p{sc=Latin}/u;
const LOOKALIKES =
  /[\p{sc=Cyrillic}\p{sc=Greek}\p{sc=Armenian}\p{sc=Cherokee}\p{sc=Coptic}\p{sc=Lisu}\p{sc=Georgian}]/gu;

/**
 * Characters that make a word look like another one: letters of a second alphabet among Latin ones, and forms that only look
 * different from plain characters (full-width digits, mathematical letters).
 *
 * @returns their code points, each once
 */
export function lookalikes(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [word] of text.matchAll(/\S+/gu)) {
    if (LATIN.test(word)) for (const [character] of word.matchAll(LOOKALIKES)) found.add(nameOf(character));
    for (const character of word) {
      // Plain letters and digits in forms of their own.
      if (character > '\u007f' && /^[A-Za-z0-9]+$/.test(character.normalize('NFKC'))) found.add(nameOf(character));
    }
  }
  return [...found];
}

const SHOWN = 8;

/** `U+200B (12 characters in), U+202E …` */
export function namesOf(hidden: readonly HiddenCharacter[]): string {
  const names = hidden.slice(0, SHOWN).map(({ codePoint, index }) => `${codePoint} at character ${index + 1}`);
  const left = hidden.length > SHOWN ? [`${hidden.length - SHOWN} more`] : [];
  return [...names, ...left].join(', ');
}
