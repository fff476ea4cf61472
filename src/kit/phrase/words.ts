/**
 * The words of a phrase: reads a text part by part (a day, times, how often, how long) and refuses what it does not
 * understand. What the parts mean together is not its matter. Pure.
 */
import { nearestOf } from '../../wire/edit-distance.ts';
import { PhraseError } from './reading.ts';
import { calendarDay, type HalfDay, hourOf, type Time } from './time-of-day.ts';
import {
  ABBREVIATIONS,
  FREQUENCIES,
  HALF_DAYS,
  KNOWN_WORDS,
  MONTH_WORDS,
  MONTHS,
  NUMBERS,
  UNITS,
  type Unit,
  WEEKDAY_WORDS,
  WEEKDAYS,
} from './vocabulary.ts';

type Token = { readonly text: string; readonly word: string };

export type Day =
  | { readonly kind: 'offset'; readonly days: number; readonly word: string }
  | { readonly kind: 'weekday'; readonly weekday: number; readonly week?: 'this' | 'next' | 'coming' | 'next week' }
  | { readonly kind: 'date'; readonly year?: number; readonly month: number; readonly day: number };

/** What was found in a phrase, part by part. */
export class Parts {
  day: Day | undefined;
  readonly times: Time[] = [];
  halfDay: HalfDay | undefined;
  /** `in 2 hours and 5 minutes`. */
  ahead: { readonly amount: number; readonly unit: Unit }[] | undefined;
  repeat: { readonly amount: number; readonly unit: Unit; readonly word: string } | undefined;
  readonly weekdays = new Set<number>();
  readonly monthDays: number[] = [];
  /** Whole hours, both included. */
  hours: { readonly from: number; readonly to: number } | undefined;
  /** Of `every hour at :15`. */
  minutePast: number | undefined;
}

