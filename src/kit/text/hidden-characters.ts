/**
 * The table of characters that are invisible, change the direction of text, or control a terminal. An approver must see
 * exactly the text that is approved. A task or a file with such characters is therefore refused, and screens show them
 * by their code points. Pure.
 */

/**
 * Control characters (C0 except tab and line ends, DEL, C1), format characters, line separators, fillers and variation
 * selectors; also lone surrogates, private-use and unassigned code points. This includes every
 * `Default_Ignorable_Code_Point`. The runtime's Unicode tables define the assigned code points; newer ones are shown by
 * their code point.
 */
const HIDDEN =
  /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0]|\p{Variation_Selector}|\u034f/gu;

/** Spaces other than the ordinary one, which look the same. */
const STRANGE_BLANK = /(?! )\p{Zs}/gu;

const JOINERS = /^[\u200c\u200d]$/;
/** Scripts that need joiners for correct spelling; none has letters that look like Latin ones. */
const JOINED_SCRIPTS =
  /^[\p{sc=Arabic}\p{sc=Syriac}\p{sc=Devanagari}\p{sc=Bengali}\p{sc=Gurmukhi}\p{sc=Gujarati}\p{sc=Oriya}\p{sc=Tamil}\p{sc=Telugu}\p{sc=Kannada}\p{sc=Malayalam}\p{sc=Sinhala}\p{sc=Khmer}]$/u;
const PICTURE = /^(?:[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f)$/u;
const BEFORE_EMOJI_SELECTOR = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}]$/u;

/** An invisible character and its position. */
export type HiddenCharacter = {
  /** `U+200B` */
  readonly codePoint: string;
  /** In UTF-16 units from the beginning. */
  readonly index: number;
};

