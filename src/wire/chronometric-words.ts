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

export const CHRONOMETRIC_ERRORS = [
  'INTERNAL_CLOCK_UNAVAILABLE',
  'PROFILE_UNREADABLE',
  'SESSION_ALREADY_OPEN',
  'NO_OPEN_SESSION',
  'INVALID_THRESHOLD',
  'INTENT_REQUIRED',
  'INTENT_TOO_LONG',
  'SUMMARY_TOO_LONG',
  /** Reserved: `idle_status` says `consent_granted: false` instead. */
  'CONSENT_REQUIRED',
] as const;
export type ChronometricErrorCode = (typeof CHRONOMETRIC_ERRORS)[number];

export const INTENT_MAX_CHARACTERS = 500;
export const SUMMARY_MAX_CHARACTERS = 2000;

export const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
export type Day = (typeof DAYS)[number];

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

export const BREAK_LEVELS = ['gentle', 'nudge', 'hard'] as const;
export type BreakLevel = (typeof BREAK_LEVELS)[number];

export const HYPERFOCUS_SIGNALS = ['active', 'hyperfocus_elsewhere', 'distraction_or_break', 'unknown'] as const;
