/**
 * The vocabulary of chronometric's contract (docs/reference/chronometric.md). It imports no schema library, because programs that
 * must start quickly use it.
 */

export const CHRONOMETRIC_TOOLS = [
  'get_time_context',
  'mark_session_start',
  'mark_session_end',
  'request_break_if_needed',
  'idle_status',
] as const;
export type ChronometricTool = (typeof CHRONOMETRIC_TOOLS)[number];

/** Each tool has its own version; a change to one leaves the others unchanged. */
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

/** Maximum length of an intent and of a summary, in bytes of UTF-8. */
export const SESSION_TEXT_MAX_BYTES = 16 * 1024;

/** Spelling in profiles. */
export const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
export type Day = (typeof DAYS)[number];
/** Spelling in answers. */
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

/** `none`: below the ladder's first level; the break follows from a threshold only. */
export const BREAK_LEVELS = ['none', 'gentle', 'nudge', 'hard'] as const;
export type BreakLevel = (typeof BREAK_LEVELS)[number];

export const HYPERFOCUS_SIGNALS = ['active', 'hyperfocus_elsewhere', 'distraction_or_break', 'unknown'] as const;
