/** Time zones: accepted names, the offset from UTC at an instant, and the zone of this machine. */
import { realpathSync } from 'node:fs';
import { editDistance } from '../../wire/edit-distance.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { correctionsOf } from './zone-corrections.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

/**
 * Offsets are computed and cached in pieces of this length, aligned to the epoch. Within a piece they are sampled once
 * a day: since 1970, two changes of a zone are at least a week apart.
 */
const PIECE_MS = 128 * DAY_MS;

/**
 * An interval `[start, end)` with one offset: wall clock = instant + offset, all in milliseconds. Neighbouring spans
 * may have the same offset.
 */
export type Span = { readonly start: number; readonly end: number; readonly offset: number };

/** A zone's wall clock. */
export type Zone = {
  spanAt(instant: number): Span;
};

/** Three-letter names in the IANA database. `Intl` accepts more, from ICU, with unexpected meanings: BST is Dhaka. */
const THREE_LETTER_ZONES = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));

/** Whether a name may be in the IANA database, which has fewer names than `Intl` accepts. */
function isPlausible(timezone: string): boolean {
  if (/^[A-Za-z]{3}$/.test(timezone)) return THREE_LETTER_ZONES.has(timezone.toUpperCase());
  return /^(?!SystemV\/)[A-Za-z][A-Za-z0-9_+/-]*$/i.test(timezone);
}

/** Formats an instant with the zone's offset at its end: `1/1/2026, GMT+01:00`. */
function offsetFormat(timezone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' });
}

