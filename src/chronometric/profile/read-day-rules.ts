/** Fields that may differ by weekday, and `weekday_overrides`. Pure. */
import { DAYS, type Day, ENERGY_ZONES, type EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import { type Field, warnOfUnknown } from './field.ts';
import {
  type DayRules,
  DEFAULT_LADDER,
  type Declared,
  type Ladder,
  MINUTES_OF_DAY,
  type MinuteOfDay,
  type ZoneWindow,
} from './profile.ts';
import { readDay } from './protected-windows.ts';
import { formatTimeOfDay, readWindow } from './time-of-day.ts';
import { gapsIn, layZones, overlaps } from './zones.ts';

/** In the order of the fields of `Stated`. */
export const DAY_FIELDS = [
  'hyperfocus_break_minutes',
  'hyperfocus_ladder_minutes',
  'end_of_day_local',
  'zones',
] as const;

const STEPS = ['gentle', 'nudge', 'hard'] as const;
const LONGEST_STEP = MINUTES_OF_DAY;
const MOST_WINDOWS = 12;
/** An end this soon after the start of the day makes nearly all of it late. */
const SOON_MINUTES = 4 * 60;

const NAMED_ZONES = ENERGY_ZONES.filter((zone) => zone !== 'unknown');

function readLadder(field: Field): Ladder | undefined {
  const form = 'three rising numbers of minutes such as [60, 90, 120]';
  const steps = Array.isArray(field.value) ? field.items(form, STEPS.length) : stepsOf(field, form);
  if (steps === undefined) return undefined;
  if (steps.length !== STEPS.length) return field.wrong(`must be ${form} (got ${field.shown})`);
  const [gentle, nudge, hard] = steps.map((step) => step.wholeNumber(1, LONGEST_STEP));
  if (gentle === undefined || nudge === undefined || hard === undefined) return undefined;
  if (gentle < nudge && nudge < hard) return [gentle, nudge, hard];
  return field.wrong(`must rise from gentle to nudge to hard (got ${gentle}, ${nudge}, ${hard})`);
}

function stepsOf(field: Field, form: string): readonly Field[] | undefined {
  const members = field.members(`${form}, or gentle, nudge and hard with a number each`);
  if (members === undefined) return undefined;
  warnOfUnknown(members, STEPS);
  const steps = STEPS.flatMap((name) => members.get(name) ?? []);
  if (steps.length === STEPS.length) return steps;
  return field.wrong(
    `must have gentle, nudge and hard (${STEPS.filter((name) => !members.has(name)).join(' and ')} is missing)`,
  );
}

function readEndOfDay(field: Field, logicalDayStart: MinuteOfDay): MinuteOfDay | undefined {
  const end = field.time();
  if (end === undefined) return undefined;
  const start = formatTimeOfDay(logicalDayStart);
  if (end === logicalDayStart)
    return field.wrong(`must differ from logical_day_start, ${start}, or the whole day would be past its end`);
  const after = (end - logicalDayStart + MINUTES_OF_DAY) % MINUTES_OF_DAY;
  if (after >= SOON_MINUTES) return end;
  const evening = end < MINUTES_OF_DAY / 2 ? `; is ${formatTimeOfDay(end + MINUTES_OF_DAY / 2)} meant?` : '';
  field.wrong(
    `${formatTimeOfDay(end)} comes soon after the day begins at ${start}: nearly all of it is past its end${evening}`,
    'warning',
  );
  return end;
}

function readZoneWindows(field: Field, zone: EnergyZone): { window: ZoneWindow; field: Field }[] {
  const form = 'a window such as "08:30-12:00", or a list of windows';
  const items = Array.isArray(field.value) ? (field.items(form, MOST_WINDOWS) ?? []) : [field];
  return items.flatMap((item) => {
    const text = item.text(form);
    const read = text === undefined ? undefined : readWindow(text);
    if (read === undefined) return [];
    if (!('problem' in read)) return [{ window: { zone, ...read, line: item.line }, field: item }];
    item.wrong(`${read.problem} (got ${item.shown})`);
    return [];
  });
}

/** The windows as written; a problem of one does not affect the others. */
function readZones(field: Field): readonly ZoneWindow[] | undefined {
  const members = field.members('zones with their windows, such as {midday: "12:00-14:00"}');
  if (members === undefined) return undefined;
  const read = [...members.values()].flatMap((member) => {
    const name = member.path.at(-1);
    const zone = NAMED_ZONES.find((known) => known === name);
    if (zone !== undefined) return readZoneWindows(member, zone);
    // Not ignored as other unknown fields: the user means hours by it.
    member.unknownAmong(NAMED_ZONES);
    return [];
  });
  const windows = read.map(({ window }) => window);
  for (const { later, earlier, shared } of overlaps(windows)) {
    const other = read[earlier]!;
    read[later]!.field.wrong(
      `overlaps ${other.field.name} (line ${other.window.line}) at ${shared}; the first one counts`,
    );
  }
  return windows.length === 0 ? undefined : windows;
}

/** The declarations of one set of fields. */
type Stated = {
  readonly breakMinutes?: Declared<number>;
  readonly ladder?: Declared<Ladder>;
  readonly endOfDay?: Declared<MinuteOfDay>;
  readonly zones?: Declared<readonly ZoneWindow[]>;
};

function readStated(fields: ReadonlyMap<string, Field>, logicalDayStart: MinuteOfDay): Stated {
  const declared = <T>(name: (typeof DAY_FIELDS)[number], reader: (field: Field) => T | undefined) => {
    const field = fields.get(name);
    const value = field && reader(field);
    return field && value !== undefined ? { value, line: field.line } : undefined;
  };
  const breakMinutes = declared('hyperfocus_break_minutes', (field) => field.wholeNumber(15, 240));
  const ladder = declared('hyperfocus_ladder_minutes', readLadder);
  const endOfDay = declared('end_of_day_local', (field) => readEndOfDay(field, logicalDayStart));
  const zones = declared('zones', readZones);
  return {
    ...(breakMinutes && { breakMinutes }),
    ...(ladder && { ladder }),
    ...(endOfDay && { endOfDay }),
    ...(zones && { zones }),
  };
}

const zonesOf = (...stated: readonly (Stated | undefined)[]) =>
  layZones(...stated.flatMap((one) => (one?.zones ? [one.zones.value] : [])));

/** Hours of the day in no zone. */
function warnOfGaps(field: Field | undefined, zones: readonly ZoneWindow[]): void {
  const gaps = gapsIn(zones);
  if (field === undefined || gaps.length === 0) return;
  const counted = zones.some((zone) => zone.from === zone.to && zone.zone === 'night_owl_caution')
    ? 'night_owl_caution'
    : 'unknown';
  field.warn(
    `${field.name} leaves ${gaps.join(' and ')} without a zone, which counts as ${counted}; give these hours a zone`,
  );
}

function readOverrides(field: Field, base: Stated, logicalDayStart: MinuteOfDay): ReadonlyMap<Day, Stated> {
  const overrides = new Map<Day, Stated>();
  const members = field.members('days with what differs on them, such as {friday: {end_of_day_local: "16:00"}}');
  for (const [name, member] of members ?? []) {
    const day = readDay(name);
    if (day === undefined) {
      member.unknownAmong(DAYS);
      continue;
    }
    const fields = member.members('fields such as end_of_day_local');
    if (fields === undefined) continue;
    if (overrides.has(day)) {
      member.wrong(`is a second entry for ${day}; join both`);
      continue;
    }
    warnOfUnknown(fields, DAY_FIELDS);
    const stated = readStated(fields, logicalDayStart);
    overrides.set(day, stated);
    if (stated.zones) warnOfGaps(fields.get('zones'), zonesOf(stated, base));
  }
  return overrides;
}

function rulesFrom(base: Stated, override: Stated | undefined): DayRules {
  const { breakMinutes, ladder, endOfDay } = { ...base, ...override };
  return {
    ...(breakMinutes && { breakMinutes }),
    ladder: ladder ?? { value: DEFAULT_LADDER },
    ...(endOfDay && { endOfDay }),
    zones: zonesOf(override, base),
  };
}

export type DayReading = {
  rulesOf(day: Day): DayRules;
  /** The rules of days without an override. */
  readonly usual: DayRules;
  /** The lines of the valid fields, by their names; those of an override as `weekday_overrides.friday.zones`. */
  readonly declared: ReadonlyMap<string, number>;
};

function linesOf(prefix: string, { breakMinutes, ladder, endOfDay, zones }: Stated): [string, number][] {
  const stated = [breakMinutes, ladder, endOfDay, zones];
  return stated.flatMap((one, at) => (one?.line === undefined ? [] : [[`${prefix}.${DAY_FIELDS[at]}`, one.line]]));
}

export function readDayRules(fields: ReadonlyMap<string, Field>, logicalDayStart: MinuteOfDay): DayReading {
  const base = readStated(fields, logicalDayStart);
  if (base.zones) warnOfGaps(fields.get('zones'), zonesOf(base));
  const field = fields.get('weekday_overrides');
  const overrides = field ? readOverrides(field, base, logicalDayStart) : new Map<Day, Stated>();
  const rules = new Map(DAYS.map((day) => [day, rulesFrom(base, overrides.get(day))]));
  return {
    rulesOf: (day) => rules.get(day)!,
    usual: rulesFrom(base, undefined),
    declared: new Map([
      ...linesOf('chronometric', base),
      ...[...overrides].flatMap(([day, stated]) => linesOf(`chronometric.weekday_overrides.${day}`, stated)),
    ]),
  };
}
