/** A user's profile as data. `read-profile.ts` reads it from YAML; no I/O here. */
import type { CalendarPhase, Day, EnergyZone } from '../../wire/chronometric-words.ts';

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
