/**
 * The words that chronometric's contract is made of (docs/contracts.md §9). No schema library stands here, for what has
 * to start quickly.
 */

export const CHRONOMETRIC_TOOLS = [
  'get_time_context',
  'mark_session_start',
  'mark_session_end',
  'request_break_if_needed',
  'idle_status',
] as const;
export type ChronometricTool = (typeof CHRONOMETRIC_TOOLS)[number];

/** Each tool has a version of its own: one that changes leaves the others where they are. */
export const CHRONOMETRIC_TOOL_VERSIONS: Readonly<Record<ChronometricTool, string>> = {
  get_time_context: '0.1.2',
  mark_session_start: '0.1.2',
  mark_session_end: '0.1.2',
  request_break_if_needed: '0.1.2',
  idle_status: '0.1.1',
};

/** The sources name six; the rest are additions of Reveille. */
export const CHRONOMETRIC_ERRORS = [
  'INTERNAL_CLOCK_UNAVAILABLE',
  'PROFILE_UNREADABLE',
  'SESSION_ALREADY_OPEN',
  'NO_OPEN_SESSION',
  'INVALID_THRESHOLD',
  /** Reserved: `idle_status` says `consent_granted: false` instead. */
  'CONSENT_REQUIRED',
  'INTENT_REQUIRED',
  'INTENT_TOO_LONG',
  'SUMMARY_TOO_LONG',
] as const;
export type ChronometricErrorCode = (typeof CHRONOMETRIC_ERRORS)[number];

/** The longest intent, and the longest summary, in bytes of UTF-8. */
export const WORDS_MAX_BYTES = 16 * 1024;

/** As a profile writes them. */
export const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
export type Day = (typeof DAYS)[number];
/** As answers write them. */
export const DAYS_OF_WEEK = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const;

export function dayOfWeek(day: Day): (typeof DAYS_OF_WEEK)[number] {
  return DAYS_OF_WEEK[DAYS.indexOf(day)]!;
}

export const ENERGY_ZONES = [
  'morning_peak',
  'midday',
  'afternoon_dip',
  'evening_quiet',
  'night_owl_caution',
  'unknown',
] as const;
export type EnergyZone = (typeof ENERGY_ZONES)[number];

export const CALENDAR_PHASES = ['teaching', 'marking', 'exam', 'deadlines', 'break'] as const;
export type CalendarPhase = (typeof CALENDAR_PHASES)[number];

export const SUGGESTED_ACTIONS = [
  'stand_and_stretch',
  'hydrate',
  'walk_outside',
  'switch_context',
  'end_session',
] as const;

/** `none` is below the first rung of the ladder: only a threshold asks for the break. */
export const BREAK_LEVELS = ['none', 'gentle', 'nudge', 'hard'] as const;
export type BreakLevel = (typeof BREAK_LEVELS)[number];

export const HYPERFOCUS_SIGNALS = ['active', 'hyperfocus_elsewhere', 'distraction_or_break', 'unknown'] as const;
