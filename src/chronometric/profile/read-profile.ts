/**
 * Reads a profile's text. A wrong field keeps its default and is a problem with its line. Only text that is not a YAML
 * mapping is unreadable. Pure.
 */
import { readYaml } from '../../kit/yaml/strict-yaml.ts';
import { quietHoursSchema } from '../../wire/budget.ts';
import { CALENDAR_PHASES } from '../../wire/chronometric-vocabulary.ts';
import { nearestOf } from '../../wire/edit-distance.ts';
import { Field, Findings, warnOfUnknown } from './field.ts';
import {
  type DayRules,
  DEFAULT_LOGICAL_DAY_START,
  DEFAULT_PROFILE,
  type Profile,
  type ProfileProblem,
  UNREADABLE_PROFILE,
} from './profile.ts';
import { DAY_FIELDS, readDayRules, readProtectedWindows } from './read-day-rules.ts';

export type ProfileReading = {
  readonly profile: Profile;
  /** In the order of the file. */
  readonly problems: readonly ProfileProblem[];
  /** Why nothing was read. */
  readonly unreadable?: string;
  /** The rules of a day without an override. */
  readonly usual: DayRules;
  /** The lines of the valid fields, by their names: `chronometric.weekday_overrides.friday.end_of_day_local`. */
  readonly declared: ReadonlyMap<string, number>;
};

const PRIVACY_FIELDS = ['os_idle_consent'] as const;
const CHRONOMETRIC_FIELDS = [
  ...DAY_FIELDS,
  'logical_day_start',
  'usual_time_local',
  'session_overlap_policy',
  'calendar_phase',
  'weekday_overrides',
  'protected_windows',
  'deadline_cluster_awareness',
  'motor_fatigue_aware',
  'timezone',
] as const;

const OVERLAP_POLICIES = ['auto_close', 'error'] as const;

const OWN_SECTIONS = { privacy: PRIVACY_FIELDS, chronometric: CHRONOMETRIC_FIELDS };
const SECTION_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(OWN_SECTIONS).flatMap(([section, names]) => names.map((name) => [name, section])),
);

const zoneSchema = quietHoursSchema.shape.timezone;

/** Only the YAML boolean `true` is consent. */
function readConsent(field: Field | undefined): boolean | undefined {
  if (field === undefined) return undefined;
  if (typeof field.value === 'boolean') return field.isDoubtful('warning') ? undefined : field.value;
  field.wrong(`is not the YAML boolean true and so no consent (got ${field.shown}); write true or false`, 'warning');
  return undefined;
}

function readTimezone(field: Field): string | undefined {
  const name = field.text('an IANA time zone such as Europe/Berlin');
  if (name === undefined || zoneSchema.safeParse(name).success) return name;
  return field.wrong(`must be an IANA time zone such as Europe/Berlin, or UTC (got ${field.shown})`);
}

/** Reads fields and records the lines of valid ones. */
class SectionReader {
  readonly lines = new Map<string, number>();
  readonly #fields: ReadonlyMap<string, Field>;

  constructor(fields: ReadonlyMap<string, Field>) {
    this.#fields = fields;
  }

  read<T>(name: string, reader: (field: Field) => T | undefined): T | undefined {
    const field = this.#fields.get(name);
    const value = field && reader(field);
    if (field && value !== undefined) this.lines.set(field.name, field.line);
    return value;
  }
}

/** Other programs use other sections of the file. Only a field that probably belongs to our sections causes a warning. */
function warnAtTop(members: ReadonlyMap<string, Field>): void {
  const sections = Object.keys(OWN_SECTIONS);
  for (const [name, field] of members) {
    const meant =
      SECTION_OF.get(name) ?? (sections.includes(name) ? undefined : nearestOf(name.toLowerCase(), sections));
    if (meant === undefined) continue;
    const remedy = SECTION_OF.has(name) ? `it belongs under ${meant}` : `did you mean ${meant}?`;
    field.warn(`unknown field "${name}"; ${remedy}`);
  }
}

/** Whether a line is in a section that this module reads. */
function isOurs(line: number, members: ReadonlyMap<string, Field>): boolean {
  const above = [...members.values()].filter((field) => field.line <= line).sort((one, other) => other.line - one.line);
  return above[0] === undefined || Object.hasOwn(OWN_SECTIONS, above[0].name);
}

