/** A time in words, the field `when`: the fields that it stands for; and how the time of an alarm is understood. Pure. */
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import { zoneOf } from '../../kit/clock/zone.ts';
import { readPhrase } from '../../kit/phrase/phrase.ts';
import { PhraseError, type PhraseHours, type Reading } from '../../kit/phrase/reading.ts';
import { readingText } from '../../kit/phrase/reading-text.ts';
import { usesWallClock } from '../../kit/phrase/series-text.ts';
import type { AlarmCreate, AlarmPatch, WhenReading } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import type { Alarm } from './alarm.ts';
import { deadlineOf } from './events.ts';
import { type Calendars, NO_CALENDARS } from './holidays.ts';
import { LAST_INSTANT } from './occurrence.ts';
import { optionsOf } from './options.ts';
import { DEFAULT_TIMEZONE, seriesOf } from './series.ts';
import { waitsFor } from './waits-for.ts';

/** The fields that a time in words stands for. */
export const READ_FROM_WORDS = ['kind', 'delay_seconds', 'fire_at', 'cron_expr', 'rrule'] as const;

/** When words are read, and the hours that they leave open. */
export type WordHours = PhraseHours;
export type WordContext = { readonly now: number; readonly hours?: WordHours | undefined };

type TimeFields = Pick<AlarmCreate, (typeof READ_FROM_WORDS)[number] | 'timezone'>;

const invalid = (message: string, cause?: Error) =>
  new ReveilleError('invalid_request', message, cause === undefined ? {} : { cause });

/** @throws ReveilleError `invalid_request` with the choices, each ready to be given instead */
function read(words: string, timezone: string | undefined, { now, hours }: WordContext): Reading {
  if (timezone !== undefined) zoneOf(timezone);
  try {
    return readPhrase(words, { now, hours, zone: timezone });
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    if (thrown.needsZone) throw invalid(`when: ${showValue(words)} needs timezone, such as Europe/Berlin`, thrown);
    throw invalid(`when: ${thrown.message}`, thrown);
  }
}

function fieldsOf(reading: Reading): TimeFields {
  if (reading.kind === 'delay') return { kind: 'once', delay_seconds: reading.seconds };
  if (reading.kind === 'instant') return { kind: 'once', fire_at: reading.at, timezone: reading.zone };
  if (reading.rrule !== undefined) return { kind: 'rrule', rrule: reading.rrule, timezone: reading.zone };
  return {
    ...{ kind: 'cron', cron_expr: reading.cron },
    ...(usesWallClock(reading.cron) && { timezone: reading.zone }),
  };
}

function refuseContradiction(input: Partial<AlarmCreate>): void {
  const other = READ_FROM_WORDS.find((name) => input[name] !== undefined);
  if (other !== undefined) throw invalid(`when and ${other} both give a time; omit ${other}`);
}

/**
 * A create whose time in words is replaced by the fields that it stands for; a create without one is unchanged. The
 * words stay in `when`.
 *
 * @param context.now the instant at which the words are read, epoch ms
 * @throws ReveilleError `invalid_request` for words that are unknown, ambiguous or contradicted by another field
 */
export function withTime(input: AlarmCreate, context: WordContext): AlarmCreate {
  if (input.when === undefined) return input;
  refuseContradiction(input);
  const { timezone, ...rest } = input;
  return { ...rest, ...fieldsOf(read(input.when, timezone, context)) };
}

/**
 * The same create with the time of an earlier alarm that was set with the same words: the words may have another
 * meaning by now, or none.
 */
export function withTimeOf({ kind, fireAt, cronExpr, timezone, ...earlier }: Alarm, input: AlarmCreate): AlarmCreate {
  const { when, rrule } = optionsOf(earlier);
  if (input.when === undefined || input.when !== when) return input;
  refuseContradiction(input);
  const isSameZone = timezone === null || input.timezone === timezone || input.when.trimEnd().endsWith(timezone);
  const zone = isSameZone ? (timezone ?? undefined) : input.timezone;
  const { timezone: _, ...rest } = input;
  return {
    ...{ ...rest, kind },
    ...(zone !== undefined && { timezone: zone }),
    ...(kind === 'once' && { fire_at: fireAt! }),
    ...(cronExpr !== null && { cron_expr: cronExpr }),
    ...(rrule !== undefined && { rrule }),
  };
}

/**
 * An edit whose time in words is replaced by the fields that it stands for. Without `timezone`, the words are read in
 * the zone of the alarm.
 *
 * @throws ReveilleError `invalid_request` as for a create, and for words of another kind than the alarm's
 */
