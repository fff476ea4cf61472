/** Splits a phrase into words, and recognises numbers and times of day among them. Pure. */
import { PhraseError } from './reading.ts';
import type { Time } from './time-of-day.ts';
import { NUMBERS, UNITS, type Unit } from './vocabulary.ts';

type Token = { readonly text: string; readonly word: string };

const TOKEN =
  /\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?|:\d{2}(?!\d)|\d{1,2}[/.]\d{1,2}\.?|\d+(?:\.\d+)?|[\p{L}']+|[^\s]/gu;

function tokensOf(text: string): Token[] {
  const plain = text
    .replace(/\b([ap])\.m\.?(?=\s|$|,)/gi, '$1m')
    .replace(/\bo['’]clock\b/gi, "o'clock")
    .replace(/\b(?:working|business) day(s?)\b/gi, 'workday$1')
    .replace(/\b(?:a )?quarter of an hour\b/gi, '15 minutes')
    .replace(/\b(?:an? |one )?fortnight\b/gi, '2 weeks')
    .replace(/\bfortnightly\b/gi, 'every 2 weeks')
    // `2026-12-01T09:00` is a day and a time.
    .replace(/\b(\d{4}-\d\d-\d\d)[tT](\d\d:\d\d)/g, '$1 $2');
  return (plain.match(TOKEN) ?? []).map((token) => ({ text: token, word: token.toLowerCase() }));
}

/** The hour in `at nine`. */
export function hourWord(word: string): number | undefined {
  const number = Object.hasOwn(NUMBERS, word) && word !== 'a' && word !== 'an' ? NUMBERS[word] : undefined;
  return number !== undefined && number <= 12 ? number : undefined;
}

/** The words of a phrase, read from first to last. */
export class Tokens {
  /** Index of the next word. */
  at = 0;
  readonly #list: readonly Token[];

  constructor(text: string) {
    this.#list = tokensOf(text);
  }

  isAtEnd(): boolean {
    return this.at >= this.#list.length;
  }

  /** The next word, which must exist. */
  peek(): Token {
    return this.#list[this.at]!;
  }

  /** Consumes the next word, which must exist. */
  take(): Token {
    return this.#list[this.at++]!;
  }

  /** The word `ahead` positions after the next one, in lower case; empty if there is none. */
  word(ahead = 0): string {
    return this.#list[this.at + ahead]?.word ?? '';
  }

  /** The word at an index, in lower case; empty if there is none. */
  wordAt(index: number): string {
    return this.#list[index]?.word ?? '';
  }

  /** Consumes the next word if it is one of these. */
  accept(...words: string[]): boolean {
    if (!words.includes(this.word())) return false;
    this.at++;
    return true;
  }

  /** A number in digits or as a word; `undefined` if there is none. Consumes nothing. */
  number(ahead = 0): number | undefined {
    const word = this.word(ahead);
    if (/^\d{1,6}(\.\d+)?$/.test(word)) return Number(word);
    return Object.hasOwn(NUMBERS, word) ? NUMBERS[word] : undefined;
  }

  /** A unit of time; consumes nothing. */
  unit(ahead = 0): Unit | undefined {
    const word = this.word(ahead);
    return Object.hasOwn(UNITS, word) ? UNITS[word] : undefined;
  }

  /** A day of a month in digits, with or without its ordinal ending. */
  ordinal(ahead: number): { value: number; length: number } | undefined {
    const word = this.word(ahead);
    if (!/^\d{1,2}$/.test(word)) return undefined;
    const hasEnding = ['st', 'nd', 'rd', 'th'].includes(this.word(ahead + 1));
    return { value: Number(word), length: hasEnding ? 2 : 1 };
  }

  /** Consumes a four-digit year, if there is one. */
  year(): { year?: number } {
    const skip = this.word() === ',' ? 1 : 0;
    if (!/^\d{4}$/.test(this.word(skip))) return {};
    const year = Number(this.word(skip));
    this.at += skip + 1;
    return { year };
  }

  /** Consumes one time of day; `undefined`, and nothing consumed, if there is none. */
  clock(): Time | undefined {
    const word = this.word();
    if (word === 'noon' || word === 'midnight') {
      this.at++;
      return { hour: word === 'noon' ? 12 : 0, minute: 0, second: 0, as: word };
    }
    const colon = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(word);
    const bare = colon ? undefined : /^\d{1,2}$/.test(word) ? Number(word) : hourWord(word);
    if (!colon && bare === undefined) return undefined;
    const [hour, minute, second] = colon ? colon.slice(1).map((part) => Number(part ?? 0)) : [bare!, 0, 0];
    if (hour! > 23 || minute! > 59 || second! > 59) {
      if (hour === 24 && minute === 0)
        throw new PhraseError(`"${word}" is not a time of day`, ['midnight'], { replaces: new RegExp(word) });
      throw new PhraseError(`"${word}" is not a time of day; hours are 0 to 23, minutes 0 to 59`);
    }
    this.at++;
    const half = this.word() === 'am' || this.word() === 'pm' ? this.take().word : undefined;
    this.accept("o'clock");
    if (half === undefined)
      return { hour: hour!, minute: minute!, second: second!, as: colon ? 'colon' : 'bare', word };
    if (hour! < 1 || hour! > 12)
      throw new PhraseError(`"${word} ${half}" is not a time of day; ${half} needs an hour from 1 to 12`);
    const written = colon ? `:${colon[2]}` : '';
    if (hour === 12)
      throw new PhraseError(
        `"12${written}${half}" is ambiguous: it can be noon or midnight`,
        minute === 0 ? ['noon', 'midnight'] : [`12${written}`, `0${written}`],
        { replaces: new RegExp(`${word} ?${half[0]}\\.?m\\.?`, 'i') },
      );
    return { hour: hour! + (half === 'pm' ? 12 : 0), minute: minute!, second: second!, as: 'half' };
  }

  /** The text since a word. */
  textSince(start: number): string {
    const words = this.#list.slice(start, this.at).map(({ text }) => text);
    return words.join(' ').replace(/(\d) (st|nd|rd|th)\b/g, '$1$2');
  }

  /** Matches the typed text since a word. */
  writtenSince(start: number): RegExp {
    const words = this.#list.slice(start, this.at).map(({ text }) => RegExp.escape(text));
    return new RegExp(words.join(' ?'), 'i');
  }
}
