/**
 * Three properties of what Reveille says about a schedule, over random schedules and the table of phrases. The text is
 * true of the next 200 instants. The text, typed as a phrase, has the same instants. What a refusal offers is accepted.
 * `REVEILLE_ROUNDS=all` takes 20,000 schedules.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRule, compileSchedule } from '../../../src/chronos/alarm/schedule.ts';
import { calendarTime, localTime } from '../../../src/kit/clock/local-time.ts';
import { formatWithOffset } from '../../../src/kit/clock/wall-clock.ts';
import { readPhrase } from '../../../src/kit/phrase/phrase.ts';
import { PhraseError, type Reading, type Repetition } from '../../../src/kit/phrase/reading.ts';
import { readingText, repetitionText, shortRepetitionText } from '../../../src/kit/phrase/reading-text.ts';
import { seriesText } from '../../../src/kit/phrase/series-text.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { type Dice, diceOf, rounds } from '../../support/random/random.ts';
import { assertTrue } from './claims.ts';
import { instantOf, rows, ZONES } from './table.ts';

const INSTANTS = 200;
/** The instants of sparse series end here: clock changes of centuries take long to compute. */
const HORIZON_MS = rounds(8, 60) * 366 * 86_400_000;
/** Some zones change their clocks at midnight, by half an hour, or not at all. */
const PLACES = [...ZONES, 'Africa/Cairo', 'America/Santiago', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5'];
const DAY_MS = 86_400_000;

type Context = { readonly now: number; readonly zone: string };

/** The next instants of a reading; `undefined` if the schedule engine refuses it. */
function instantsOf(
  reading: Reading | (Repetition & { kind: 'series'; zone: string }),
  { now }: Context,
): number[] | undefined {
  if (reading.kind === 'instant') return [reading.at];
  if (reading.kind === 'delay') return [now + reading.seconds * 1000];
  const key = [now, reading.zone, reading.cron, reading.rrule].join('\n');
  if (known.key !== key) known = { key, instants: seriesInstants(reading, now) };
  return known.instants;
}

/** The last series: most texts of a schedule are read to the same fields. */
let known: { key: string; instants: number[] | undefined } = { key: '', instants: undefined };

function seriesInstants(reading: Repetition & { zone: string }, now: number): number[] | undefined {
  try {
    const schedule =
      reading.rrule === undefined
        ? compileSchedule(reading.cron, reading.zone, now)
        : compileRule(reading.rrule, reading.zone, now);
    if (schedule.shortestIntervalMs < 1000) return undefined;
    const found: number[] = [];
    for (let at = schedule.next(now); at !== undefined && found.length < INSTANTS; at = schedule.next(at)) {
      if (at - now > HORIZON_MS) break;
      found.push(at);
    }
    return found;
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

const contextOf = (dice: Dice): Context => ({
  now: Date.UTC(2026, 0, 1) + dice(3 * 366) * DAY_MS + dice(DAY_MS),
  zone: PLACES[dice(PLACES.length)]!,
});

/** One of the values, the first ones more often. */
const among = <T>(dice: Dice, ...values: readonly T[]): T =>
  values[Math.min(dice(values.length), dice(values.length))]!;
const some = (dice: Dice, most: number, value: () => number | string) =>
  Array.from({ length: 1 + dice(most) }, value).join();

function cronField(dice: Dice, least: number, most: number, names: readonly string[] = []): string {
  const size = most - least + 1;
  const value = () => least + dice(size);
  const named = () => (names.length > 0 && dice(2) === 0 ? names[dice(names.length)]! : value());
  const span = () => {
    const [one, other] = [value(), value()];
    return `${Math.min(one, other)}-${Math.max(one, other)}`;
  };
  return among(
    dice,
    () => `${named()}`,
    () => '*',
    () => `*/${1 + dice(size)}`,
    () => some(dice, 4, value),
    span,
    () => `${span()}/${1 + dice(size)}`,
    () => `${value()}/${1 + dice(size)}`,
    () => `*/${1 + dice(size)},${value()}`,
  )();
}

const EVEN_MINUTES = ['0', '0', '30', '*/15', '*/5', '*/45', '*/7', '3-59/10', '0,30', '*'];

function randomCron(dice: Dice): string {
  if (dice(12) === 0)
    return among(dice, '@hourly', '@daily', '@weekly', '@monthly', '@yearly', '@midnight', '@Annually');
  if (dice(10) === 0)
    return `@every ${among(dice, `${1 + dice(100)}h`, `${1 + dice(600)}m`, `${1 + dice(9)}h${1 + dice(59)}m`, `${10 + dice(9999)}s`)}`;
  const minute = dice(2) === 0 ? EVEN_MINUTES[dice(EVEN_MINUTES.length)]! : cronField(dice, 0, 59);
  const days =
    dice(3) === 0
      ? '* *'
      : `${cronField(dice, 1, 31)} ${dice(2) === 0 ? '*' : cronField(dice, 1, 12, ['JAN', 'feb', 'Dec'])}`;
  const week = days === '* *' || dice(5) === 0 ? cronField(dice, 0, 7, ['MON', 'sun', 'Fri']) : '*';
  return `${minute} ${cronField(dice, 0, 23)} ${dice(3) === 0 ? '* *' : days} ${week}`;
}

const WEEK = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];
const compact = (wall: number) => new Date(wall).toISOString().replace(/[-:]|\.\d+Z$/g, '');

function randomRules(dice: Dice, now: number): string {
  const often = <T>(value: T) => (dice(4) > 0 ? value : undefined);
  const rarely = <T>(value: T) => (dice(8) === 0 ? value : undefined);
  const frequency = among(dice, 'WEEKLY', 'MONTHLY', 'DAILY', 'YEARLY', 'HOURLY', 'MINUTELY');
  const isLong = frequency === 'MONTHLY' || frequency === 'YEARLY';
  const day = () => `${isLong && dice(3) > 0 ? among(dice, 1, -1, 2, 4, 5, -2) : ''}${WEEK[dice(7)]}`;
  const weekdays = () => (dice(3) === 0 ? 'MO,TU,WE,TH,FR' : some(dice, 3, day));
  const date = () => among(dice, 1 + dice(31), -1 - dice(4), 31, 29);
  const isTimed = !['HOURLY', 'MINUTELY'].includes(frequency);
  const byDay = dice(2) === 0 ? weekdays() : undefined;
  const parts = [
    ['INTERVAL', often(1) ?? 1 + dice(6)],
    ['BYMONTH', frequency === 'YEARLY' ? often(1 + dice(12)) : rarely(some(dice, 3, () => 1 + dice(12)))],
    ['BYMONTHDAY', isLong && byDay === undefined ? often(some(dice, 2, date)) : undefined],
    ['BYDAY', byDay],
    ['BYSETPOS', isLong && byDay === 'MO,TU,WE,TH,FR' ? often(among(dice, 1, -1, 2, 22)) : undefined],
    ['BYHOUR', isTimed ? often(some(dice, 2, () => dice(24))) : rarely(dice(24))],
    ['BYMINUTE', isTimed ? often(some(dice, 2, () => dice(60))) : undefined],
    ['BYSECOND', often(among(dice, 0, 0, 0, 30))],
    ['WKST', rarely(WEEK[dice(7)])],
    ...(dice(3) > 0
      ? []
      : [
          dice(2) === 0
            ? ['COUNT', 1 + dice(300)]
            : ['UNTIL', compact(now + dice(900) * DAY_MS).slice(0, dice(2) === 0 ? 8 : 15)],
        ]),
  ] as const;
  const rule = parts.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`])).join(';');
  const began = now + (dice(800) - 400) * DAY_MS;
  const start = compact(Math.floor(began / 60_000) * 60_000 + (dice(10) === 0 ? 7000 : 0));
  const times = compact(began + dice(90) * DAY_MS);
  return [
    ...(dice(2) === 0
      ? []
      : [among(dice, `DTSTART:${start}`, `DTSTART;VALUE=DATE:${start.slice(0, 8)}`, `DTSTART:${start}Z`)]),
    `RRULE:FREQ=${frequency};${rule}`,
    ...(dice(10) === 0 ? [`RRULE:FREQ=${frequency};${rule.replace(/BYHOUR=[\d,]+/, `BYHOUR=${dice(24)}`)}`] : []),
    ...(dice(8) === 0 ? [`EXDATE:${times}`] : []),
  ].join('\n');
}

/** What the surfaces print about a series: previews and answers, `alarm show`, `alarm list`, the console. */
function textsOf(repetition: Repetition, { now, zone }: Context): string[] {
  const reading = { ...repetition, kind: 'series', zone } as Reading;
  const words = repetitionText(repetition);
  const expression = (repetition.rrule ?? repetition.cron).replace(/\s+/g, ' ');
  return [
    ...[readingText(reading, now), words, shortRepetitionText(repetition), `${words}, in ${zone}`],
    ...(words.endsWith(')') || words === expression ? [] : [`${words}, in ${zone} (${expression})`]),
  ];
}

function assertSame(text: string, context: Context, expected: readonly number[], about: string): void {
  let reading: Reading;
  try {
    reading = readPhrase(text, context);
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    assert.fail(`${about} is "${text}", which is refused: ${thrown.message}`);
  }
  assert.deepEqual(instantsOf(reading, context), expected, `${about} is "${text}", which has other instants`);
}

/** @returns whether it is a schedule of which something is said */
function checkSeries(repetition: Repetition, context: Context): boolean {
  const { now, zone } = context;
  const instants = instantsOf({ ...repetition, kind: 'series', zone }, context);
  if (instants === undefined) return false;
  const about = `${(repetition.rrule ?? repetition.cron).replaceAll('\n', ' ')} at ${new Date(now).toISOString()} in ${zone}`;
  const words = seriesText(repetition);
  try {
    if (words !== undefined) assertTrue(words, { instants, now, zone });
  } catch (error) {
    throw new Error(`${about}: ${(error as Error).message}`, { cause: error });
  }
  for (const text of textsOf(repetition, context)) assertSame(text, context, instants, about);
  return true;
}

test('the text of a series is true of its next 200 instants, and is read to them', (t) => {
  const dice = diceOf(t);
  const [checked, worded] = [
    { cron: 0, rules: 0 },
    { cron: 0, rules: 0 },
  ];
  const wanted = rounds(300, 20_000);
  while (checked.cron + checked.rules < wanted) {
    const context = contextOf(dice);
    const kind = dice(2) === 0 ? 'cron' : 'rules';
    const repetition: Repetition =
      kind === 'cron' ? { cron: randomCron(dice) } : { rrule: randomRules(dice, context.now) };
    if (!checkSeries(repetition, context)) continue;
    checked[kind]++;
    if (seriesText(repetition) !== undefined) worded[kind]++;
  }
  t.diagnostic(
    `${checked.cron} of cron, ${worded.cron} with words; ${checked.rules} by rules, ${worded.rules} with words`,
  );
  assert.ok(worded.cron > wanted / 20 && worded.rules > wanted / 20, 'too few schedules have words');
});

test('the text of each phrase of the table is read to the same instants', () => {
  let read = 0;
  for (const { phrase, now: wallNow } of rows)
    for (const zone of rounds(['Europe/Berlin'], ZONES)) {
      const context = { now: instantOf(wallNow, zone), zone };
      let reading: Reading;
      try {
        reading = readPhrase(phrase, context);
      } catch (thrown) {
        if (thrown instanceof PhraseError) continue;
        throw thrown;
      }
      const instants = instantsOf(reading, context);
      if (instants === undefined) continue;
      read++;
      assertSame(readingText(reading, context.now), context, instants, `"${phrase}" at ${wallNow} in ${zone}`);
      if (reading.kind === 'series') checkSeries(reading, { ...context, zone: reading.zone });
    }
  assert.ok(read > rounds(400, 2000), `${read} readings`);
});

test('each text of an instant or a delay is read to it, also where the clock shows a time twice', (t) => {
  const dice = diceOf(t);
  for (let left = rounds(300, 20_000); left > 0; left--) {
    const { now, zone } = contextOf(dice);
    const change = Date.UTC(2026, 9, 25, 0) + dice(4 * 3_600_000);
    const at = dice(6) === 0 && change > now ? change : now + 1 + dice(700 * DAY_MS);
    const context = { now, zone };
    const second = Math.floor(at / 1000) * 1000;
    const about = `${new Date(at).toISOString()} at ${new Date(now).toISOString()} in ${zone}`;
    assertSame(readingText({ kind: 'instant', at, zone }, now), context, [at], about);
    if (second <= now) continue;
    assertSame(formatWithOffset(zone, second), context, [second], about);
    assertSame(`once, at ${localTime(second, context)}`, context, [second], about);
    const instants = [...refused(calendarTime(second, context), context), calendarTime(second, context)];
    assert.ok(
      instants.some(
        (text) => refusalOf(text, context) === undefined && (readPhrase(text, context) as { at: number }).at === second,
      ),
      about,
    );
    const seconds = 1 + dice(among(dice, 90, 5000, 900_000));
    assertSame(readingText({ kind: 'delay', seconds }, now), context, [now + seconds * 1000], `${seconds} s`);
  }
});

function refusalOf(text: string, context: Context): PhraseError | undefined {
  try {
    readPhrase(text, context);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof PhraseError) return thrown;
    throw thrown;
  }
}

const refused = (text: string, context: Context) => refusalOf(text, context)?.choices ?? [];

/** The phrases that a message shows as a remedy. */
function remediesOf({ message, choices }: PhraseError): string[] {
  const [, advice = ''] = /\b(?:as in|such as|write|use|did you mean) (".*)$/.exec(message) ?? [];
  return [...choices, ...[...advice.matchAll(/"([^"]+)"/g)].map(([, phrase]) => phrase!)];
}

/** @returns the number of remedies */
function checkRemedies(phrase: string, context: Context): number {
  const refusal = refusalOf(phrase, context);
  if (refusal === undefined) return 0;
  const remedies = remediesOf(refusal);
  for (const remedy of remedies) {
    const again = refusalOf(remedy, context);
    assert.equal(
      again,
      undefined,
      `"${phrase}" is refused with ${refusal.message}, and "${remedy}" with ${again?.message}`,
    );
  }
  return remedies.length;
}

test('each remedy that the table of phrases meets is accepted', () => {
  let remedies = 0;
  for (const { phrase, now } of rows)
    for (const zone of ZONES) remedies += checkRemedies(phrase, { now: instantOf(now, zone), zone });
  assert.ok(remedies > 1000, `${remedies} remedies`);
});

const WORDS =
  'every each day week month monday mon tue weekdays weekend tomorrow today tonight next this the of on at in and other second last first quarter end eod twice sunset , 9 9am 9:30 21:00 17:40 12pm 24:00 1st 5th 15th 31st 24 december dec february 2027 5 hours minutes 2 hour from to between noon midnight morning evening half a an 05/06 24.12. 01-02-2027 UTC :15 :45 daily hourly eow eom fortnight PT1H30M P2D tomorow mondya'.split(
    ' ',
  );

test('each remedy of a refusal is accepted, for random words and phrases with another word', (t) => {
  const dice = diceOf(t);
  const word = () => WORDS[dice(WORDS.length)]!;
  let remedies = 0;
  for (let left = rounds(1000, 20_000); left > 0; left--) {
    const context = contextOf(dice);
    const known = rows[dice(rows.length)]!.phrase.split(' ');
    const words = dice(2) === 0 ? Array.from({ length: 1 + dice(7) }, word) : known.with(dice(known.length), word());
    remedies += checkRemedies(words.join(' '), context);
  }
  t.diagnostic(`${remedies} remedies`);
});
