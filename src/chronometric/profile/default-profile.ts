/** The profile of a user without declarations. */
import type { DayRules, Ladder, MinuteOfDay, Profile, ZoneWindow } from './profile.ts';

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
