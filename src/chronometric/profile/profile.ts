/** A user's profile as data. `read-profile.ts` reads it from YAML; no I/O here. */
import type { CalendarPhase, Day, EnergyZone } from '../../wire/chronometric-vocabulary.ts';

/** A wall-clock time in minutes since midnight, 0 to 1439. */
export type MinuteOfDay = number;
export const MINUTES_OF_DAY = 1440;

/** Half-open: `from` is included, `to` is not; `to` at or before `from` wraps midnight. */
export type LocalWindow = { readonly from: MinuteOfDay; readonly to: MinuteOfDay };

/** A value and its line in the profile; no line for a default. */
export type Declared<T> = { readonly value: T; readonly line?: number };

export type ProtectedWindow = LocalWindow & {
  readonly label: string;
  /** All days when absent. The day is the one on which the window starts. */
  readonly days?: readonly Day[];
  readonly line: number;
};

export type ZoneWindow = LocalWindow & { readonly zone: EnergyZone; readonly line?: number };

/** Minutes of gentle, nudge and hard, rising. */
export type Ladder = readonly [number, number, number];

/** Fields that may differ by weekday. */
export type DayRules = {
  /** Replaces the caller's threshold, 15 to 240. */
  readonly breakMinutes?: Declared<number>;
  readonly ladder: Declared<Ladder>;
  readonly endOfDay?: Declared<MinuteOfDay>;
  /** The first matching one counts; `unknown` without a match. */
  readonly zones: readonly ZoneWindow[];
};

export type Profile = {
  /** The file; absent without one. */
  readonly path?: string;
  readonly osIdleConsent: boolean;
  /** The rules of a day, with its weekday's overrides. */
  rulesOf(day: Day): DayRules;
  /** The start of the user's day, 04:00 by default. */
  readonly logicalDayStart: MinuteOfDay;
  /** The time of an alarm whose time in words names a day alone; 09:00 when absent. */
  readonly usualTime?: MinuteOfDay;
  readonly overlapPolicy: 'auto_close' | 'error';
  readonly calendarPhase?: CalendarPhase;
  readonly deadlineClusterAwareness?: boolean;
  readonly motorFatigueAware?: boolean;
  readonly protectedWindows: readonly ProtectedWindow[];
  /** IANA; the computer's own when absent. */
  readonly timezone?: string;
};

export type ProfileProblem = {
  readonly severity: 'error' | 'warning';
  readonly line: number;
  readonly column: number;
  /** Names field, value and remedy. */
  readonly sentence: string;
};

/** Read on every call; cheap without a change of the file. */
export type ProfileSource = {
  read(): { readonly profile: Profile; readonly problems: readonly ProfileProblem[]; readonly unreadable?: string };
};

const at = (hour: number, minute = 0): MinuteOfDay => hour * 60 + minute;

/** The zones of a day by the clock alone; the rest is the night. */
export const DEFAULT_ZONES: readonly ZoneWindow[] = [
  { zone: 'morning_peak', from: at(5), to: at(12) },
  { zone: 'midday', from: at(12), to: at(14) },
  { zone: 'afternoon_dip', from: at(14), to: at(16, 30) },
  { zone: 'evening_quiet', from: at(16, 30), to: at(19, 30) },
];

/** The rest of a day without zones, at its end: as a window it is the whole day. */
export const REMAINDER: ZoneWindow = { zone: 'night_owl_caution', from: 0, to: 0 };

export const DEFAULT_LADDER: Ladder = [60, 90, 120];
export const DEFAULT_LOGICAL_DAY_START: MinuteOfDay = at(4);

const RULES: DayRules = {
  ladder: { value: DEFAULT_LADDER },
  zones: [...DEFAULT_ZONES, REMAINDER],
};

export const DEFAULT_PROFILE: Profile = {
  osIdleConsent: false,
  rulesOf: () => RULES,
  logicalDayStart: DEFAULT_LOGICAL_DAY_START,
  overlapPolicy: 'auto_close',
  protectedWindows: [],
};

/** The default for an unreadable profile: the user may have declared other zones. */
export const UNREADABLE_PROFILE: Profile = { ...DEFAULT_PROFILE, rulesOf: () => ({ ...RULES, zones: [] }) };
