/**
 * Changes of zones that the time zone database of an older Node lacks. The test beside this file compares every zone
 * with the database in the package moment-timezone, and names the zones that need a row.
 */
const MINUTE_MS = 60_000;

/** The version of the IANA database that the rows bring every Node to, and the day on which it was published. */
export const CORRECTED_TO = { version: '2026f', published: '2026-10-29' } as const;

type Correction = {
  /** The version that has the change. */
  readonly version: string;
  readonly zones: string;
  readonly from: string;
  /** The zone keeps this offset, in minutes, or has the clock of another zone. */
  readonly keeps: number | string;
  readonly until?: string;
};

const CORRECTIONS: readonly Correction[] = [
  { version: '2026b', zones: 'Europe/Chisinau Europe/Tiraspol', from: '2025-01-01T00:00Z', keeps: 'Europe/Bucharest' },
  { version: '2026b', zones: 'America/Vancouver Canada/Pacific', from: '2026-11-01T09:00Z', keeps: -7 * 60 },
  {
    version: '2026c',
    zones: 'America/Edmonton America/Yellowknife Canada/Mountain',
    from: '2026-11-01T08:00Z',
    keeps: -6 * 60,
  },
  { version: '2026c', zones: 'Africa/Casablanca Africa/El_Aaiun', from: '2026-09-20T01:00Z', keeps: 0 },
  { version: '2026d', zones: 'America/Inuvik', from: '2026-11-01T08:00Z', keeps: -6 * 60 },
  {
    version: '2026e',
    zones: 'America/Winnipeg America/Rainy_River Canada/Central',
    from: '2026-11-01T07:00Z',
    keeps: -5 * 60,
  },
  {
    version: '2026f',
    zones: 'America/Havana Cuba',
    from: '2026-11-01T05:00Z',
    keeps: -4 * 60,
    until: '2027-03-14T05:00Z',
  },
];

/** A correction of one zone. `keeps` is an offset in milliseconds, or another zone. */
type ZoneCorrection = { readonly from: number; readonly until: number; readonly keeps: number | string };

/**
 * The corrections of a zone.
 *
 * @param version of the database in use, as in `process.versions.tz`
 */
export function correctionsOf(timezone: string, version: string | undefined): readonly ZoneCorrection[] {
  const name = timezone.toLowerCase();
  return CORRECTIONS.filter(
    (row) => (version ?? '') < row.version && row.zones.toLowerCase().split(' ').includes(name),
  ).map(({ from, until, keeps }) => ({
    from: Date.parse(from),
    until: until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until),
    keeps: typeof keeps === 'number' ? keeps * MINUTE_MS : keeps,
  }));
}
