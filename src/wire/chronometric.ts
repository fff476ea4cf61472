/**
 * The five tools of chronometric (docs/contracts.md §9): what goes in and comes out. JSON Schemas of these are
 * published under `schemas/chronometric/v0.1.0/`; within v0.1.x they only grow.
 */
import { z } from 'zod';
import {
  BREAK_LEVELS,
  CALENDAR_PHASES,
  DAYS_OF_WEEK,
  ENERGY_ZONES,
  HYPERFOCUS_SIGNALS,
  SUGGESTED_ACTIONS,
  WORDS_MAX_BYTES,
} from './chronometric-words.ts';

/** RFC 3339 with the offset of the zone it is meant in, never `Z` for a local time and never naive. */
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
    .describe('Since the person last sent a prompt that was told of here; null when no prompt is known'),
  current_session_length: duration
    .nullable()
    .describe('From the start of the open session to now; null when none is open, or nothing is known of it'),
  active_length: duration
    .nullable()
    .describe('Of the session, the time in which somebody was there: no sleep, no absence; null as the length is'),
  energy_zone: z
    .enum(ENERGY_ZONES)
    .describe('A coarse guess from the time of day; unknown when the profile cannot be read or names no zone for it'),
  effective_end_of_day_local: z
    .string()
    .regex(/^\d{2}:\d{2}$/)
    .optional()
    .describe('When the person wants to stop, on their wall clock; absent when they have not said'),
  past_end_of_day: z
    .boolean()
    .optional()
    .describe('True from the end of the day until the next day begins for the person, which is after midnight'),
  calendar_phase: z.enum(CALENDAR_PHASES).optional().describe('What the person says these weeks are about'),
  deadline_cluster_awareness: z.boolean().optional().describe('The person wants to hear of deadlines that lie close'),
  motor_fatigue_aware: z.boolean().optional().describe('The person wants no suggestion that asks for movement'),
  state_unavailable: z
    .string()
    .optional()
    .describe('Why nothing is known of prompts and sessions; absent when what is null is so because there is none'),
});
export type TimeContext = z.output<typeof timeContextSchema>;

const sessionId = z.uuidv4().describe('Made by the server, for reference; no tool takes it');
const startedAt = instant.describe('When it was started');
const wholeLength = duration.describe('From start to end');
const activeLength = duration.describe('Of that, the time in which somebody was there');
const intentKept = z.string().describe('Word for word as it was given');

export const sessionStartedSchema = z.object({
  session_id: sessionId,
  started_at: startedAt,
  intent: intentKept,
  auto_closed_prior_session: z
    .object({
      session_id: sessionId,
      started_at: startedAt,
      ended_at: instant.describe('When it was last seen, which may be long ago'),
      duration: wholeLength,
      active_duration: activeLength,
      intent: intentKept,
    })
    .optional()
    .describe('The session that was still open and is closed now; absent when none was'),
});
export type SessionStarted = z.output<typeof sessionStartedSchema>;

export const sessionEndedSchema = z.object({
  session_id: sessionId,
  started_at: startedAt,
  ended_at: instant,
  duration: wholeLength,
  active_duration: activeLength,
  intent: intentKept,
  summary: z.string().nullable().describe('Word for word as it was given; null when none was'),
});
export type SessionEnded = z.output<typeof sessionEndedSchema>;

export const breakRequestSchema = z.object({
  elapsed: duration.describe('From the start of the session to now'),
  active_elapsed: duration.describe(
    'Active time since the session began or the last real break ended; threshold and ladder are held against it',
  ),
  prior_intent: z.string().describe('What the person set out to do, word for word: quote it, do not rephrase it'),
  suggested_action: z.enum(SUGGESTED_ACTIONS),
  level: z
    .enum(BREAK_LEVELS)
    .describe('How clearly to say it; none: the threshold is reached, and no rung of the ladder'),
  threshold_minutes: z
    .int()
    .min(1)
    .describe("The threshold that was applied: the caller's, or the profile's where it declares one"),
  threshold_from: z
    .enum(['profile', 'caller'])
    .describe('Whose threshold that is; the one of the profile goes before the one of the caller'),
  reason: z
    .object({
      rule: z
        .enum(['elapsed', 'past_end_of_day', 'protected_window'])
        .describe('What the level follows from: the ladder, the ladder one rung harder, or a protected window'),
      rung: z.int().min(0).max(3).describe('How many rungs of the ladder have been reached'),
      profile_line: z.int().min(1).optional().describe('The line of the profile that this comes from'),
      sentence: z.string().describe('The same in words'),
    })
    .describe('Why, for a person who asks'),
  protected_window_label: z.string().optional().describe('What the person calls the time that they keep free'),
});
export type BreakRequest = z.output<typeof breakRequestSchema>;
/** What the tool answers as structured content; its text is the JSON of `result` alone, `null` included. */
export const breakAnswerSchema = z.object({
  result: breakRequestSchema
    .nullable()
    .describe('null when no break is warranted; the text of the answer is the JSON of this member alone'),
});

export const idleStatusSchema = z.object({
  consent_granted: z.boolean().describe('Whether the profile allows looking at the idle time of the operating system'),
  os_idle_duration: duration.optional().describe('Since the last key or pointer movement; absent when it is not known'),
  hyperfocus_signal: z
    .enum(HYPERFOCUS_SIGNALS)
    .describe(
      'active: at the machine and in touch; hyperfocus_elsewhere: at the machine, but in other windows; distraction_or_break: away',
    ),
  sampled_at: instant.optional().describe('When the operating system was asked'),
  source: z.string().optional().describe('The probe that answered'),
  unavailable: z.string().optional().describe('Why no probe did'),
});
export type IdleStatus = z.output<typeof idleStatusSchema>;

export const emptyArgumentsSchema = z.strictObject({});
export const sessionStartArgumentsSchema = z.strictObject({
  intent: z
    .string()
    .min(1)
    .max(WORDS_MAX_BYTES)
    .regex(/\S/)
    .describe("What is to be done, in the person's own words; kept word for word, up to 16 KiB of UTF-8"),
});
export const sessionEndArgumentsSchema = z.strictObject({
  summary: z
    .string()
    .max(WORDS_MAX_BYTES)
    .optional()
    .describe('What became of it; kept word for word, up to 16 KiB of UTF-8'),
});
export const breakArgumentsSchema = z.strictObject({
  threshold_minutes: z
    .int()
    .min(1)
    .describe('Minutes of active time after which a break is due; a threshold in the profile counts instead'),
});
