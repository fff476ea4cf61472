/** Fields that may differ by weekday, and `weekday_overrides`. Pure. */
import { DAYS, type Day, ENERGY_ZONES, type EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import { nearestOf } from '../../wire/edit-distance.ts';
import { gapsIn, layZones, overlaps } from './day-rules.ts';
import { type Field, warnOfUnknown } from './field.ts';
import {
  type DayRules,
  DEFAULT_LADDER,
  type Declared,
  type Ladder,
  MINUTES_OF_DAY,
  type MinuteOfDay,
  type ProtectedWindow,
  type ZoneWindow,
} from './profile.ts';
import { formatTimeOfDay, readWindow, readWindowEnd, windowOf } from './time-of-day.ts';

const FIELDS = ['label', 'from', 'to', 'days'] as const;
const MOST = 50;
const LONGEST_LABEL = 200;

/** `friday` or `fri`, in any case. */
function readDay(name: string): Day | undefined {
  const small = name.toLowerCase();
  return DAYS.find((day) => day === small || day.slice(0, 3) === small);
}

function readDays(field: Field): readonly Day[] | undefined {
  const items = field.items('a list of days such as [monday, friday]', 7);
  const days = items?.map((item) => {
    const name = item.text('a day such as monday');
    const day = name === undefined ? undefined : readDay(name);
    if (name === undefined || day !== undefined) return day;
    return item.wrong(`must be a day such as ${nearestOf(name.toLowerCase(), DAYS) ?? 'monday'} (got ${item.shown})`);
  });
  // Without one of its days, the window would apply on wrong days.
  return days?.every((day) => day !== undefined) ? [...new Set(days)] : undefined;
}

function readLabel(field: Field): string | undefined {
  const label = field.text('a text that names the window, such as "dinner"');
  if (label === undefined || [...label].length <= LONGEST_LABEL) return label;
  return field.wrong(`must have at most ${LONGEST_LABEL} characters (it has ${[...label].length})`);
}

function readProtectedWindow(entry: Field): ProtectedWindow | undefined {
  const members = entry.members('a window such as {label: dinner, from: "18:00", to: "19:30"}');
  if (members === undefined) return undefined;
  warnOfUnknown(members, FIELDS);
  const missing = FIELDS.filter((name) => name !== 'days' && !members.has(name));
  for (const name of missing) entry.wrong(`has no ${name}; it needs label, from and to`);
  const [labelled, begins, ends, on] = FIELDS.map((name) => members.get(name));
  const [label, from, to] = [labelled && readLabel(labelled), begins?.time(), ends?.time(readWindowEnd)];
  const days = on && readDays(on);
  if (label === undefined || from === undefined || to === undefined || (on && days === undefined)) return undefined;
  const window = windowOf(from, to);
  if (!window) return ends!.wrong('must differ from its from; the whole day is from "00:00" to "24:00"');
  return { label, ...window, ...(days && { days }), line: entry.line };
}

/** @returns the valid ones; each of the others is a problem */
export function readProtectedWindows(field: Field): readonly ProtectedWindow[] | undefined {
  if (Array.isArray(field.value) && field.value.length === 0) return [];
  return field
    .items('a list of windows, each with label, from and to', MOST)
    ?.map(readProtectedWindow)
    .filter((window) => window !== undefined);
}

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