function understand(members: ReadonlyMap<string, Field>, path: string | undefined): Omit<ProfileReading, 'problems'> {
  const section = (name: keyof typeof OWN_SECTIONS) => {
    const fields = members.get(name)?.shared() ?? new Map<string, Field>();
    warnOfUnknown(fields, OWN_SECTIONS[name], SECTION_OF);
    return fields;
  };
  const privacy = new SectionReader(section('privacy'));
  const fields = section('chronometric');
  const chronometric = new SectionReader(fields);
  warnAtTop(members);

  const logicalDayStart = chronometric.read('logical_day_start', (field) => field.time()) ?? DEFAULT_LOGICAL_DAY_START;
  const { rulesOf, usual, declared: dayFields } = readDayRules(fields, logicalDayStart);
  const calendarPhase = chronometric.read('calendar_phase', (field) => field.oneOf(CALENDAR_PHASES));
  const clusters = chronometric.read('deadline_cluster_awareness', (field) => field.boolean());
  const fatigue = chronometric.read('motor_fatigue_aware', (field) => field.boolean());
  const timezone = chronometric.read('timezone', readTimezone);
  const usualTime = chronometric.read('usual_time_local', (field) => field.time());
  const profile: Profile = {
    ...(path !== undefined && { path }),
    osIdleConsent: privacy.read('os_idle_consent', readConsent) ?? false,
    rulesOf,
    logicalDayStart,
    ...(usualTime !== undefined && { usualTime }),
    overlapPolicy:
      chronometric.read('session_overlap_policy', (field) => field.oneOf(OVERLAP_POLICIES)) ?? 'auto_close',
    ...(calendarPhase !== undefined && { calendarPhase }),
    ...(clusters !== undefined && { deadlineClusterAwareness: clusters }),
    ...(fatigue !== undefined && { motorFatigueAware: fatigue }),
    protectedWindows: chronometric.read('protected_windows', readProtectedWindows) ?? [],
    ...(timezone !== undefined && { timezone }),
  };
  return { profile, usual, declared: new Map([...privacy.lines, ...chronometric.lines, ...dayFields]) };
}

const inOrder = (problems: readonly ProfileProblem[]) =>
  problems.toSorted((one, other) => one.line - other.line || one.column - other.column);

/** The reading of an unreadable file. @param why a sentence that names the file */
export function unreadable(
  why: string,
  path: string | undefined,
  problems?: readonly ProfileProblem[],
): ProfileReading {
  return {
    profile: { ...UNREADABLE_PROFILE, ...(path !== undefined && { path }) },
    problems: problems ?? [{ severity: 'error', line: 1, column: 1, sentence: why }],
    unreadable: why,
    usual: UNREADABLE_PROFILE.rulesOf('monday'),
    declared: new Map(),
  };
}

/** The reading without a file. */
export const NO_PROFILE: ProfileReading = {
  profile: DEFAULT_PROFILE,
  problems: [],
  usual: DEFAULT_PROFILE.rulesOf('monday'),
  declared: new Map(),
};

/**
 * Reads the text of a profile. Never throws, whatever the text is.
 *
 * @param path the file's name in the reason why it is unreadable
 */
export function readProfile(text: string, path?: string): ProfileReading {
  const yaml = readYaml(text);
  const broken = inOrder(
    yaml.problems
      .filter((problem) => problem.broken)
      .map(({ line, column, sentence }) => ({ severity: 'error', line, column, sentence })),
  );
  const [first] = broken;
  const positionText = (at: { line: number; column: number }) => `${path ?? 'the profile'}:${at.line}:${at.column}`;
  if (first) return unreadable(`${positionText(first)}: ${first.sentence}`, path, broken);

  const findings = new Findings(yaml);
  const root = yaml.value ?? {};
  if (typeof root !== 'object' || Array.isArray(root)) {
    const sentence = 'must have fields, such as chronometric: with fields below it';
    const at = yaml.position([]);
    return unreadable(`${positionText(at)}: ${sentence}`, path, [{ severity: 'error', ...at, sentence }]);
  }
  const members = new Field(findings, [], root).shared();
  const reading = understand(members, path);
  for (const { path: of, line, column, sentence } of yaml.problems)
    if (of === undefined && isOurs(line, members))
      findings.problems.push({ severity: 'warning', line, column, sentence });
  return { ...reading, problems: inOrder(findings.problems) };
}
