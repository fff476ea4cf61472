/**
 * A profile at a moment of the wall clock: the logical day, the zone, and protection; and the layers of declared zones.
 * Pure.
 */
import { wallReading } from '../../kit/clock/wall-clock.ts';
import { DAYS, type Day, type EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import {
  type DayRules,
  DEFAULT_ZONES,
  MINUTES_OF_DAY,
  type MinuteOfDay,
  type Profile,
  type ProtectedWindow,
  REMAINDER,
  type ZoneWindow,
} from './profile.ts';
import { dayBefore, formatWindow, windowBegan, windowContains } from './time-of-day.ts';

/** A weekday of the calendar, and its minute. */
export type LocalTime = { readonly day: Day; readonly minute: MinuteOfDay };

/**
 * @param timezone IANA
 * @param instant epoch milliseconds
 * @throws RangeError for an unknown zone
 */
export function localTimeAt(timezone: string, instant: number): LocalTime {
  const { weekday, minuteOfDay } = wallReading(timezone, instant);
  return { day: DAYS[weekday]!, minute: minuteOfDay };
}

export type LogicalDay = {
  /** The weekday whose rules apply: at half past midnight that of the evening before. */
  readonly day: Day;
  readonly rules: DayRules;
  /** From the end of day until the logical day ends; absent without a declared end of day. */
  readonly pastEndOfDay?: boolean;
};

/** Minutes of the logical day at a minute of the calendar day. */
const sinceStart = (start: MinuteOfDay, minute: MinuteOfDay) => (minute - start + MINUTES_OF_DAY) % MINUTES_OF_DAY;

export function logicalDay(profile: Profile, { day: calendarDay, minute }: LocalTime): LogicalDay {
  const start = profile.logicalDayStart;
  const day = minute < start ? dayBefore(calendarDay) : calendarDay;
  const rules = profile.rulesOf(day);
  if (rules.endOfDay === undefined) return { day, rules };
  return { day, rules, pastEndOfDay: sinceStart(start, minute) >= sinceStart(start, rules.endOfDay.value) };
}

/**
 * The energy zone of a moment, by the rules of its logical day.
 *
 * @param day the calendar day
 * @returns `unknown` in a gap of the profile's own zones
 */
export function zoneAt(profile: Profile, day: Day, minute: MinuteOfDay): EnergyZone {
  const { zones } = logicalDay(profile, { day, minute }).rules;
  return zones.find((zone) => windowContains(zone, minute))?.zone ?? 'unknown';
}

/**
 * The first protected window of a moment.
 *
 * @param day the calendar day; a window past midnight belongs to the day on which it started
 */
export function protectedWindowAt(profile: Profile, day: Day, minute: MinuteOfDay): ProtectedWindow | undefined {
  return profile.protectedWindows.find((window) => {
    const began = windowBegan(window, day, minute);
    return began !== undefined && (window.days?.includes(began) ?? true);
  });
}

const MINUTES = Array.from({ length: MINUTES_OF_DAY }, (_, minute) => minute);

const zoneOf = (zones: readonly ZoneWindow[], minute: number) =>
  zones.find((window) => windowContains(window, minute))?.zone;

/**
 * Overlays zones. A zone in a layer has all its hours there: it loses those of lower layers. Of overlapping zones, the
 * upper one counts. The rest is `night_owl_caution`, unless that has hours of its own.
 *
 * @param layers uppermost first; the zones of the clock are below them all
 */
export function layZones(...layers: readonly (readonly ZoneWindow[])[]): readonly ZoneWindow[] {
  const laid: ZoneWindow[] = [];
  for (const layer of [...layers, DEFAULT_ZONES]) {
    const named = new Set(laid.map(({ zone }) => zone));
    laid.push(...layer.filter(({ zone }) => !named.has(zone)));
  }
  return laid.some(({ zone }) => zone === REMAINDER.zone) ? laid : [...laid, REMAINDER];
}

/** An interval of the day in one zone; none in a gap. */
type ZoneInterval = { readonly from: number; readonly to: number; readonly zone?: EnergyZone };

/** Cuts a list of values per minute into intervals. */
function intervalsByMinute<T>(at: (minute: number) => T): { from: number; to: number; value: T }[] {
  const found: { from: number; to: number; value: T }[] = [];
  for (const minute of MINUTES) {
    const value = at(minute);
    const last = found.at(-1);
    if (last && last.value === value) last.to = minute + 1;
    else found.push({ from: minute, to: minute + 1, value });
  }
  return found;
}

/** A day from midnight to midnight, zone by zone. */
export function zonesOfDay(zones: readonly ZoneWindow[]): readonly ZoneInterval[] {
  return intervalsByMinute((minute) => zoneOf(zones, minute)).map(({ from, to, value }) => ({
    ...{ from, to },
    ...(value !== undefined && { zone: value }),
  }));
}

/** Hours of the clock's day in none of these zones. */
export function gapsIn(zones: readonly ZoneWindow[]): readonly string[] {
  const declared = zones.filter((window) => window !== REMAINDER);
  return intervalsByMinute(
    (minute) => zoneOf(declared, minute) === undefined && zoneOf(DEFAULT_ZONES, minute) !== undefined,
  )
    .filter(({ value }) => value)
    .map(formatWindow);
}

/** Pairs of overlapping windows in different zones, the later one of the list first. */
export function overlaps(zones: readonly ZoneWindow[]): { later: number; earlier: number; shared: string }[] {
  const found: { later: number; earlier: number; shared: string }[] = [];
  for (const [later, one] of zones.entries())
    for (const [earlier, other] of zones.slice(0, later).entries()) {
      const meet = windowContains(one, other.from) || windowContains(other, one.from);
      if (one.zone === other.zone || !meet) continue;
      const shared = intervalsByMinute((minute) => windowContains(one, minute) && windowContains(other, minute));
      const hours = shared.filter(({ value }) => value).map(formatWindow);
      if (hours.length > 0) found.push({ later, earlier, shared: hours.join(' and ') });
    }
  return found;
}