/** Whether a name is in the IANA database and known to this process. */
export function isZone(timezone: string): boolean {
  if (!isPlausible(timezone)) return false;
  if (zones.has(timezone.toLowerCase())) return true;
  try {
    offsetFormat(timezone);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

function readOffset(format: Intl.DateTimeFormat, instant: number): number {
  const match = OFFSET.exec(format.format(instant));
  if (!match) throw new ReveilleError('internal', `no offset in ${showValue(format.format(instant))}`);
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = match;
  const size = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * SECOND_MS;
  return sign === '-' ? -size : size;
}

/** The offset of a zone at an instant, in milliseconds. */
type OffsetReader = (instant: number) => number;

/**
 * Reads the offsets of a zone from `Intl`, corrected where its database is too old.
 *
 * @param version of that database
 */
export function offsetReader(timezone: string, version = process.versions.tz): OffsetReader {
  const format = offsetFormat(timezone);
  const corrections = correctionsOf(timezone, version).map(({ from, until, keeps }) => {
    const other = typeof keeps === 'string' ? offsetFormat(keeps) : undefined;
    return { from, until, offsetAt: (instant: number) => (other ? readOffset(other, instant) : Number(keeps)) };
  });
  return (instant) =>
    corrections.find(({ from, until }) => from <= instant && instant < until)?.offsetAt(instant) ??
    readOffset(format, instant);
}

/** The first instant in `(before, after]`, to the second, at which the offset differs from the one at `before`. */
function changeBetween(read: OffsetReader, before: number, after: number): number {
  const offset = read(before);
  let low = before / SECOND_MS;
  let high = after / SECOND_MS;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (read(middle * SECOND_MS) === offset) low = middle;
    else high = middle;
  }
  return high * SECOND_MS;
}

function spansOfPiece(timezone: string, piece: number): Span[] {
  // Rules of long ago are expanded in UTC; reading offsets through centuries takes seconds.
  if (/^UTC$/i.test(timezone)) return [{ start: piece * PIECE_MS, end: (piece + 1) * PIECE_MS, offset: 0 }];
  // Created for every piece: formats use much memory to keep, and few are created a year.
  const read = offsetReader(timezone);
  const spans: Span[] = [];
  const end = (piece + 1) * PIECE_MS;
  let start = piece * PIECE_MS;
  let offset = read(start);
  for (let day = start; day < end; day += DAY_MS) {
    const offsetNextDay = read(day + DAY_MS);
    while (offset !== offsetNextDay) {
      const change = changeBetween(read, Math.max(start, day), day + DAY_MS);
      spans.push({ start, end: change, offset });
      start = change;
      offset = read(change);
    }
  }
  if (start < end) spans.push({ start, end, offset });
  return spans;
}

/** Cached zones by lower-case name: at most as many as `Intl` has names. */
const zones = new Map<string, Zone>();

/** The wall clock of any zone that `Intl` knows. @throws RangeError for an unknown zone */
function knownZone(timezone: string): Zone {
  const known = zones.get(timezone.toLowerCase());
  if (known) return known;
  offsetFormat(timezone);
  const pieces = new Map<number, Span[]>();
  const zone: Zone = {
    spanAt(instant) {
      const piece = Math.floor(instant / PIECE_MS);
      let spans = pieces.get(piece);
      if (!spans) {
        spans = spansOfPiece(timezone, piece);
        pieces.set(piece, spans);
      }
      let index = 0;
      while (instant >= spans[index]!.end) index++;
      return spans[index]!;
    },
  };
  zones.set(timezone.toLowerCase(), zone);
  return zone;
}

/**
 * The wall clock of a zone. Names are case-insensitive, as the IANA database requires.
 *
 * @throws ReveilleError `invalid_request` with the value and a remedy
 */
export function zoneOf(timezone: string): Zone {
  if (zones.has(timezone.toLowerCase()) ? !isPlausible(timezone) : !isZone(timezone)) throw unknownZone(timezone);
  return knownZone(timezone);
}

/**
 * The zone's offset from UTC, in milliseconds; positive if its wall clock is ahead.
 *
 * @param timezone a name that `Intl` knows
 * @throws RangeError for an unknown zone
 */
export function offsetAt(timezone: string, instant: number): number {
  return knownZone(timezone).spanAt(instant).offset;
}

/** The first instant after `instant` at which the zone's offset changes. The change must be no later than `until`. */
export function nextChange(timezone: string, instant: number, until: number): number {
  const zone = knownZone(timezone);
  const { offset, end } = zone.spanAt(instant);
  let change = end;
  while (change < until && zone.spanAt(change).offset === offset) change = zone.spanAt(change).end;
  return change;
}

function unknownZone(timezone: string): ReveilleError {
  const value = showValue(timezone);
  if (/^(utc|gmt)?[+-]\d/i.test(timezone)) {
    return new ReveilleError(
      'invalid_request',
      `timezone ${value} is a fixed offset, not an IANA zone; use a zone such as "Europe/Berlin", or "UTC"`,
    );
  }
  const nearest = nearestZone(timezone);
  const remedy = nearest ? `did you mean "${nearest}"?` : 'use one such as "Europe/Berlin", or "UTC"';
  return new ReveilleError('invalid_request', `timezone ${value} is not an IANA zone; ${remedy}`);
}

/** A zone whose name or city is at most two typing errors away. */
function nearestZone(timezone: string): string | undefined {
  const wanted = timezone.trim().toLowerCase().replaceAll(' ', '_');
  if (wanted.length < 4 || wanted.length > 40) return undefined;
  let nearest: string | undefined;
  let fewest = 3;
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const name = zone.toLowerCase();
    const city = name.slice(name.lastIndexOf('/') + 1);
    const errors = editDistance(wanted, wanted.includes('/') ? name : city);
    if (errors < fewest) {
      nearest = zone;
      fewest = errors;
    }
  }
  return nearest;
}

let cached: { readonly name: string | undefined } | undefined;

/** Read once: a process does not notice when its machine moves to another zone, and reading it is slow. */
function zoneOfSystem(): string | undefined {
  cached ??= { name: new Intl.DateTimeFormat().resolvedOptions().timeZone };
  // ICU's name for an unknown zone.
  return cached.name === 'Etc/Unknown' ? undefined : cached.name;
}

/** `/etc/localtime` is usually a link into the zoneinfo folder. */
function pathOfLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * The zone of `TZ`, which has a zone's name or file. Rules such as `CET-1CEST,M3.5.0,M10.5.0/3` are refused, because
 * ICU reads them as UTC.
 */
function zoneOfVariable(value: string): string | undefined {
  const named = value.replace(/^:/, '');
  const path = named.startsWith('/') ? pathOfLink(named) : named;
  const name = path.replace(/^.*\/zoneinfo\//, '').replace(/^posix\//, '');
  return isZone(name) ? name : undefined;
}

/**
 * @param value the variable `TZ`; without it, the system's zone is read
 * @returns an IANA name, or `undefined` without a known zone; there is no default
 */
export function machineZone(value: string | undefined): string | undefined {
  return value ? zoneOfVariable(value) : zoneOfSystem();
}