export const nameOf = (character: string) =>
  `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;

/** The code point that ends before an index; a lone surrogate in malformed text. */
function before(text: string, index: number): string {
  const pair = text.slice(Math.max(0, index - 2), index);
  return [...pair].at(-1) ?? '';
}

/** Whether a joiner or selector belongs to an emoji or to a script that needs it. */
function belongs(character: string, text: string, index: number): boolean {
  const previous = before(text, index);
  if (character === '\ufe0f') return BEFORE_EMOJI_SELECTOR.test(previous);
  if (!JOINERS.test(character)) return false;
  const next = String.fromCodePoint(text.codePointAt(index + 1) ?? 0);
  if (JOINED_SCRIPTS.test(previous)) return JOINED_SCRIPTS.test(next);
  return character === '\u200d' && PICTURE.test(previous) && PICTURE.test(next);
}

/** Every hidden character of a text; empty if the text has none. */
export function hiddenCharacters(text: string): readonly HiddenCharacter[] {
  return [...text.matchAll(HIDDEN)]
    .filter(({ 0: character, index }) => !belongs(character, text, index))
    .map(({ 0: character, index }) => ({ codePoint: nameOf(character), index }));
}

const codeOf = (character: string) => character.codePointAt(0)!.toString(16);
export const braced = (character: string) => `\\u{${codeOf(character)}}`;

/** The text with each hidden character written as `\u{200b}`. */
export function withHiddenShown(text: string, write: (character: string) => string = braced): string {
  return text.replace(HIDDEN, (character, index: number) =>
    belongs(character, text, index) ? character : write(character),
  );
}

/** The same for spaces that only look like the ordinary one. */
export function withBlanksShown(text: string): string {
  return text.replace(STRANGE_BLANK, braced);
}

/** Every character of the table, also joiners of emoji, and unusual spaces, without regard to their context. */
export function everyHiddenCharacter(text: string): readonly HiddenCharacter[] {
  const found = [...text.matchAll(HIDDEN), ...text.matchAll(STRANGE_BLANK)];
  return found
    .map(({ 0: character, index }) => ({ codePoint: nameOf(character), index }))
    .sort((one, other) => one.index - other.index);
}

/** One line with all hidden characters, line ends, tabs, joiners and unusual spaces written by their code points. */
export function laidOpen(text: string): string {
  const open = (character: string) => `\\u{${codeOf(character).padStart(4, '0')}}`;
  return text
    .replace(HIDDEN, open)
    .replace(STRANGE_BLANK, open)
    .replace(/[\t\n\r]/g, open);
}

const unit = (code: number) => `\\u${code.toString(16).padStart(4, '0')}`;

/**
 * Text from outside for a screen: nothing in it moves the cursor, is invisible or changes direction. Line feeds and
 * tabs stay; joiners stay in emoji and in scripts that need them.
 */
export function printable(text: string): string {
  return text
    .replace(HIDDEN, (character, index: number) => {
      if (belongs(character, text, index)) return character;
      return character.length === 1 ? unit(character.charCodeAt(0)) : braced(character);
    })
    .replaceAll('\r', unit(13));
}

/** The same on one line: line ends and tabs become visible. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** The same with a space for each such character, for texts that are quoted in a sentence. */
export function hiddenBlanked(text: string): string {
  return text.replace(HIDDEN, ' ').replace(/[\t\n\r]/g, ' ');
}

/** JSON that a terminal shows as it is, with the same meaning: hidden characters in strings become JSON escapes. */
export function jsonForTerminal(json: string): string {
  return json
    .replace(HIDDEN, (character) =>
      Array.from({ length: character.length }, (_, at) => unit(character.charCodeAt(at))).join(''),
    )
    .replaceAll('\r', ' ');
}

const LATIN = /\p{sc=Latin}/u;
const LOOKALIKES =
  /[\p{sc=Cyrillic}\p{sc=Greek}\p{sc=Armenian}\p{sc=Cherokee}\p{sc=Coptic}\p{sc=Lisu}\p{sc=Georgian}]/gu;

/**
 * Characters that make a word look like another one: letters of a second alphabet among Latin ones, and stylistic
 * variants of plain characters (full-width digits, mathematical letters).
 *
 * @returns their code points, each once
 */
export function lookalikes(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [word] of text.matchAll(/\S+/gu)) {
    if (LATIN.test(word)) for (const [character] of word.matchAll(LOOKALIKES)) found.add(nameOf(character));
    for (const character of word) {
      // Stylistic variants of plain letters and digits.
      if (character > '\u007f' && /^[A-Za-z0-9]+$/.test(character.normalize('NFKC'))) found.add(nameOf(character));
    }
  }
  return [...found];
}

/**
 * Letters of other scripts, each followed by the Latin letter that it resembles, and Latin letters that NFKD does not
 * decompose.
 */
const LATIN_FOR: ReadonlyMap<string, string> = new Map(
  [
    // Cyrillic
    'аaвbгrеeзeкkмmнhоoпnрpсcтtуyхxѵvіiїiјjѕsԁdһhҺhԛqԝwөoүyґrӏlбb',
    // Greek
    'αaβbγyεeζzηnιiκkλlμuνvοoρpστοoτtυuφpχxωwςsϲc',
    // Armenian, Georgian, Coptic and Lisu are rarer; only the plain ones.
    'օoսuոnհhզqցgքpյjⲟoⲥcⲣp',
    // Latin letters with a stroke, without a dot, open, turned, and small capitals
    'ıiłløođdħhŧtƀbƒfɑaɡgɩiʟlʀrᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkᴍmɴnᴏoᴘpꜱsᴛtᴜuᴠvᴡwʏyᴢzɛeʋvœoæaðdþp',
  ].flatMap((pairs) => {
    const letters = [...pairs];
    return letters.flatMap((letter, at): [string, string][] => (at % 2 === 0 ? [[letter, letters[at + 1]!]] : []));
  }),
);

/** Combining marks, and all characters without width on a screen. */
const UNSEEN = /[^\p{L}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point}/gu;

/** A name as it looks to a reader: Latin letters in their case, without invisible characters. */
export function inLatin(name: string): string {
  const seen = name.normalize('NFKD').replace(UNSEEN, '');
  return [...seen]
    .map((letter) => {
      const small = letter.toLowerCase();
      const latin = LATIN_FOR.get(small);
      if (latin === undefined) return letter;
      return small === letter ? latin : latin.toUpperCase();
    })
    .join('');
}

/** Removes colours and styles of a terminal (ECMA-48 control sequences). */
export function withoutColours(text: string): string {
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '');
}

const SHOWN = 8;

/** `U+200B (12 characters in), U+202E …` */
export function namesOf(hidden: readonly HiddenCharacter[]): string {
  const names = hidden.slice(0, SHOWN).map(({ codePoint, index }) => `${codePoint} at character ${index + 1}`);
  const left = hidden.length > SHOWN ? [`${hidden.length - SHOWN} more`] : [];
  return [...names, ...left].join(', ');
}

/** Why a text may mislead its reader, as a phrase that follows its name; `undefined` if it does not. */
export function misleading(text: string): string | undefined {
  const hidden = hiddenCharacters(text);
  if (hidden.length > 0) return `holds characters that cannot be seen: ${namesOf(hidden)}`;
  const alike = lookalikes(text);
  return alike.length === 0
    ? undefined
    : `holds characters that look like others: ${alike.slice(0, SHOWN).join(', ')}; a reader cannot recognise them`;
}