export function withNewTime(alarm: Alarm, patch: AlarmPatch, context: WordContext): AlarmPatch {
  if (patch.when === undefined) return patch;
  refuseContradiction(patch as Partial<AlarmCreate>);
  const zone = patch.timezone === undefined ? alarm.timezone : patch.timezone;
  const { kind, ...time } = fieldsOf(read(patch.when, zone ?? undefined, context));
  if (kind !== alarm.kind) {
    const [is, was] = [NAMES[kind!], NAMES[alarm.kind]];
    throw invalid(`when: ${showValue(patch.when)} ${is}, but this alarm ${was}; set a new alarm`);
  }
  const { timezone: _, ...rest } = patch;
  return { ...rest, ...(kind === 'once' && { timezone: null }), ...time };
}

const NAMES: Readonly<Record<Alarm['kind'], string>> = {
  once: 'is one time',
  cron: 'is a series by cron fields',
  rrule: 'is a series by rules',
  event: 'waits for events',
};

/** Number of next instants in a reading. */
const NEXT_SHOWN = 3;

/** The next instants of an alarm's schedule after `after`, jitter not included; with events, its deadline. */
export function nextInstants(alarm: Alarm, after: number, atMost: number, calendars = NO_CALENDARS): number[] {
  const only = alarm.kind === 'event' ? deadlineOf(alarm) : alarm.fireAt;
  if (only !== null) return only > after && only < LAST_INSTANT ? [only] : [];
  const left = alarm.maxFires === null ? atMost : Math.min(atMost, alarm.maxFires - alarm.scheduledFires);
  const series = seriesOf(alarm, calendars);
  const found: number[] = [];
  for (let at = after; found.length < left; ) {
    const next = series.next(at);
    if (next === undefined || (alarm.endsAt !== null && next > alarm.endsAt)) break;
    found.push(next);
    at = next;
  }
  return found;
}

/** The words of an alarm read again, for what they left open; `undefined` when they no longer have this meaning. */
function reread(alarm: Alarm, words: string, zone: string, { now, hours }: WordContext): Reading | undefined {
  try {
    const reading = readPhrase(words, { now, hours, zone });
    const { fire_at, cron_expr, rrule } = fieldsOf(reading);
    const at = reading.kind === 'delay' ? now + reading.seconds * 1000 : fire_at;
    const isSame =
      alarm.kind === 'once'
        ? at === alarm.fireAt
        : (cron_expr ?? null) === alarm.cronExpr && rrule === optionsOf(alarm).rrule;
    return isSame ? reading : undefined;
  } catch (thrown) {
    if (thrown instanceof PhraseError) return undefined;
    throw thrown;
  }
}

/** The schedule of an alarm as a reading. A delay is one only at the instant from which it counts. */
function storedReading({ kind, fireAt, delaySeconds, cronExpr, options }: Alarm, zone: string, now: number): Reading {
  if (kind === 'once') {
    const isDelay = Number.isInteger(delaySeconds) && fireAt === now + delaySeconds! * 1000;
    return isDelay ? { kind: 'delay', seconds: delaySeconds! } : { kind: 'instant', at: fireAt!, zone };
  }
  const { rrule } = optionsOf({ options });
  return { ...{ kind: 'series', zone }, ...(rrule === undefined ? { cron: cronExpr! } : { rrule }) };
}

function textOf(alarm: Alarm, zone: string, context: WordContext): string {
  if (alarm.kind === 'event') return `waits for ${waitsFor(alarm)}`;
  const { when } = optionsOf(alarm);
  const said = when === undefined ? undefined : reread(alarm, when, zone, context);
  return readingText(said ?? storedReading(alarm, zone, context.now), context.now);
}

/** The zone by whose clock an alarm fires; `undefined` where none matters. */
export function timezoneOf({ kind, cronExpr, timezone }: Alarm): string | undefined {
  const isByClock = kind === 'rrule' || (kind === 'cron' && usesWallClock(cronExpr!));
  return timezone ?? (isByClock ? DEFAULT_TIMEZONE : undefined);
}

/**
 * How the schedule of an alarm is understood, whether it was given in words or in fields.
 *
 * @param zone in which the instants of an alarm are shown that has no zone
 */
export function readingOf(
  alarm: Alarm,
  zone: string | null | undefined,
  { calendars, ...context }: WordContext & { readonly calendars: Calendars | undefined },
): WhenReading {
  const timezone = timezoneOf(alarm) ?? zone ?? DEFAULT_TIMEZONE;
  const next = nextInstants(alarm, context.now, NEXT_SHOWN, calendars);
  return { text: textOf(alarm, timezone, context), timezone, next: next.map((at) => formatWithOffset(timezone, at)) };
}
