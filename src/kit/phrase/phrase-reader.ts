/**
 * Parses the words of a phrase part by part (a day, times, a frequency, a duration) and refuses unknown ones. It does
 * not combine the parts. Pure.
 */
import { nearestOf } from '../../wire/edit-distance.ts';
import { type Day, type DayOfMonth, dayInDigits, Parts, type Period } from './parts.ts';
import { PhraseError } from './reading.ts';
import { calendarDay, type HalfDay, hourOf, timeOfDay } from './time-of-day.ts';
import { hourWord, Tokens } from './tokens.ts';
import {
  ABBREVIATIONS,
  DAY_GROUPS,
  FREQUENCIES,
  HALF_DAYS,
  KNOWN_WORDS,
  MONTH_WORDS,
  MONTHS,
  ORDINALS,
  OTHER_FIELDS,
  type RepeatUnit,
  SUN_WORDS,
  TWICE_OR_EVERY_OTHER,
  UNITS,
  type Unit,
  WEEKDAY_WORDS,
  WEEKDAYS,
} from './vocabulary.ts';

const TO_WORDS: readonly string[] = ['to', 'through', 'till', '-', '–'];
const ENDED = ['day', 'week', 'month', 'quarter', 'year'] as const;
const SHORT_ENDS: Readonly<Record<string, (typeof ENDED)[number]>> = {
  ...{ eod: 'day', eow: 'week', eom: 'month', eoq: 'quarter', eoy: 'year' },
};

const SECONDS: Readonly<Partial<Record<RepeatUnit, number>>> = { second: 1, minute: 60, hour: 3600 };

const hasPassed = (text: string) => new PhraseError(`"${text}" has passed; an alarm needs a future time`);

const sortedNumbers = (list: readonly { value: string }[]): number[] =>
  [...new Set(list.map(({ value }) => Number(value)))].sort((one, other) => one - other);

/** A date with the day of the week beside it: `Tuesday, December 1`; `undefined` for two other days. */
function dateOnWeekday(date: Day, { kind, ...named }: Day): Day | undefined {
  if (date.kind !== 'date' || date.weekday !== undefined || kind !== 'weekday') return undefined;
  const { weekday, week } = named as Extract<Day, { kind: 'weekday' }>;
  return week === undefined ? { ...date, weekday } : undefined;
}

