/**
 * The five tools of chronometric (docs/reference/chronometric.md): arguments and results. Their JSON Schemas are published under
 * `schemas/chronometric/v0.1.0/`; within v0.1.x members are only added.
 */
import { z } from 'zod';
import {
  BREAK_LEVELS,
  CALENDAR_PHASES,
  DAYS_OF_WEEK,
  ENERGY_ZONES,
  HYPERFOCUS_SIGNALS,
  SESSION_TEXT_MAX_BYTES,
  SUGGESTED_ACTIONS,
} from './chronometric-vocabulary.ts';

/** RFC 3339 with the offset of its zone. A local time is never written with `Z` or without an offset. */
export const instant = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?([+-]\d{2}:\d{2}|Z)$/)
  .describe('ISO 8601 instant with its offset');
/** ISO 8601 duration in hours, minutes and seconds. */
export const duration = z
  .string()
  .regex(/^PT(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S)$/)
  .describe('ISO 8601 duration');

export const timeContextSchema = z.object({
  now: instant.describe("The person's wall clock, with its offset from UTC"),
  day_of_week: z.enum(DAYS_OF_WEEK).describe('The calendar day of now'),
  time_since_last_prompt: duration
    .nullable()
    .describe('Time since the last recorded prompt of the person; null when no prompt is recorded'),
  current_session_length: duration
    .nullable()
    .describe('From the start of the open session to now; null when none is open, or when it cannot be read'),
  active_length: duration
    .nullable()
    .describe('Active time in the session, without sleep and absence; null when current_session_length is null'),
  energy_zone: z
    .enum(ENERGY_ZONES)
    .describe(
      'A rough estimate from the time of day; unknown when the profile cannot be read or defines no zone for it',
    ),
  effective_end_of_day_local: z
    .string()
    .regex(/^\d{2}:\d{2}$/)
    .optional()
    .describe('When the person wants to stop, on their wall clock; absent when the profile does not set it'),
  past_end_of_day: z
    .boolean()
    .optional()
    .describe("True from the end of the day until the person's next logical day begins, after midnight"),
  calendar_phase: z.enum(CALENDAR_PHASES).optional().describe('The phase that the profile sets for these weeks'),
  deadline_cluster_awareness: z.boolean().optional().describe('The person wants to be reminded of close deadlines'),
  motor_fatigue_aware: z.boolean().optional().describe('The person wants no suggestion that requires movement'),
  state_unavailable: z
    .string()
    .optional()
    .describe('Why prompts and sessions cannot be read; absent when they can, and null then means that there is none'),
});
export type TimeContext = z.output<typeof timeContextSchema>;

const sessionId = z.uuidv4().describe('Assigned by the server, for reference; no tool accepts it');
const startedAt = instant.describe('When it was started');
const wholeLength = duration.describe('From start to end');
const activeLength = duration.describe('Active time in the session');
const verbatimIntent = z.string().describe('Verbatim');

export const sessionStartedSchema = z.object({
  session_id: sessionId,
  started_at: startedAt,
  intent: verbatimIntent,
  auto_closed_prior_session: z
    .object({
      session_id: sessionId,
      started_at: startedAt,
      ended_at: instant.describe('Time of its last activity, which may be long ago'),
      duration: wholeLength,
      active_duration: activeLength,
      intent: verbatimIntent,
    })
    .optional()
    .describe('The session that was still open and was closed by this start; absent when none was open'),
});
export type SessionStarted = z.output<typeof sessionStartedSchema>;

export const sessionEndedSchema = z.object({
  session_id: sessionId,
  started_at: startedAt,
  ended_at: instant,
  duration: wholeLength,
  active_duration: activeLength,
  intent: verbatimIntent,
  summary: z.string().nullable().describe('Verbatim; null when none was given'),
});
export type SessionEnded = z.output<typeof sessionEndedSchema>;

export const breakRequestSchema = z.object({
  elapsed: duration.describe('From the start of the session to now'),
  active_elapsed: duration.describe(
    'Active time since the session began or the last real break ended; threshold and ladder are compared with it',
  ),
  prior_intent: z.string().describe('The intent of the session, verbatim: quote it, do not rephrase it'),
  suggested_action: z.enum(SUGGESTED_ACTIONS),
  level: z
    .enum(BREAK_LEVELS)
    .describe('How firmly to suggest it; none: the threshold is reached, but no level of the ladder'),
  threshold_minutes: z
    .int()
    .min(1)
    .describe("The applied threshold: the profile's if it sets one, otherwise the caller's"),
  threshold_from: z
    .enum(['profile', 'caller'])
    .describe('Source of the threshold; the profile takes precedence over the caller'),
  reason: z
    .object({
      rule: z
        .enum(['elapsed', 'past_end_of_day', 'protected_window'])
        .describe('Why the level was chosen: the ladder, the ladder raised by one level, or a protected window'),
      rung: z.int().min(0).max(3).describe('Number of ladder levels that have been reached'),
      profile_line: z.int().min(1).optional().describe('The line of the profile that sets this'),
      sentence: z.string().describe('The reason as a sentence'),
    })
    .describe('The reason, for a person who asks for it'),
  protected_window_label: z.string().optional().describe("The person's name for the protected time"),
});
export type BreakRequest = z.output<typeof breakRequestSchema>;
/** Structured content of the tool's result. Its text is the JSON of `result` alone, `null` included. */
export const breakAnswerSchema = z.object({
  result: breakRequestSchema
    .nullable()
    .describe('null when no break is warranted; the text of the result is the JSON of this member alone'),
});

export const idleStatusSchema = z.object({
  consent_granted: z.boolean().describe('Whether the profile allows reading the idle time of the operating system'),
  os_idle_duration: duration.optional().describe('Since the last key or pointer movement; absent when it is not known'),
  hyperfocus_signal: z
    .enum(HYPERFOCUS_SIGNALS)
    .describe(
      'active: at the computer and in contact with the agent; hyperfocus_elsewhere: at the computer, in other windows; distraction_or_break: away',
    ),
  sampled_at: instant.optional().describe('When the operating system was read'),
  source: z.string().optional().describe('The probe that answered'),
  unavailable: z.string().optional().describe('Why no probe answered'),
});
export type IdleStatus = z.output<typeof idleStatusSchema>;

export const emptyArgumentsSchema = z.strictObject({});
export const sessionStartArgumentsSchema = z.strictObject({
  intent: z
    .string()
    .min(1)
    .max(SESSION_TEXT_MAX_BYTES)
    .regex(/\S/)
    .describe("The person's goal in their own words; stored verbatim, up to 16 KiB of UTF-8"),
});
export const sessionEndArgumentsSchema = z.strictObject({
  summary: z
    .string()
    .max(SESSION_TEXT_MAX_BYTES)
    .optional()
    .describe('The outcome of the session; stored verbatim, up to 16 KiB of UTF-8'),
});
export const breakArgumentsSchema = z.strictObject({
  threshold_minutes: z
    .int()
    .min(1)
    .describe('Minutes of active time after which a break is due; a threshold in the profile takes precedence'),
});
