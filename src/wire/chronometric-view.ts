/**
 * Chronometric's views of a day and a week for people: sessions with intent and summary, active time and time away. The
 * resources `chronometric://sessions/today` and `…/week` and `reveille time --json` return them. Within v0.1.x members
 * are only added.
 */
import { z } from 'zod';
import { duration, instant } from './chronometric.ts';
import { BREAK_LEVELS, DAYS_OF_WEEK } from './chronometric-words.ts';

/** `2026-06-15`; a logical day has the date on which it begins. */
const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);

/** An interval of a day. The intervals of a day are contiguous, from the first to the last activity. */
const intervalSchema = z.object({
  /** The person was active, or away: absent, asleep, or no client was running. */
  kind: z.enum(['active', 'away']),
  from: instant,
  to: instant,
  duration,
  /** The session it belongs to; `null` if none. */
  session_id: z.uuidv4().nullable(),
});

const daySessionSchema = z.object({
  session_id: z.uuidv4(),
  /** Verbatim. */
  intent: z.string(),
  /** Verbatim; `null` while the session is open, or if it was closed without one. */
  summary: z.string().nullable(),
  started_at: instant,
  /** `null` while it is open. */
  ended_at: instant.nullable(),
  /** The last tool call, or the last activity without a break since. */
  last_seen_at: instant,
  /** `auto_closed`: the next start closed it, at the time of its last activity. */
  ending: z.enum(['open', 'ended', 'auto_closed']),
  /** Of the whole session so far. */
  duration,
  active_duration: duration,
  /** The part of the session in this day. A session may begin before the day and end after it. */
  in_day: z.object({ from: instant, to: instant, duration, active_duration: duration }),
});

const totalsSchema = z.object({
  sessions: z.int().min(0),
  active_duration: duration,
  /** Active time that belongs to a session. */
  active_in_sessions_duration: duration,
  /** Time away between the first and the last activity of each day. */
  away_duration: duration,
});

/** State of the open session with regard to a break. */
const breakStateSchema = z.object({
  /** Active time since the session began or the last real break ended. */
  elapsed: duration,
  /** The applied threshold: the profile's, or the ladder's first level. */
  threshold_minutes: z.int().min(1),
  /** Whether a break is due now. */
  due: z.boolean(),
  /** Active time left until a break is due; absent if one is due. */
  due_in: duration.optional(),
  /** How firmly the break is suggested; absent if none is due. */
  level: z.enum(BREAK_LEVELS).optional(),
  protected_window_label: z.string().optional(),
});

/** Context that a prompt hook gives to an agent: `reveille time hook --json`. */
export const promptContextSchema = z.object({
  now: instant,
  day_of_week: z.enum(DAYS_OF_WEEK),
  /** IANA */
  timezone: z.string(),
  /** Since the previous prompt; `null` if there was none, absent if it cannot be determined. */
  since_last_prompt: duration.nullable().optional(),
  /** The open session; `null` if none, absent if it cannot be determined. */
  session: z
    .object({
      started_at: instant,
      last_seen_at: instant,
      active_duration: duration,
      /** The last activity was on an earlier day, or before a break that still lasts. */
      forgotten: z.boolean(),
      /** Only on request. */
      intent: z.string().optional(),
    })
    .nullable()
    .optional(),
  break: breakStateSchema.optional(),
  /** Why members are missing. */
  problems: z.array(z.string()),
  /** The whole context as one line for an agent. */
  line: z.string(),
});
export type PromptContext = z.output<typeof promptContextSchema>;

export const dayViewSchema = z.object({
  date,
  day_of_week: z.enum(DAYS_OF_WEEK),
  /** IANA */
  timezone: z.string(),
  /** Half-open interval: beginning of this logical day and of the next. */
  from: instant,
  to: instant,
  /** When the view was made. */
  as_of: instant,
  /** Oldest first. */
  sessions: z.array(daySessionSchema),
  stretches: z.array(intervalSchema),
  totals: totalsSchema,
  /** Absent for days other than today, and if no session is open. */
  break: breakStateSchema.optional(),
  /**
   * A session that is still open although its last activity was before this day. The next start closes it at that time.
   */
  forgotten_session: daySessionSchema
    .pick({ session_id: true, intent: true, started_at: true, last_seen_at: true })
    .optional(),
  /** Why the profile is not applied; absent if it is. */
  profile_unreadable: z.string().optional(),
});
export type DayView = z.output<typeof dayViewSchema>;

/** Seven logical days; the last one is the requested day. */
export const weekViewSchema = z.object({
  from: instant,
  to: instant,
  timezone: z.string(),
  as_of: instant,
  /** Oldest first. */
  days: z.array(dayViewSchema).length(7),
  /** A session that spans several days counts once. */
  totals: totalsSchema,
  profile_unreadable: z.string().optional(),
});
export type WeekView = z.output<typeof weekViewSchema>;
