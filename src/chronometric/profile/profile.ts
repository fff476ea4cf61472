/** What a person's profile says, understood. Reading it from YAML is `read-profile.ts`; nothing here does I/O. */
import type { CalendarPhase, Day, EnergyZone } from '../../wire/chronometric-words.ts';

/** A wall-clock time in minutes since midnight, 0 to 1439. */
export type MinuteOfDay = number;
export const MINUTES_OF_DAY = 1440;

/** Half-open: `from` is in it, `to` is not; `to` at or before `from` means that it wraps midnight. */
export type LocalWindow = { readonly from: MinuteOfDay; readonly to: MinuteOfDay };

/** A value and the line of the profile that it stands on; no line for a default. */
export type Declared<T> = { readonly value: T; readonly line?: number };

export type ProtectedWindow = LocalWindow & {
  readonly label: string;
  /** All days when absent. The day is the one on which the window begins. */
  readonly days?: readonly Day[];
  readonly line: number;
};

export type ZoneWindow = LocalWindow & { readonly zone: EnergyZone; readonly line?: number };

/** Minutes of gentle, nudge and hard, rising. */
export type Ladder = readonly [number, number, number];

/** What may differ from one weekday to another. */
export type DayRules = {
  /** Replaces the caller's threshold, 15 to 240. */
  readonly breakMinutes?: Declared<number>;
  readonly ladder: Declared<Ladder>;
  readonly endOfDay?: Declared<MinuteOfDay>;
  /** Of those that a minute lies in, the first one counts; `unknown` where there is none. */
  readonly zones: readonly ZoneWindow[];
};

export type Profile = {
  /** The file; absent where there is none. */
  readonly path?: string;
  readonly osIdleConsent: boolean;
  /** The rules of a day, its weekday's overrides applied. */
  rulesOf(day: Day): DayRules;
  /** When a new day begins for the person, 04:00 unless told. */
  readonly logicalDayStart: MinuteOfDay;
  readonly overlapPolicy: 'auto_close' | 'error';
  readonly calendarPhase?: CalendarPhase;
  readonly deadlineClusterAwareness?: boolean;
  readonly motorFatigueAware?: boolean;
  readonly protectedWindows: readonly ProtectedWindow[];
  /** IANA; the machine's own when absent. */
  readonly timezone?: string;
};

export type ProfileProblem = {
  readonly severity: 'error' | 'warning';
  readonly line: number;
  readonly column: number;
  /** Names field, value and remedy. */
  readonly sentence: string;
};

/** Read afresh on every call; cheap while the file has not changed. */
export type ProfileSource = {
  read(): { readonly profile: Profile; readonly problems: readonly ProfileProblem[]; readonly unreadable?: string };
};
