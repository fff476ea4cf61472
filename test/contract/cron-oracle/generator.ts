/** Random cron questions from a seed: expressions, zones, and instants near irregularities of clocks and calendars. */
import { Temporal } from 'temporal-polyfill';
import { isOfIntl, zonesOfIntl } from '../../../src/kit/clock/testing/zones-of-intl.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const EARLIEST = Date.UTC(1973, 0, 1);
const LATEST = Date.UTC(2099, 11, 1);

/** Zones with irregularities; the rest of the IANA list is drawn from as well. */
const HARD_ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Dublin', // winter is the exception in tzdata
  'America/New_York',
  'America/St_Johns', // changed at 00:01 for years
  'America/Santiago', // changes at midnight
  'America/Sao_Paulo', // midnight gaps
  'America/Havana', // midnight gaps
  'America/Asuncion',
  'Asia/Beirut', // midnight gaps
  'Asia/Gaza',
  'Asia/Tehran',
  'Asia/Amman',
  'Africa/Cairo',
  'Africa/Casablanca', // back for Ramadan
  'Asia/Kathmandu', // +5:45
  'Asia/Kolkata',
  'Australia/Lord_Howe', // half an hour
  'Australia/Adelaide',
  'Pacific/Chatham', // +12:45, +13:45
  'Pacific/Apia', // no 30 December 2011
  'Pacific/Kiritimati',
  'Antarctica/Troll', // two hours
];

/** Irregular days in every zone. */
const HARD_DAYS = [
  Date.UTC(2011, 11, 30), // missing in Apia
  Date.UTC(2024, 1, 29),
  Date.UTC(2026, 1, 28),
  Date.UTC(2026, 11, 31),
  Date.UTC(2096, 1, 29), // the last leap day before 2104
];

/** A stream of random numbers in [0, 1) that a seed repeats exactly: a 32-bit state, stepped and scrambled. */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[below(random, from.length)]!;
}

/** Zones of the questions: all irregular ones, and others up to `count`. */
export function drawZones(random: Random, count: number): string[] {
  const all = zonesOfIntl();
  const zones = new Set(HARD_ZONES.filter(isOfIntl));
  while (zones.size < count) zones.add(pick(random, all));
  return [...zones];
}

/** Instants of the questions in a zone: mostly its clock changes. */
export function drawPlaces(random: Random, timezone: string, count: number): number[] {
  const places: number[] = [];
  for (let index = 0; index < count; index++) {
    const kind = random();
    const anywhere = EARLIEST + random() * (LATEST - EARLIEST);
    if (kind < 0.65) places.push(clockChangeAfter(timezone, random() < 0.5 ? recent(random) : anywhere) ?? anywhere);
    else if (kind < 0.85) places.push(pick(random, HARD_DAYS));
    else places.push(anywhere);
  }
  return places;
}

function recent(random: Random): number {
  return Date.UTC(2008, 0, 1) + random() * (Date.UTC(2032, 0, 1) - Date.UTC(2008, 0, 1));
}

function clockChangeAfter(timezone: string, instant: number): number | undefined {
  const zoned = Temporal.Instant.fromEpochMilliseconds(Math.floor(instant)).toZonedDateTimeISO(timezone);
  const change = zoned.getTimeZoneTransition('next')?.epochMilliseconds;
  return change !== undefined && change < LATEST ? change : undefined;
}

/** A start instant: within a day and a half of a given one, often on a full minute or next to one. */
export function drawInstant(random: Random, place: number): number {
  const kind = random();
  if (kind < 0.1) return Math.floor(place);
  const instant = place + (random() * 2 - 1) * 36 * HOUR_MS;
  const onMinute = Math.floor(instant / MINUTE_MS) * MINUTE_MS;
  if (kind < 0.6) return onMinute;
  if (kind < 0.7) return onMinute - 1;
  if (kind < 0.8) return onMinute + 1;
  return Math.floor(instant);
}

/** The length of the interval in question: mostly hours, up to four days. */
export function drawGap(random: Random): number {
  return Math.floor(random() < 0.7 ? random() * 8 * HOUR_MS : random() * 4 * DAY_MS);
}

type FieldShape = { min: number; max: number; likely: readonly number[]; names: readonly string[]; star: number };

const SHAPES: readonly FieldShape[] = [
  { min: 0, max: 59, likely: [0, 1, 15, 29, 30, 31, 45, 59], names: [], star: 0.3 },
  { min: 0, max: 23, likely: [0, 1, 2, 3, 4, 23], names: [], star: 0.3 },
  { min: 1, max: 31, likely: [1, 15, 28, 29, 30, 31], names: [], star: 0.6 },
  {
    min: 1,
    max: 12,
    likely: [2, 3, 4, 10, 12],
    names: 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' '),
    star: 0.7,
  },
  { min: 0, max: 7, likely: [0, 5, 6, 7], names: 'SUN MON TUE WED THU FRI SAT'.split(' '), star: 0.65 },
];

function drawValue(random: Random, shape: FieldShape): number {
  return random() < 0.6 ? pick(random, shape.likely) : shape.min + below(random, shape.max - shape.min + 1);
}

/** A value as people write it: sometimes by name or with a leading zero. */
function spell(random: Random, shape: FieldShape, value: number): string {
  const name = shape.names[value - shape.min];
  if (name !== undefined && random() < 0.4)
    return pick(random, [name, name.toLowerCase(), name[0] + name.slice(1).toLowerCase()]);
  return random() < 0.1 ? String(value).padStart(2, '0') : String(value);
}

function drawEntry(random: Random, shape: FieldShape): string {
  const size = shape.max === 7 ? 7 : shape.max - shape.min + 1;
  const step = () => (random() < 0.7 ? 1 + below(random, Math.min(size, 12)) : 1 + below(random, size));
  const kind = random();
  if (kind < 0.45) return spell(random, shape, drawValue(random, shape));
  if (kind < 0.6) return `${spell(random, shape, drawValue(random, shape))}/${step()}`;
  if (kind < 0.7) return `*/${step()}`;
  const [low, high] = [drawValue(random, shape), drawValue(random, shape)].sort((a, b) => a - b) as [number, number];
  const range = `${spell(random, shape, low)}-${spell(random, shape, high)}`;
  return kind < 0.85 ? range : `${range}/${step()}`;
}

function drawField(random: Random, shape: FieldShape): string {
  const kind = random();
  if (kind < shape.star)
    return random() < 0.65 ? '*' : `*/${1 + below(random, Math.min(12, shape.max === 7 ? 7 : 12))}`;
  if (kind < shape.star + (1 - shape.star) * 0.7) return drawEntry(random, shape);
  return Array.from({ length: 2 + below(random, 3) }, () => drawEntry(random, shape)).join(',');
}

const SHORTHANDS = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];

/** A cron expression in valid syntax; a few match no date at all. */
export function drawExpression(random: Random): string {
  if (random() < 0.02) return pick(random, SHORTHANDS);
  if (random() < 0.02) return `${below(random, 60)} ${below(random, 24)} ${pick(random, ['29', '29', '30', '31'])} 2 *`;
  return SHAPES.map((shape) => drawField(random, shape)).join(random() < 0.05 ? ' \t ' : ' ');
}
