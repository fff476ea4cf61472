/** Declared energy zones, over those of the clock. Pure. */
import type { EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import { DEFAULT_ZONES, MINUTES_OF_DAY, REMAINDER, type ZoneWindow } from './profile.ts';
import { formatWindow, windowContains } from './time-of-day.ts';

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
export type ZoneInterval = { readonly from: number; readonly to: number; readonly zone?: EnergyZone };

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