export class PhraseReader {
  readonly parts = new Parts();
  readonly #tokens: Tokens;
  readonly #text: string;
  /** The order of the parsed parts: days (`D`) and times of day (`T`), consecutive ones merged. */
  #order = '';
  /** Number of times before the part of the day. */
  #timesBeforeHalf = 0;
  /** Of `end of every month`: the period, and the text that names it. */
  #repeatedEnd: { readonly of: Period; readonly replaces: RegExp } | undefined;
  /** Whether days of the week are what makes it a series. */
  #hasImpliedWeek = false;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = new Tokens(text);
  }

  read(): Parts {
    while (!this.#tokens.isAtEnd()) {
      if (this.#tokens.accept(',', 'and', '@', "o'clock", 'on', 'at')) continue;
      if (this.#endOf() || this.#timesPerDay() || this.#only() || this.#start()) continue;
      if (this.#every() || this.#ahead() || this.#hours() || this.#date() || this.#dayWord() || this.#half()) continue;
      if (this.#monthDay() || this.#bareDuration() || this.#time()) continue;
      if (this.#tokens.accept('the', 'of')) continue;
      throw this.#unknown();
    }
    const { halfDay, times } = this.parts;
    if (this.#repeatedEnd !== undefined) throw this.#severalEnds(this.#repeatedEnd);
    if (this.#order.includes('DTD'))
      throw new PhraseError(`"${this.#text}" has days before and after a time; set an alarm for each`);
    if (halfDay !== undefined && times.length > 1 && this.#timesBeforeHalf > 0)
      throw new PhraseError(
        `"${this.#text}" does not show which times are ${halfDay === 'night' ? 'at' : 'in the'} ${halfDay}; write each as in 9:00 and 21:00`,
      );
    return this.parts;
  }

  #saw(part: 'D' | 'T'): void {
    if (!this.#order.endsWith(part)) this.#order += part;
  }

  #unknown(): PhraseError {
    const { text, word } = this.#tokens.peek();
    if (ABBREVIATIONS.has(word))
      return new PhraseError(`"${text}" can be more than one time zone; use one such as America/New_York, or UTC`);
    if (word === 'in')
      return new PhraseError(
        `"in" is not understood in "${this.#text}"; write a duration as in "in 20 minutes", or a zone as in "9am Europe/Berlin"`,
        [],
        { isUnknown: true },
      );
    if (['utc', 'gmt', '+'].includes(word))
      return new PhraseError(
        `"${this.#text}" has a time that is not understood; write its zone as in "9am UTC" or "9am Europe/Berlin"`,
        [],
        { isUnknown: true },
      );
    if (word === 'now') return new PhraseError('an alarm needs a future time', ['in 1 second']);
    if (Object.hasOwn(SUN_WORDS, word))
      return new PhraseError(
        `"${text}" differs each day and place, so an alarm needs a time`,
        [`at ${SUN_WORDS[word]}`],
        {
          replaces: new RegExp(`(?:\\bat )?\\b${word}\\b`, 'i'),
        },
      );
    if (Object.hasOwn(TWICE_OR_EVERY_OTHER, word)) {
      const unit = TWICE_OR_EVERY_OTHER[word]!;
      return new PhraseError(
        `"${text}" can be every other ${unit} or twice a ${unit}`,
        [`every other ${unit}`, `twice a ${unit}`],
        { replaces: new RegExp(`\\b${word}\\b`, 'i') },
      );
    }
    const remedy = Object.entries(OTHER_FIELDS).find(([words]) => words.split(' ').includes(word))?.[1];
    if (remedy !== undefined) return new PhraseError(`"${text}" is not understood; ${remedy}`, [], { isUnknown: true });
    if (word === 'yesterday' || word === 'ago' || word === 'last') return hasPassed(this.#text);
    const nearest = /^\p{L}{3,}$/u.test(word) ? nearestOf(word, KNOWN_WORDS) : undefined;
    if (nearest !== undefined && nearest !== word)
      return new PhraseError(`"${text}" is not understood in "${this.#text}"`, [nearest], {
        ...{ isUnknown: true, replaces: new RegExp(`\\b${RegExp.escape(word)}\\b`, 'i') },
      });
    return new PhraseError(
      `"${text}" is not understood in "${this.#text}"; write it as in "tomorrow 9am", "in 2 hours", "every weekday at 9:00" or "december 24 at 18:00"`,
      [],
      { isUnknown: true },
    );
  }

  #setDay(day: Day): true {
    const both =
      this.parts.day === undefined ? day : (dateOnWeekday(this.parts.day, day) ?? dateOnWeekday(day, this.parts.day));
    if (both === undefined) throw new PhraseError(`"${this.#text}" names two days; write only one`);
    this.#saw('D');
    this.parts.day = both;
    return true;
  }

  #setRepeat(amount: number, unit: RepeatUnit, word: string): true {
    // `weekdays every 2 hours`: the days of the week are those of the hours.
    const isDaysOnly = this.#hasImpliedWeek && (unit === 'hour' || unit === 'minute');
    if (this.parts.repeat !== undefined && !isDaysOnly)
      throw new PhraseError(`"${this.#text}" has two frequencies; write only one`);
    this.parts.repeat = { amount, unit, word };
    this.#hasImpliedWeek = false;
    return true;
  }

  /** `in 2 hours and 5 minutes`, `in half an hour`, `2 hours from now`. */
  #ahead(): boolean {
    const isIn = this.#tokens.word() === 'in' && this.#tokens.word(1) !== 'the';
    const start = this.#tokens.at;
    if (isIn) this.#tokens.at++;
    const found: { amount: number; unit: Unit }[] = [];
    for (;;) {
      const joint = found.length > 0 && this.#tokens.accept('and', ',') ? 1 : 0;
      const isHalf = this.#tokens.word() === 'half' && (this.#tokens.word(1) === 'a' || this.#tokens.word(1) === 'an');
      const amount = isHalf ? 0.5 : this.#tokens.number();
      const unit = this.#tokens.unit(isHalf ? 2 : 1);
      if (amount === undefined || unit === undefined) {
        this.#tokens.at -= joint;
        break;
      }
      found.push({ amount, unit });
      this.#tokens.at += isHalf ? 3 : 2;
      // `an hour and a half`
      if (this.#tokens.word() === 'and' && this.#tokens.word(1) === 'a' && this.#tokens.word(2) === 'half') {
        found.push({ amount: 0.5, unit });
        this.#tokens.at += 3;
      }
    }
    const isFromNow = found.length > 0 && this.#tokens.word() === 'from' && this.#tokens.word(1) === 'now';
    if (isFromNow) this.#tokens.at += 2;
    if (found.length > 0 && (isIn || isFromNow)) {
      if (this.parts.ahead !== undefined) throw new PhraseError(`"${this.#text}" has two durations; write only one`);
      this.parts.ahead = found;
      return true;
    }
    this.#tokens.at = start;
    return false;
  }

  /** `2 hours` without a start; `17h`, which may be a time. */
  #bareDuration(): boolean {
    const amount = this.#tokens.number();
    const unit = this.#tokens.unit(1);
    if (amount === undefined || unit === undefined || this.#tokens.word() === 'a' || this.#tokens.word() === 'an')
      return false;
    if (this.#tokens.word(2) === 'ago') throw hasPassed(this.#text);
    const duration = `${this.#tokens.word()} ${this.#tokens.word(1)}`;
    const isHour = this.#tokens.word(1) === 'h' && Number.isInteger(amount) && amount < 24;
    const choices = [`in ${duration}`, ...(isHour ? [`${amount}:00`] : [])];
    throw new PhraseError(`"${duration}" does not have a start`, choices, {
      replaces: new RegExp(`(?:\\bat )?\\b${this.#tokens.word()} ?${this.#tokens.word(1)}\\b`, 'i'),
    });
  }

  #every(): boolean {
    const frequency = Object.hasOwn(FREQUENCIES, this.#tokens.word()) ? FREQUENCIES[this.#tokens.word()] : undefined;
    if (frequency !== undefined) {
      const { word } = this.#tokens.take();
      return this.#setRepeat(1, frequency, word);
    }
    const isEvery = this.#tokens.accept('every', 'each');
    if (isEvery && this.#endOf()) return true;
    const weekdays = this.#daysOfWeek(isEvery);
    if (weekdays !== undefined) return this.#onWeekdays(weekdays);
    if (!isEvery) return false;
    if (this.#dayInMonth(true)) {
      // `every first friday in march`.
      if (this.parts.repeat === undefined) this.#setRepeat(1, 'year', 'year');
      return true;
    }
    if (Object.hasOwn(HALF_DAYS, this.#tokens.word()) || ['noon', 'midnight'].includes(this.#tokens.word())) {
      // The word is parsed again for the hour.
      return this.#setRepeat(1, 'day', this.#tokens.word());
    }
    const isSecond = this.#other();
    // `every half hour`, `every half an hour`.
    if (this.#tokens.word() === 'half') {
      const skip = ['a', 'an'].includes(this.#tokens.word(1)) ? 2 : 1;
      if (this.#tokens.word(skip) !== 'hour') throw this.#unknown();
      this.#tokens.at += skip + 1;
      return this.#setRepeat(30, 'minute', 'minute');
    }
    const amount = isSecond ? 2 : this.#tokens.number();
    const ahead = amount === undefined || isSecond ? 0 : 1;
    const quarter = ['quarter', 'quarters'].includes(this.#tokens.word(ahead)) ? 'quarter' : undefined;
    const unit = quarter ?? this.#tokens.unit(ahead);
    if (unit !== undefined) {
      this.#tokens.at += ahead + 1;
      const seconds = SECONDS[unit];
      const more = amount === undefined || seconds === undefined ? 0 : this.#moreSeconds(seconds);
      if (more > 0) return this.#setRepeat(amount! * seconds! + more, 'second', 'second');
      return this.#setRepeat(amount ?? 1, unit, amount === undefined ? `each ${unit}` : unit);
    }
    if (isSecond) {
      const days = this.#daysOfWeek(true);
      if (days === undefined || days === DAY_GROUPS.weekday)
        throw new PhraseError(
          `"${this.#text}" does not say which days; write them, as in "every other monday at 9:00"`,
        );
      this.#setRepeat(2, 'week', 'week');
      return this.#onWeekdays(days);
    }
    // `every 24 december`, `every 1st of the month`.
    const before = this.#tokens.at;
    if (this.#date()) return this.#setRepeat(1, 'year', 'year');
    this.#tokens.at = before;
    if (this.#monthDay()) return this.parts.repeat !== undefined || this.#setRepeat(1, 'month', 'month');
    if (this.#tokens.isAtEnd())
      throw new PhraseError(`"${this.#text}" does not have a frequency`, ['every day at 9:00', 'every hour']);
    throw this.#unknown();
  }

  /** The seconds of `30 min` in `every 1 h 30 min`. @param larger the unit before it, in seconds */
  #moreSeconds(larger: number): number {
    const amount = this.#tokens.number();
    const seconds = SECONDS[this.#tokens.unit(1) ?? 'day'];
    if (amount === undefined || seconds === undefined || seconds >= larger) return 0;
    this.#tokens.at += 2;
    return amount * seconds + this.#moreSeconds(seconds);
  }

  /** `in months that have it`, `in leap years`. */
  #only(): boolean {
    if (this.#tokens.word() !== 'in') return false;
    const words = [1, 2, 3, 4].map((ahead) => this.#tokens.word(ahead)).join(' ');
    const isMonths = /^months that have (?:it|them)$/.test(words);
    if (!isMonths && !words.startsWith('leap years')) return false;
    this.#tokens.at += isMonths ? 5 : 3;
    this.parts.only = isMonths ? 'months' : 'leap years';
    return true;
  }

  /** `from 2026-11-30`, `from 2026-11-30 10:00`: where a series begins. */
  #start(): boolean {
    if (!['from', 'starting'].includes(this.#tokens.word())) return false;
    const skip = this.#tokens.word(1) === 'on' ? 2 : 1;
    const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(this.#tokens.word(skip)) ?? [];
    if (year === undefined) return false;
    const wall = calendarDay(Number(year), Number(month), Number(day));
    if (wall === undefined) throw new PhraseError(`"${this.#text}": there is no day ${year}-${month}-${day}`);
    if (this.parts.start !== undefined) throw new PhraseError(`"${this.#text}" begins twice; write only one day`);
    this.#tokens.at += skip + 1;
    const time = /^\d{1,2}:\d\d$/.test(this.#tokens.word()) ? this.#tokens.clock() : undefined;
    this.parts.start = { day: wall, time: time && timeOfDay(time, undefined) };
    return true;
  }

  /** `other`, or `second` before a word that it counts: `every second` is a unit. */
  #other(): boolean {
    if (this.#tokens.accept('other')) return true;
    const length =
      this.#tokens.word() === 'second' ? 1 : /^2nd$/.test(this.#tokens.word() + this.#tokens.word(1)) ? 2 : 0;
    const counted = this.#tokens.word(length);
    const isCounted = Object.hasOwn(UNITS, counted) || WEEKDAY_WORDS.has(counted) || Object.hasOwn(DAY_GROUPS, counted);
    if (length === 0 || !isCounted) return false;
    this.#tokens.at += length;
    return true;
  }

  /** `weekday`, `monday and friday` after `every`; `weekdays`, `mondays and fridays` without it. */
  #daysOfWeek(isEvery: boolean): readonly number[] | undefined {
    const word = this.#tokens.word();
    const name = isEvery ? word : word.replace(/s$/, '');
    if (!isEvery && name === word) return undefined;
    if (Object.hasOwn(DAY_GROUPS, name)) {
      this.#tokens.at++;
      return DAY_GROUPS[name];
    }
    const weekday = WEEKDAY_WORDS.get(name);
    // Plurals must be complete words: `suns` is not a day.
    if (weekday === undefined || (!isEvery && WEEKDAYS[weekday] !== name)) return undefined;
    this.#tokens.at++;
    return [weekday, ...this.#moreWeekdays(weekday)];
  }

  #onWeekdays(weekdays: readonly number[]): true {
    for (const weekday of weekdays) this.parts.weekdays.add(weekday);
    this.#saw('D');
    if (this.parts.repeat !== undefined) return true;
    this.#setRepeat(1, 'week', 'week');
    this.#hasImpliedWeek = true;
    return true;
  }

  /** The days after a first one: `, wednesday and friday`, `to friday`. */
  #moreWeekdays(first: number): number[] {
    const more: number[] = [];
    const dayAt = (ahead: number) =>
      WEEKDAY_WORDS.get(this.#tokens.word(ahead)) ?? WEEKDAY_WORDS.get(this.#tokens.word(ahead).replace(/s$/, ''));
    if (TO_WORDS.includes(this.#tokens.word()) && dayAt(1) !== undefined) {
      const last = dayAt(1)!;
      for (let day = first; day !== last; day = (day + 1) % 7) more.push((day + 1) % 7);
      this.#tokens.at += 2;
      return more;
    }
    for (;;) {
      let skip = 0;
      while ([',', 'and', '&', 'or'].includes(this.#tokens.word(skip))) skip++;
      const day = skip > 0 ? dayAt(skip) : undefined;
      if (day === undefined) return more;
      more.push(day);
      this.#tokens.at += skip + 1;
    }
  }

  /** `from 9 to 17`, `between 9:00 and 17:00`: whole hours. */
  #hours(): boolean {
    const start = this.#tokens.at;
    if (!this.#tokens.accept('from', 'between')) return false;
    // `every 15 minutes from :07`.
    if (this.parts.repeat?.unit === 'minute' && this.#minutesPast()) return true;
    const from = this.#tokens.clock();
    const isJoined = this.#tokens.accept('to', 'and', 'until', 'till', '-', '–');
    const to = isJoined ? this.#tokens.clock() : undefined;
    if (from === undefined || to === undefined) {
      this.#tokens.at = start;
      throw this.#unknown();
    }
    if (this.parts.hours !== undefined)
      throw new PhraseError(`"${this.#text}" has two ranges of hours; write only one`);
    // `every 15 minutes from 9:00 to 17:45`.
    const isWithinHour = this.parts.repeat?.unit === 'minute' && from.minute === 0 && to.as === 'colon';
    if (from.minute !== to.minute && isWithinHour) this.parts.lastMinute = to.minute;
    else if (from.minute !== to.minute)
      throw new PhraseError(
        `"${this.#text}": a range of hours begins and ends at the same minute, as in "every hour from 9:30 to 17:30"`,
      );
    if (from.minute !== 0) this.parts.minutesPast = [from.minute];
    const [first, last] = [from, to].map((time) => (time.as === 'bare' ? time.hour : hourOf(time, undefined))) as [
      number,
      number,
    ];
    // `1 to 5`, `1 to 5pm`: the first hour may be in the morning or in the afternoon.
    const untilEvening = to.as === 'half' ? last : last + 12;
    const isEarly = to.as === 'half' ? first > 0 && first + 12 < last : first > 0 && first <= 8 && first < last;
    if (from.as === 'bare' && isEarly && (to.as === 'half' || (to.as === 'bare' && last < 12)))
      throw new PhraseError(
        `"${this.#text}": hours from ${first} can be two ranges`,
        [`from ${first}:00 to ${last}:00`, `from ${first + 12}:00 to ${untilEvening}:00`],
        { replaces: this.#tokens.writtenSince(start) },
      );
    const isOneHour = this.parts.lastMinute !== undefined && first === last;
    if (first >= last && !isOneHour && first <= 12 && to.as === 'bare' && last < 12 && last + 12 > first)
      throw new PhraseError(
        `"${this.#text}": the first hour must be before the last one`,
        [`from ${first}:00 to ${last + 12}:00`],
        { replaces: this.#tokens.writtenSince(start) },
      );
    if (first >= last && !isOneHour)
      throw new PhraseError(
        `"${this.#text}": the first hour must be before the last one, as in "every hour from 9:00 to 17:00"`,
      );
    this.parts.hours = { from: first, to: last };
    return true;
  }

  #dayWord(): boolean {
    const word = this.#tokens.word();
    if (this.#dayInMonth(false) || this.#nextPeriod()) return true;
    if (word === 'today' || word === 'tomorrow') {
      this.#tokens.at++;
      return this.#setDay({ kind: 'offset', days: word === 'today' ? 0 : 1, word });
    }
    if (word === 'tonight') {
      this.#tokens.at++;
      this.#setHalf('night');
      return this.#setDay({ kind: 'offset', days: 0, word });
    }
    const skip = word === 'the' ? 1 : 0;
    if (
      this.#tokens.word(skip) === 'day' &&
      this.#tokens.word(skip + 1) === 'after' &&
      this.#tokens.word(skip + 2) === 'tomorrow'
    ) {
      this.#tokens.at += skip + 3;
      return this.#setDay({ kind: 'offset', days: 2, word: 'the day after tomorrow' });
    }
    const isNamed = word === 'this' || word === 'next' || word === 'coming';
    const weekday = WEEKDAY_WORDS.get(this.#tokens.word(isNamed ? 1 : 0));
    if (weekday !== undefined) {
      this.#tokens.at += isNamed ? 2 : 1;
      const isRange = TO_WORDS.includes(this.#tokens.word()) && WEEKDAY_WORDS.has(this.#tokens.word(1));
      if (isRange && this.parts.repeat === undefined)
        throw new PhraseError(`"${this.#text}" names several days`, [`every ${this.#text}`]);
      if (!isNamed && ['week', 'hour', 'minute'].includes(this.parts.repeat?.unit ?? '')) {
        this.#saw('D');
        for (const day of [weekday, ...this.#moreWeekdays(weekday)]) this.parts.weekdays.add(day);
        return true;
      }
      const isNextWeek = this.#tokens.word() === 'next' && this.#tokens.word(1) === 'week';
      if (isNextWeek && !isNamed) this.#tokens.at += 2;
      const week = isNamed ? word : isNextWeek ? ('next week' as const) : undefined;
      return this.#setDay({ kind: 'weekday', weekday, ...(week === undefined ? {} : { week }) });
    }
    if (word === 'this' && Object.hasOwn(HALF_DAYS, this.#tokens.word(1))) {
      this.#tokens.at++;
      return this.#setDay({ kind: 'offset', days: 0, word: `this ${this.#tokens.word()}` });
    }
    return false;
  }

  /** A position within a month, `first` or `2nd`, without its day. */
  #nth(ahead: number): { nth: number; length: number } | undefined {
    const word = this.#tokens.word(ahead);
    if (Object.hasOwn(ORDINALS, word)) return { nth: ORDINALS[word]!, length: 1 };
    const day = this.#tokens.ordinal(ahead);
    return day?.length === 2 && day.value >= 1 ? { nth: day.value, length: 2 } : undefined;
  }

  /** `day`, `weekday` or a day of the week. */
  #dayKind(word: string): DayOfMonth['of'] | undefined {
    if (word === 'day') return 'day';
    if (word === 'weekday' || word === 'workday') return 'weekday';
    return WEEKDAY_WORDS.get(word);
  }

  /**
   * `the last day of this month`, `last friday of february`; a series with `of the month` and `of every quarter`, or
   * after `every month` and `every`.
   */
  #dayInMonth(isEvery: boolean): boolean {
    const start = this.#tokens.at;
    const skip = this.#tokens.word() === 'the' ? 1 : 0;
    const position = this.#nth(skip);
    const of = position && this.#dayKind(this.#tokens.word(skip + position.length));
    if (position === undefined || of === undefined) return false;
    const { nth } = position;
    this.#tokens.at += skip + position.length + 1;
    const day: DayOfMonth = { nth, of };
    const words = () => this.#tokens.writtenSince(start);
    const word = this.#tokens.accept('of', 'in') ? this.#tokens.word() : '';
    const unit = this.#tokens.word(1);
    const month = MONTH_WORDS.get(word);
    if (month !== undefined) {
      this.#tokens.at++;
      this.#refuseFifth(nth, of);
      return this.#setDay({ kind: 'in month', day, month: month + 1, monthsAhead: 0 });
    }
    if (['this', 'next'].includes(word) && unit === 'month') {
      this.#tokens.at += 2;
      this.#refuseFifth(nth, of);
      return this.#setDay({ kind: 'in month', day, monthsAhead: word === 'next' ? 1 : 0 });
    }
    const repeated = this.parts.repeat?.unit;
    // `last day of month`, `last day of every month`.
    const isBare = word === 'month' || word === 'quarter';
    const period = isBare ? word : ['the', 'every', 'each'].includes(word) ? unit : '';
    if (period === 'month' || period === 'quarter') {
      this.#tokens.at += isBare ? 1 : 2;
      if (repeated !== period) this.#setRepeat(1, period, period);
      return this.#addDayOfMonth(day);
    }
    if (word !== '') throw this.#unknown();
    if (repeated === 'month' || repeated === 'quarter') return this.#addDayOfMonth(day);
    // `every second friday` is every other one; `every 3rd friday` may be one of the month.
    if (isEvery && nth === 2) {
      this.#tokens.at = start;
      return false;
    }
    if (isEvery && nth > 2)
      throw new PhraseError(
        `"${this.#text}" can be one of each month, or one of ${nth} in a row`,
        [`${this.#written(start)} of every month`, `every ${nth} ${this.#unitOf(of, start)}`],
        { replaces: this.#tokens.writtenSince(start - 1) },
      );
    if (isEvery) {
      this.#setRepeat(1, 'month', 'month');
      return this.#addDayOfMonth(day);
    }
    if (nth === -1 && of !== 'day') {
      this.#tokens.at = start;
      return false;
    }
    const written = this.#written(start);
    throw new PhraseError(
      `"${this.#text}" does not name the month of "${written}"`,
      [`${written} of this month`, `${written} of every month`],
      { replaces: words() },
    );
  }

  /** The words since one, as typed. */
  #written(start: number): string {
    return this.#tokens.textSince(start).replace(/^the /, '');
  }

  /** `weeks on friday`, `days`. */
  #unitOf(of: DayOfMonth['of'], start: number): string {
    if (of === 'day') return 'days';
    if (of === 'weekday') return 'weeks on weekdays';
    return `weeks on ${this.#written(start).split(' ').at(-1)}`;
  }

  #refuseFifth(nth: number, of: DayOfMonth['of']): void {
    if (of === 'day' ? nth > 28 : nth > (of === 'weekday' ? 20 : 4))
      throw new PhraseError(`"${this.#text}": not every month has that day`, ['last'], {
        replaces: new RegExp(`\\b${nth} ?(?:st|nd|rd|th)\\b`, 'i'),
      });
  }

  #addDayOfMonth(day: DayOfMonth): true {
    this.#refuseFifth(day.nth, day.of);
    if (day.of === 'day' && day.nth > 0) this.parts.monthDays.push(day.nth);
    else this.parts.daysOfMonth.push(day);
    this.#saw('D');
    return true;
  }

  /** `next week`, `next month`, `next weekday`. */
  #nextPeriod(): boolean {
    if (this.#tokens.word() !== 'next') return false;
    const unit = this.#tokens.word(1);
    if (unit === 'month' || unit === 'year') {
      this.#tokens.at += 2;
      return this.#setDay({ kind: 'next', unit });
    }
    if (unit === 'weekday' || unit === 'workday') {
      this.#tokens.at += 2;
      return this.#setDay({ kind: 'next weekday' });
    }
    if (unit !== 'week') return false;
    this.#tokens.at += 2;
    this.#tokens.accept('on');
    const weekday = WEEKDAY_WORDS.get(this.#tokens.word());
    if (weekday !== undefined) {
      this.#tokens.at++;
      return this.#setDay({ kind: 'weekday', weekday, week: 'next week' });
    }
    return this.#setDay({ kind: 'weekday', weekday: 1, week: 'next week', isAssumed: true });
  }

  /** `end of day`, `eod`, `end of the month`, `end of next week`, `end of december`, `end of every quarter`. */
  #endOf(): boolean {
    const start = this.#tokens.at;
    const short = Object.hasOwn(SHORT_ENDS, this.#tokens.word()) ? SHORT_ENDS[this.#tokens.word()] : undefined;
    if (short !== undefined) {
      this.#tokens.at++;
      return this.#setEnd(short, '', start);
    }
    this.#tokens.accept('the');
    if (this.#tokens.accept('end') && this.#tokens.accept('of')) {
      const isNamed = ['the', 'my', 'this', 'next', 'every', 'each'].includes(this.#tokens.word());
      const which = isNamed ? this.#tokens.take().word : '';
      const month = isNamed ? undefined : MONTH_WORDS.get(this.#tokens.word());
      if (month !== undefined) {
        this.#tokens.at++;
        return this.#setDay({ kind: 'end', of: 'month', ahead: 0, month: month + 1 });
      }
      const period = ENDED.find((known) => known === this.#tokens.word());
      if (period !== undefined) {
        this.#tokens.at++;
        return this.#setEnd(period, which, start);
      }
    }
    this.#tokens.at = start;
    return false;
  }

  #setEnd(period: 'day' | Period, which: string, start: number): true {
    const isEvery = ['every', 'each'].includes(which) || ['every', 'each'].includes(this.#tokens.wordAt(start - 1));
    if (period === 'day') {
      if (which === 'next') throw new PhraseError(`"${this.#text}" does not name the day`, ['tomorrow at end of day']);
      if (isEvery && this.parts.repeat === undefined) this.#setRepeat(1, 'day', 'day');
      this.parts.times.push({ hour: 0, minute: 0, second: 0, as: 'end of day' });
      this.#saw('T');
      return true;
    }
    if (!isEvery && this.parts.repeat?.unit !== period)
      return this.#setDay({ kind: 'end', of: period, ahead: which === 'next' ? 1 : 0 });
    const begin = ['every', 'each'].includes(this.#tokens.wordAt(start - 1)) ? start - 1 : start;
    this.#repeatedEnd = { of: period, replaces: this.#tokens.writtenSince(begin) };
    return true;
  }

  /** The end of each month can be its last day or its last Monday to Friday. */
  #severalEnds({ of, replaces }: { of: Period; replaces: RegExp }): PhraseError {
    const time = this.parts.times.length === 0 && this.parts.halfDay === undefined ? ' at end of day' : '';
    const isRepeated = this.parts.repeat !== undefined;
    const days =
      of === 'week'
        ? ['every friday', 'every sunday']
        : of === 'year'
          ? ['december 31', 'last weekday of december'].map((end) => (isRepeated ? end : `every year on ${end}`))
          : [`last day of every ${of}`, `last weekday of every ${of}`];
    return new PhraseError(
      `"${this.#text}": the end of a ${of} can be its last day or its last weekday`,
      days.map((day) => `${day}${time}`),
      { replaces },
    );
  }

  /** `twice a day`, `three times a day`. */
  #timesPerDay(): boolean {
    const word = this.#tokens.word();
    const isTimes = this.#tokens.word(1) === 'times';
    const often = word === 'once' ? 1 : word === 'twice' ? 2 : isTimes ? this.#tokens.number() : undefined;
    const skip = isTimes ? 2 : 1;
    if (often === undefined) return false;
    const isDaily = this.#tokens.word(skip) === 'daily';
    const isPer = ['a', 'per', 'every', 'each'].includes(this.#tokens.word(skip));
    const unit = isDaily ? 'day' : isPer ? this.#tokens.unit(skip + 1) : undefined;
    if (unit === undefined) return false;
    this.#tokens.at += skip + (isDaily ? 1 : 2);
    if (often > 1 && unit !== 'day')
      throw new PhraseError(`"${this.#text}" does not name the days`, [
        unit === 'week'
          ? 'every monday and thursday at 9:00'
          : `every ${unit === 'month' ? 'month on day 1 and 15' : '6 months on day 1'} at 9:00`,
      ]);
    this.parts.perDay = often;
    return this.parts.repeat === undefined ? this.#setRepeat(1, unit, unit) : true;
  }

  #setHalf(half: HalfDay): true {
    const { halfDay } = this.parts;
    if (halfDay !== undefined && halfDay !== half)
      throw new PhraseError(`"${this.#text}" has two parts of the day; write only one`);
    this.parts.halfDay = half;
    this.#timesBeforeHalf = this.parts.times.length;
    return true;
  }

  /** `in the morning`, `evening`. */
  #half(): boolean {
    const skip = this.#tokens.word() === 'in' && this.#tokens.word(1) === 'the' ? 2 : 0;
    const half = Object.hasOwn(HALF_DAYS, this.#tokens.word(skip)) ? HALF_DAYS[this.#tokens.word(skip)] : undefined;
    if (half === undefined) return false;
    this.#tokens.at += skip + 1;
    return this.#setHalf(half);
  }

  /** Refuses `and 10` beside a day of the month: it may be a day or an hour. @throws PhraseError */
  #refuseDayOrHour(joint: number, number: number): void {
    if (!['and', ','].includes(this.#tokens.word(joint)) || !/^\d{1,2}$/.test(this.#tokens.word(number))) return;
    if (number > joint && ['am', 'pm', "o'clock", 'st', 'nd', 'rd', 'th'].includes(this.#tokens.word(number + 1)))
      return;
    const dayOrHour = this.#tokens.word(number);
    throw new PhraseError(
      `"${dayOrHour}" in "${this.#text}" can be a day or an hour; write an hour as ${dayOrHour}:00, and set an alarm for each day`,
    );
  }

  #date(): boolean {
    const word = this.#tokens.word();
    const inDigits = dayInDigits(word);
    if (inDigits !== undefined) {
      this.#tokens.at++;
      return this.#setDay(inDigits);
    }
    const skip = this.#tokens.word() === 'the' ? 1 : 0;
    const month = MONTH_WORDS.get(word);
    if (month !== undefined) {
      const day = this.#tokens.ordinal(1);
      if (day === undefined)
        throw new PhraseError(`"${this.#text}" has a month without a day; write one such as "${MONTHS[month]} 1"`);
      this.#tokens.at += 1 + day.length;
      const year = this.#tokens.year();
      this.#refuseDayOrHour(0, 1);
      return this.#setDay({ kind: 'date', month: month + 1, day: day.value, ...year });
    }
    const day = this.#tokens.ordinal(skip);
    if (day === undefined) return false;
    const of = this.#tokens.word(skip + day.length) === 'of' ? 1 : 0;
    const named = MONTH_WORDS.get(this.#tokens.word(skip + day.length + of));
    if (named === undefined) return false;
    this.#refuseDayOrHour(-1, -2);
    this.#tokens.at += skip + day.length + of + 1;
    return this.#setDay({ kind: 'date', month: named + 1, day: day.value, ...this.#tokens.year() });
  }

  /** `day 1`, `day 1, 11 and 21`. */
  #dayNumbers(): boolean {
    const numberAt = (ahead: number) => {
      const isHour = ['am', 'pm', "o'clock"].includes(this.#tokens.word(ahead + 1));
      return /^\d{1,2}$/.test(this.#tokens.word(ahead)) && !isHour ? Number(this.#tokens.word(ahead)) : undefined;
    };
    if (this.#tokens.word() !== 'day') return false;
    let skip = 1;
    let isFound = false;
    for (let day = numberAt(skip); day !== undefined; day = skip > 0 ? numberAt(skip) : undefined) {
      if (day < 1 || day > 31) throw new PhraseError(`no month has a day ${day}`);
      this.parts.monthDays.push(day);
      this.#saw('D');
      this.#tokens.at += skip + 1;
      isFound = true;
      skip = 0;
      while ([',', 'and'].includes(this.#tokens.word(skip))) skip++;
    }
    return isFound;
  }

  /** `the 1st`, `the 1st and 15th of the month`; only with its ending, or `the first of the month`. */
  #monthDay(): boolean {
    if (this.#dayNumbers()) return true;
    const skip = this.#tokens.word() === 'the' ? 1 : 0;
    const isFirst = this.#tokens.word(skip) === 'first' && this.#tokens.word(skip + 1) === 'of';
    const day = isFirst ? { value: 1, length: 1 } : this.#tokens.ordinal(skip);
    if (!isFirst && day?.length !== 2) return false;
    if (day === undefined) return false;
    this.#tokens.at += skip + day.length;
    if (day.value < 1 || day.value > 31) throw new PhraseError(`no month has a day ${day.value}`);
    this.parts.monthDays.push(day.value);
    this.#saw('D');
    this.#refuseDayOrHour(0, 1);
    if (
      this.#tokens.word() === 'of' &&
      ['the', 'every', 'each'].includes(this.#tokens.word(1)) &&
      this.#tokens.word(2) === 'month'
    ) {
      const isEvery = this.#tokens.word(1) !== 'the';
      this.#tokens.at += 3;
      if (isEvery || this.parts.repeat === undefined) this.#setRepeat(1, 'month', 'month');
    }
    return true;
  }

  #time(): boolean {
    if (this.#minutesPast()) return true;
    const start = this.#tokens.at;
    const time = this.#tokens.clock();
    if (time === undefined) return false;
    if (time.as === 'bare') this.#refuseTwoNumbers(time.hour, start);
    this.parts.times.push(time);
    this.#saw('T');
    return true;
  }

  /** `:15`, `:15 and :45`, `:00 of the hours 0, 5, 10, 15 and 20`. */
  #minutesPast(): boolean {
    const minutes = this.#list((word) => /^:([0-5]\d)$/.exec(word)?.[1]);
    if (minutes.length === 0) return false;
    const start = this.#tokens.at;
    this.#tokens.at += minutes.at(-1)!.end;
    if (this.#tokens.accept('of') && this.#tokens.accept('the') && this.#tokens.accept('hours')) {
      const hours = this.#list((word) => (/^(?:1?\d|2[0-3])$/.test(word) ? word : undefined));
      if (hours.length === 0) throw this.#unknown();
      this.#tokens.at += hours.at(-1)!.end;
      this.parts.hourList = sortedNumbers(hours);
      if (this.parts.repeat?.unit !== 'hour') this.#setRepeat(1, 'hour', 'hour');
    } else if (!['hour', 'minute'].includes(this.parts.repeat?.unit ?? '')) {
      this.#tokens.at = start;
      return false;
    }
    if (this.parts.minutesPast.length > 0)
      throw new PhraseError(
        `"${this.#text}" names its minutes twice; write them once, as in "every hour at :15 and :45"`,
      );
    this.parts.minutesPast = sortedNumbers(minutes);
    return true;
  }

  /** The next words of one kind, with `,` and `and` between them, and how many tokens each ends after. */
  #list(valueIn: (word: string) => string | undefined): { value: string; end: number }[] {
    const found: { value: string; end: number }[] = [];
    for (let ahead = 0; ; ahead++) {
      const value = valueIn(this.#tokens.word(ahead));
      if (value === undefined) return found;
      found.push({ value, end: ahead + 1 });
      while ([',', 'and'].includes(this.#tokens.word(ahead + 1))) ahead++;
      if (ahead + 1 === found.at(-1)!.end) return found;
    }
  }

  /** Refuses `9 15`, which can be a quarter past nine or two hours. @throws PhraseError */
  #refuseTwoNumbers(hour: number, start: number): void {
    const word = this.#tokens.word();
    const isNumber = /^\d{1,2}$/.test(word) || hourWord(word) !== undefined;
    const next = this.#tokens.word(1);
    const hasMeaning = ['st', 'nd', 'rd', 'th', 'of', 'am', 'pm'].includes(next) || this.#tokens.unit(1) !== undefined;
    if (!isNumber || hasMeaning || MONTH_WORDS.has(next)) return;
    if (/^\d/.test(next)) throw this.#unknown();
    const minute = hourWord(word) ?? Number(word);
    this.#tokens.at++;
    const written = `${hour}:${String(minute).padStart(2, '0')}`;
    const isHalf = (hour >= 1 && hour <= 8) || hour === 12;
    throw new PhraseError(
      `"${this.#tokens.textSince(start)}" can be one time or two`,
      [
        ...(minute < 60 ? [written, ...(isHalf && hour < 12 ? [written.replace(/^\d+/, String(hour + 12))] : [])] : []),
        ...(minute < 24 && minute !== hour ? [`${hour}:00 and ${minute}:00`] : []),
      ],
      { replaces: this.#tokens.writtenSince(start) },
    );
  }
}
