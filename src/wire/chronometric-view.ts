/**
 * What chronometric shows people of a day and of a week: sessions with what was meant and what came of it, active and
 * away. The resources `chronometric://sessions/today` and `…/week` and `reveille time --json` answer with it. Within
 * v0.1.x it only grows.
 */
import { z } from 'zod';
import { duration, instant } from './chronometric.ts';
import { BREAK_LEVELS, DAYS_OF_WEEK } from './chronometric-words.ts';

/** `2026-06-15`; a logical day has the date on which it begins. */
const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);

/** A part of a day. Stretches follow one another without a gap, from the first to the last sign of somebody. */
const stretchSchema = z.object({
  /** Somebody was there, or nobody was: away, asleep, or no client was running. */
  kind: z.enum(['active', 'away']),
  from: instant,
  to: instant,
  duration,
  /** The session that it belongs to, `null` for none. */
  session_id: z.uuidv4().nullable(),
});

const daySessionSchema = z.object({
  session_id: z.uuidv4(),
  /** Verbatim. */
  intent: z.string(),
  /** Verbatim; `null` while it is open, and when it was closed without one. */
  summary: z.string().nullable(),
  started_at: instant,
  /** `null` while it is open. */
  ended_at: instant.nullable(),
  /** The last tool call, or sign of life without a break since. */
  last_seen_at: instant,
  /** `auto_closed` by the next start, at the moment it was last seen. */
  ending: z.enum(['open', 'ended', 'auto_closed']),
  /** Of the whole session, as far as it has gone. */
  duration,
  active_duration: duration,
  /** What of it lies in this day: sessions may go on past its beginning and its end. */
  in_day: z.object({ from: instant, to: instant, duration, active_duration: duration }),
});

const totalsSchema = z.object({
  sessions: z.int().min(0),
  active_duration: duration,
  /** Active time that belongs to a session. */
  active_in_sessions_duration: duration,
  /** Between the first and the last sign of somebody on each day. */
  away_duration: duration,
});

/** How the open session stands to a break. */
const breakOutlookSchema = z.object({
  /** Active time since the session began or the last real break ended. */
  elapsed: duration,
  /** What is applied: the profile's, or the first rung of the ladder. */
  threshold_minutes: z.int().min(1),
  /** Whether one is due now. */
  due: z.boolean(),
  /** How much active time is left until one is due; absent when it is. */
  due_in: duration.optional(),
  /** How hard it would be put; absent when none is due. */
  level: z.enum(BREAK_LEVELS).optional(),
  protected_window_label: z.string().optional(),
});

/** What a prompt hook tells an agent: `reveille time hook --json`. */
export const promptContextSchema = z.object({
  now: instant,
  day_of_week: z.enum(DAYS_OF_WEEK),
  /** IANA */
  timezone: z.string(),
  /** Since the prompt before this one; `null` when none is known, absent when it cannot be said. */
  since_last_prompt: duration.nullable().optional(),
  /** The open session; `null` for none, absent when it cannot be said. */
  session: z
    .object({
      started_at: instant,
      last_seen_at: instant,
      active_duration: duration,
      /** Whether it was last seen on an earlier day, or before a break that still goes on. */
      forgotten: z.boolean(),
      /** Only when it is asked for. */
      intent: z.string().optional(),
    })
    .nullable()
    .optional(),
  break: breakOutlookSchema.optional(),
  /** Why something is missing. */
  problems: z.array(z.string()),
  /** All of it for an agent to read. */
  line: z.string(),
});
export type PromptContext = z.output<typeof promptContextSchema>;

export const dayViewSchema = z.object({
  date,
  day_of_week: z.enum(DAYS_OF_WEEK),
  /** IANA */
  timezone: z.string(),
  /** Half-open: where the logical day begins, and where the next one does. */
  from: instant,
  to: instant,
  /** When it was looked at. */
  as_of: instant,
  /** Oldest first. */
  sessions: z.array(daySessionSchema),
  stretches: z.array(stretchSchema),
  totals: totalsSchema,
  /** Absent on other days than the present one, and where no session is open. */
  break: breakOutlookSchema.optional(),
  /**
   * A session that is still open although it was last seen before this day began: the next start will close it there.
   */
  forgotten_session: daySessionSchema
    .pick({ session_id: true, intent: true, started_at: true, last_seen_at: true })
    .optional(),
  /** Why the profile does not count; absent when it does. */
  profile_unreadable: z.string().optional(),
});
export type DayView = z.output<typeof dayViewSchema>;

/** Seven logical days, the last one the day that was asked for. */
export const weekViewSchema = z.object({
  from: instant,
  to: instant,
  timezone: z.string(),
  as_of: instant,
  /** Oldest first. */
  days: z.array(dayViewSchema).length(7),
  /** A session that goes on past the end of a day counts once. */
  totals: totalsSchema,
  profile_unreadable: z.string().optional(),
});
export type WeekView = z.output<typeof weekViewSchema>;