const TOKEN =
  /\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?|:\d{2}(?!\d)|\d{1,2}[/.]\d{1,2}\.?|\d+(?:\.\d+)?|[\p{L}']+|[^\s]/gu;

function tokensOf(text: string): Token[] {
  const plain = text
    .replace(/\b([ap])\.m\.?(?=\s|$|,)/gi, '$1m')
    .replace(/\bo['’]clock\b/gi, "o'clock")
    // `2026-12-01T09:00` is a day and a time.
    .replace(/\b(\d{4}-\d\d-\d\d)[tT](\d\d:\d\d)/g, '$1 $2');
  return (plain.match(TOKEN) ?? []).map((token) => ({ text: token, word: token.toLowerCase() }));
}

const literally = (text: string) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));

const hasPassed = (text: string) => new PhraseError(`"${text}" has passed, and an alarm is set for what comes`);

export class PhraseReader {
  readonly parts = new Parts();
  readonly #tokens: readonly Token[];
  readonly #text: string;
  #at = 0;
  /** What was read, in its order: days (`D`) and times of the day (`T`), neighbours as one. */
  #order = '';
  /** How many times of the day stood before the part of the day. */
  #timesBeforeHalf = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  read(): Parts {
    while (this.#at < this.#tokens.length) {
      if (this.#accept(',', 'and', '@', "o'clock", 'on', 'at')) continue;
      if (this.#every() || this.#ahead() || this.#hours() || this.#date() || this.#dayWord() || this.#half()) continue;
      if (this.#monthDay() || this.#bareDuration() || this.#time()) continue;
      if (this.#accept('the', 'of')) continue;
      throw this.#unknown();
    }
    const { halfDay, times } = this.parts;
    if (this.#order.includes('DTD'))
      throw new PhraseError(`"${this.#text}" names days, a time and days again; set an alarm for each`);
    if (halfDay !== undefined && times.length > 1 && this.#timesBeforeHalf > 0)
      throw new PhraseError(
        `"${this.#text}" does not say which times are ${halfDay === 'night' ? 'at' : 'in the'} ${halfDay}; write each as in 9:00 and 21:00`,
      );
    return this.parts;
  }

  #saw(part: 'D' | 'T'): void {
    if (!this.#order.endsWith(part)) this.#order += part;
  }

  #word(ahead = 0): string {
    return this.#tokens[this.#at + ahead]?.word ?? '';
  }

  #accept(...words: string[]): boolean {
    if (!words.includes(this.#word())) return false;
    this.#at++;
    return true;
  }

  #unknown(): PhraseError {
    const { text, word } = this.#tokens[this.#at]!;
    if (ABBREVIATIONS.has(word))
      return new PhraseError(`"${text}" can be more than one time zone; name one such as America/New_York, or UTC`);
    if (word === 'now') return new PhraseError('an alarm is set for what comes', ['in 1 second']);
    const ordinals = ['first', 'second', 'third', 'fourth', 'last'];
    if (ordinals.includes(word) && WEEKDAY_WORDS.has(this.#word(1)))
      return new PhraseError(`"${this.#text}": a series cannot say which ${this.#word(1)} of a month is meant`);
    if (word === 'yesterday' || word === 'ago' || word === 'last') return hasPassed(this.#text);
    const nearest = /^\p{L}{3,}$/u.test(word) ? nearestOf(word, KNOWN_WORDS) : undefined;
    if (nearest !== undefined && nearest !== word)
      return new PhraseError(`"${text}" is not understood; did you mean "${nearest}"?`, [], { isUnknown: true });
    return new PhraseError(
      `"${text}" is not understood in "${this.#text}"; say it as in "tomorrow 9am", "in 2 hours", "every weekday at 9:00" or "2026-12-01 09:00"`,
      [],
      { isUnknown: true },
    );
  }

  /** A number in digits or as a word; `undefined` where there is none. Consumes nothing. */
  #number(ahead = 0): number | undefined {
    const word = this.#word(ahead);
    if (/^\d{1,6}(\.\d+)?$/.test(word)) return Number(word);
    return Object.hasOwn(NUMBERS, word) ? NUMBERS[word] : undefined;
  }

  #unit(ahead = 0): Unit | undefined {
    const word = this.#word(ahead);
    return Object.hasOwn(UNITS, word) ? UNITS[word] : undefined;
  }

  #setDay(day: Day): true {
    if (this.parts.day !== undefined) throw new PhraseError(`"${this.#text}" names two days; name one`);
    this.#saw('D');
    this.parts.day = day;
    return true;
  }

  #setRepeat(amount: number, unit: Unit, word: string): true {
    if (this.parts.repeat !== undefined) throw new PhraseError(`"${this.#text}" says twice how often; say it once`);
    this.parts.repeat = { amount, unit, word };
    return true;
  }

  /** `in 2 hours and 5 minutes`, `in half an hour`, `2 hours from now`. */
  #ahead(): boolean {
    const isIn = this.#word() === 'in' && this.#word(1) !== 'the';
    const start = this.#at;
    if (isIn) this.#at++;
    const found: { amount: number; unit: Unit }[] = [];
    for (;;) {
      if (found.length > 0 && this.#word() === 'and') this.#at++;
      const isHalf = this.#word() === 'half' && (this.#word(1) === 'a' || this.#word(1) === 'an');
      const amount = isHalf ? 0.5 : this.#number();
      const unit = this.#unit(isHalf ? 2 : 1);
      if (amount === undefined || unit === undefined) {
        if (this.#tokens[this.#at - 1]?.word === 'and' && found.length > 0) this.#at--;
        break;
      }
      found.push({ amount, unit });
      this.#at += isHalf ? 3 : 2;
      // `an hour and a half`
      if (this.#word() === 'and' && this.#word(1) === 'a' && this.#word(2) === 'half') {
        found.push({ amount: 0.5, unit });
        this.#at += 3;
      }
    }
    const isFromNow = found.length > 0 && this.#word() === 'from' && this.#word(1) === 'now';
    if (isFromNow) this.#at += 2;
    if (found.length > 0 && (isIn || isFromNow)) {
      if (this.parts.ahead !== undefined) throw new PhraseError(`"${this.#text}" says twice how long; say it once`);
      this.parts.ahead = found;
      return true;
    }
    this.#at = start;
    return false;
  }

  /** `2 hours`, which does not say from when; `17h`, which is a time for some. */
  #bareDuration(): boolean {
    const amount = this.#number();
    const unit = this.#unit(1);
    if (amount === undefined || unit === undefined || this.#word() === 'a' || this.#word() === 'an') return false;
    if (this.#word(2) === 'ago') throw hasPassed(this.#text);
    const said = `${this.#word()} ${this.#word(1)}`;
    const isHour = this.#word(1) === 'h' && Number.isInteger(amount) && amount < 24;
    const choices = [`in ${said}`, ...(isHour ? [`${amount}:00`] : [])];
    throw new PhraseError(`"${said}" does not say from when`, choices, {
      replaces: new RegExp(`(?:\\bat )?\\b${this.#word()} ?${this.#word(1)}\\b`, 'i'),
    });
  }

  #every(): boolean {
    const frequency = Object.hasOwn(FREQUENCIES, this.#word()) ? FREQUENCIES[this.#word()] : undefined;
    if (frequency !== undefined) {
      const { word } = this.#tokens[this.#at++]!;
      return this.#setRepeat(1, frequency, word);
    }
    if (this.#accept('weekdays', 'workdays')) return this.#onWeekdays([1, 2, 3, 4, 5]);
    if (this.#accept('weekends')) return this.#onWeekdays([6, 0]);
    const plural = this.#word().endsWith('s') ? WEEKDAY_WORDS.get(this.#word().slice(0, -1)) : undefined;
    if (plural !== undefined && WEEKDAYS[plural] === this.#word().slice(0, -1)) {
      this.#at++;
      return this.#onWeekdays([plural, ...this.#moreWeekdays(plural)]);
    }
    if (this.#word() !== 'every' && this.#word() !== 'each') return false;
    this.#at++;
    if (this.#accept('weekday', 'workday')) return this.#onWeekdays([1, 2, 3, 4, 5]);
    if (this.#word() === 'working' && this.#word(1) === 'day') {
      this.#at += 2;
      return this.#onWeekdays([1, 2, 3, 4, 5]);
    }
    if (this.#accept('weekend')) return this.#onWeekdays([6, 0]);
    const weekday = WEEKDAY_WORDS.get(this.#word());
    if (weekday !== undefined) {
      this.#at++;
      return this.#onWeekdays([weekday, ...this.#moreWeekdays(weekday)]);
    }
    if (Object.hasOwn(HALF_DAYS, this.#word())) {
      // The part of the day is read again for the hour.
      return this.#setRepeat(1, 'day', this.#word());
    }
    const isOther = this.#accept('other', 'second');
    const amount = isOther ? 2 : this.#number();
    const unit = this.#unit(amount === undefined || isOther ? 0 : 1);
    if (unit !== undefined) {
      this.#at += amount === undefined || isOther ? 1 : 2;
      return this.#setRepeat(amount ?? 1, unit, unit);
    }
    if (isOther)
      throw new PhraseError(`"${this.#text}" cannot be kept on the calendar: a series has every one or none`);
    // `every 24 december`, `every 1st of the month`.
    const before = this.#at;
    if (this.#date()) return this.#setRepeat(1, 'year', 'year');
    this.#at = before;
    if (this.#monthDay()) return this.#setRepeat(1, 'month', 'month');
    if (this.#at >= this.#tokens.length)
      throw new PhraseError(`"${this.#text}" does not say how often`, ['every day at 9:00', 'every hour']);
    throw this.#unknown();
  }

  #onWeekdays(weekdays: readonly number[]): true {
    for (const weekday of weekdays) this.parts.weekdays.add(weekday);
    this.#saw('D');
    const { repeat } = this.parts;
    if (repeat === undefined) return this.#setRepeat(1, 'week', 'week');
    return true;
  }

  /** The days after a first one: `, wednesday and friday`, `to friday`. */
  #moreWeekdays(first: number): number[] {
    const more: number[] = [];
    const dayAt = (ahead: number) =>
      WEEKDAY_WORDS.get(this.#word(ahead)) ?? WEEKDAY_WORDS.get(this.#word(ahead).replace(/s$/, ''));
    if (['to', 'through', 'till', '-', '–'].includes(this.#word()) && dayAt(1) !== undefined) {
      const last = dayAt(1)!;
      for (let day = first; day !== last; day = (day + 1) % 7) more.push((day + 1) % 7);
      this.#at += 2;
      return more;
    }
    for (;;) {
      let skip = 0;
      while ([',', 'and', '&', 'or'].includes(this.#word(skip))) skip++;
      const day = skip > 0 ? dayAt(skip) : undefined;
      if (day === undefined) return more;
      more.push(day);
      this.#at += skip + 1;
    }
  }

  /** `from 9 to 17`, `between 9:00 and 17:00`: whole hours. */
  #hours(): boolean {
    const start = this.#at;
    if (!this.#accept('from', 'between')) return false;
    const from = this.#clock();
    const isJoined = this.#accept('to', 'and', 'until', 'till', '-', '–');
    const to = isJoined ? this.#clock() : undefined;
    if (from === undefined || to === undefined) {
      this.#at = start;
      throw this.#unknown();
    }
    if (this.parts.hours !== undefined) throw new PhraseError(`"${this.#text}" names two spans of hours; name one`);
    if (from.minute !== 0 || to.minute !== 0)
      throw new PhraseError(`"${this.#text}": hours of the day begin and end with a whole hour, as in "from 9 to 17"`);
    const [first, last] = [from, to].map((time) => (time.as === 'bare' ? time.hour : hourOf(time, undefined))) as [
      number,
      number,
    ];
    // `1 to 5`, `1 to 5pm`: the first hour can be one of the morning or of the afternoon.
    const untilEvening = to.as === 'half' ? last : last + 12;
    const isEarly = to.as === 'half' ? first > 0 && first + 12 < last : first > 0 && first <= 8 && first < last;
    if (from.as === 'bare' && isEarly && (to.as === 'half' || (to.as === 'bare' && last < 12)))
      throw new PhraseError(
        `"${this.#text}": hours from ${first} on can be two spans`,
        [`from ${first}:00 to ${last}:00`, `from ${first + 12}:00 to ${untilEvening}:00`],
        { replaces: this.#writtenSince(start) },
      );
    if (first >= last)
      throw new PhraseError(`"${this.#text}": the first hour must be before the last one, as in "from 9 to 17"`);
    this.parts.hours = { from: first, to: last };
    return true;
  }

  #dayWord(): boolean {
    const word = this.#word();
    if (word === 'today' || word === 'tomorrow') {
      this.#at++;
      return this.#setDay({ kind: 'offset', days: word === 'today' ? 0 : 1, word });
    }
    if (word === 'tonight') {
      this.#at++;
      this.#setHalf('night');
      return this.#setDay({ kind: 'offset', days: 0, word });
    }
    const skip = word === 'the' ? 1 : 0;
    if (this.#word(skip) === 'day' && this.#word(skip + 1) === 'after' && this.#word(skip + 2) === 'tomorrow') {
      this.#at += skip + 3;
      return this.#setDay({ kind: 'offset', days: 2, word: 'the day after tomorrow' });
    }
    const isNamed = word === 'this' || word === 'next' || word === 'coming';
    const weekday = WEEKDAY_WORDS.get(this.#word(isNamed ? 1 : 0));
    if (weekday !== undefined) {
      this.#at += isNamed ? 2 : 1;
      const isRange = ['to', 'through'].includes(this.#word()) && WEEKDAY_WORDS.has(this.#word(1));
      if (isRange && this.parts.repeat === undefined)
        throw new PhraseError(`"${this.#text}" names several days`, [`every ${this.#text}`]);
      if (!isNamed && ['week', 'hour'].includes(this.parts.repeat?.unit ?? '')) {
        this.#saw('D');
        for (const day of [weekday, ...this.#moreWeekdays(weekday)]) this.parts.weekdays.add(day);
        return true;
      }
      const isNextWeek = this.#word() === 'next' && this.#word(1) === 'week';
      if (isNextWeek && !isNamed) this.#at += 2;
      const week = isNamed ? word : isNextWeek ? ('next week' as const) : undefined;
      return this.#setDay({ kind: 'weekday', weekday, ...(week === undefined ? {} : { week }) });
    }
    if (word === 'this' && Object.hasOwn(HALF_DAYS, this.#word(1))) {
      this.#at++;
      return this.#setDay({ kind: 'offset', days: 0, word: `this ${this.#word()}` });
    }
    return false;
  }

  #setHalf(half: HalfDay): true {
    const { halfDay } = this.parts;
    if (halfDay !== undefined && halfDay !== half)
      throw new PhraseError(`"${this.#text}" names two parts of the day; name one`);
    this.parts.halfDay = half;
    this.#timesBeforeHalf = this.parts.times.length;
    return true;
  }

  /** `in the morning`, `evening`. */
  #half(): boolean {
    const skip = this.#word() === 'in' && this.#word(1) === 'the' ? 2 : 0;
    const half = Object.hasOwn(HALF_DAYS, this.#word(skip)) ? HALF_DAYS[this.#word(skip)] : undefined;
    if (half === undefined) return false;
    this.#at += skip + 1;
    return this.#setHalf(half);
  }

  /** What was typed of the words since one. */
  #writtenSince(start: number): RegExp {
    const words = this.#tokens.slice(start, this.#at).map(({ text }) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(words.join(' ?'), 'i');
  }

  /** `and 10` beside a day of the month: a day for some, an hour for others. @throws PhraseError for one */
  #refuseDayOrHour(joint: number, number: number): void {
    if (!['and', ','].includes(this.#word(joint)) || !/^\d{1,2}$/.test(this.#word(number))) return;
    if (number > joint && ['am', 'pm', "o'clock", 'st', 'nd', 'rd', 'th'].includes(this.#word(number + 1))) return;
    const said = this.#word(number);
    throw new PhraseError(
      `"${said}" in "${this.#text}" can be a day or an hour; write an hour as ${said}:00, and set an alarm for each day`,
    );
  }

  #date(): boolean {
    const word = this.#word();
    const iso = /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})$/.exec(word);
    if (iso) {
      this.#at++;
      return this.#setDay({ kind: 'date', year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) });
    }
    const numeric = /^(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{4}))?\.?$/.exec(word);
    if (numeric) return this.#numericDate(numeric as unknown as [string, string, string, string, string | undefined]);
    const skip = this.#word() === 'the' ? 1 : 0;
    const month = MONTH_WORDS.get(word);
    if (month !== undefined) {
      const day = this.#ordinal(1);
      if (day === undefined)
        throw new PhraseError(`"${this.#text}" names a month without a day; write one such as "${MONTHS[month]} 1"`);
      this.#at += 1 + day.length;
      const year = this.#year();
      this.#refuseDayOrHour(0, 1);
      return this.#setDay({ kind: 'date', month: month + 1, day: day.value, ...year });
    }
    const day = this.#ordinal(skip);
    if (day === undefined) return false;
    const of = this.#word(skip + day.length) === 'of' ? 1 : 0;
    const named = MONTH_WORDS.get(this.#word(skip + day.length + of));
    if (named === undefined) return false;
    this.#refuseDayOrHour(-1, -2);
    this.#at += skip + day.length + of + 1;
    return this.#setDay({ kind: 'date', month: named + 1, day: day.value, ...this.#year() });
  }

  #numericDate([text, one, mark, other, year]: [string, string, string, string, string | undefined]): boolean {
    const [first, second] = [Number(one), Number(other)];
    const isDay = (month: number, date: number) => calendarDay(2024, month, date) !== undefined;
    // `9.30` is a time for some and a day for others; `24.12` and `24.12.` are days.
    const isTime = first < 24 && second < 60 && other.length === 2 && !text.endsWith('.');
    if (mark === '.' && year === undefined && isTime)
      throw new PhraseError(`"${text}" can be a time or a day`, [
        `${first}:${other}`,
        ...(isDay(second, first) ? [`${MONTHS[second - 1]} ${first}`] : []),
      ]);
    if (mark === '-') throw new PhraseError(`"${text}" can be read in several ways; write the year first: 2026-12-01`);
    const write = (month: number, day: number) =>
      `${year === undefined ? '' : `${year} `}${MONTHS[month - 1]} ${day}`.replace(/^(\d{4}) (.*)$/, '$2 $1');
    if (first <= 12 && second <= 12 && first !== second)
      throw new PhraseError(`"${text}" can be two days`, [write(first, second), write(second, first)], {
        replaces: literally(text),
      });
    const [month, day] = first > 12 ? [second, first] : [first, second];
    this.#at++;
    return this.#setDay({ kind: 'date', month, day, ...(year === undefined ? {} : { year: Number(year) }) });
  }

  /** A day of a month in digits, with or without its ending. */
  #ordinal(ahead: number): { value: number; length: number } | undefined {
    const word = this.#word(ahead);
    if (!/^\d{1,2}$/.test(word)) return undefined;
    const hasEnding = ['st', 'nd', 'rd', 'th'].includes(this.#word(ahead + 1));
    return { value: Number(word), length: hasEnding ? 2 : 1 };
  }

  #year(): { year?: number } {
    const skip = this.#word() === ',' ? 1 : 0;
    if (!/^\d{4}$/.test(this.#word(skip))) return {};
    const year = Number(this.#word(skip));
    this.#at += skip + 1;
    return { year };
  }

  /** `the 1st`, `the 1st and 15th of the month`; only with its ending. */
  #monthDay(): boolean {
    const skip = this.#word() === 'the' ? 1 : 0;
    const day = this.#ordinal(skip);
    if (day?.length !== 2) return false;
    this.#at += skip + day.length;
    if (day.value < 1 || day.value > 31) throw new PhraseError(`no month has a day ${day.value}`);
    this.parts.monthDays.push(day.value);
    this.#saw('D');
    this.#refuseDayOrHour(0, 1);
    if (this.#word() === 'of' && ['the', 'every', 'each'].includes(this.#word(1)) && this.#word(2) === 'month') {
      const isEvery = this.#word(1) !== 'the';
      this.#at += 3;
      if (isEvery) this.#setRepeat(1, 'month', 'month');
    }
    return true;
  }

  /** One time of the day; `undefined` where there is none, and nothing is consumed. */
  #clock(): Time | undefined {
    const word = this.#word();
    if (word === 'noon' || word === 'midnight') {
      this.#at++;
      return { hour: word === 'noon' ? 12 : 0, minute: 0, second: 0, as: word };
    }
    const colon = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(word);
    const bare = colon ? undefined : /^\d{1,2}$/.test(word) ? Number(word) : this.#hourWord(word);
    if (!colon && bare === undefined) return undefined;
    const [hour, minute, second] = colon ? colon.slice(1).map((part) => Number(part ?? 0)) : [bare!, 0, 0];
    if (hour! > 23 || minute! > 59 || second! > 59) {
      const remedy = hour === 24 && minute === 0 ? 'write "midnight"' : 'hours go from 0 to 23, minutes to 59';
      throw new PhraseError(`"${word}" is no time of the day; ${remedy}`);
    }
    this.#at++;
    const half = this.#word() === 'am' || this.#word() === 'pm' ? this.#tokens[this.#at++]!.word : undefined;
    this.#accept("o'clock");
    if (half === undefined)
      return { hour: hour!, minute: minute!, second: second!, as: colon ? 'colon' : 'bare', word };
    if (hour! < 1 || hour! > 12)
      throw new PhraseError(`"${word} ${half}" is no time of the day; ${half} goes with 1 to 12`);
    const written = colon ? `:${colon[2]}` : '';
    if (hour === 12)
      throw new PhraseError(
        `"12${written}${half}" is noon for some and midnight for others`,
        minute === 0 ? ['noon', 'midnight'] : [`12${written}`, `0${written}`],
        { replaces: new RegExp(`${word} ?${half[0]}\\.?m\\.?`, 'i') },
      );
    return { hour: hour! + (half === 'pm' ? 12 : 0), minute: minute!, second: second!, as: 'half' };
  }

  /** `nine` of `at nine`. */
  #hourWord(word: string): number | undefined {
    const number = Object.hasOwn(NUMBERS, word) && word !== 'a' && word !== 'an' ? NUMBERS[word] : undefined;
    return number !== undefined && number <= 12 ? number : undefined;
  }

  #time(): boolean {
    const past = /^:(\d{2})$/.exec(this.#word());
    if (past && this.parts.repeat?.unit === 'hour' && Number(past[1]) < 60) {
      this.#at++;
      const { minutePast } = this.parts;
      const minute = Number(past[1]);
      if (minutePast !== undefined && minutePast !== minute)
        throw new PhraseError(`"${this.#text}" names several minutes; set an alarm for each, or write cron fields`);
      this.parts.minutePast = minute;
      return true;
    }
    const time = this.#clock();
    if (time === undefined) return false;
    this.parts.times.push(time);
    this.#saw('T');
    return true;
  }
}
