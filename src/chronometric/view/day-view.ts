/** A logical day and the week up to it, for people and agents. Pure, except for reading the given state. */

import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { DayView, WeekView } from '../../wire/chronometric-view.ts';
import { dayOfWeek } from '../../wire/chronometric-vocabulary.ts';
import type { ChronometricState, Session } from '../state/state.ts';
import { breakView } from '../tools/break-request.ts';
import type { CallContext } from '../tools/call-context.ts';
import { extentOf, type Interval, intervalsOf, lengthOf, within } from './intervals.ts';
import { type DayRule, dayOf, daysUntil, type LogicalDate } from './logical-days.ts';

/** The used part of the state. */
export type Recorded = Pick<ChronometricState, 'sessionsBetween' | 'spansBetween'>;

const DAYS_OF_WEEK = 7;

/** The starts of a user's days. */
export function dayRuleOf({ profile, timezone }: Pick<CallContext, 'profile' | 'timezone'>): DayRule {
  return { timezone, begins: profile.logicalDayStart };
}

type Day = {
  readonly date: LogicalDate;
  readonly sessions: readonly Session[];
  readonly intervals: readonly Interval[];
  /** The open session, cut at its last sign before this day began. */
  readonly forgotten?: Session | undefined;
};

const isOpen = ({ endedAt }: Session) => endedAt === undefined;

function readDay(state: Recorded, date: LogicalDate): Day {
  const { from, to } = date;
  const found = state.sessionsBetween(from, to);
  const sessions = found.filter((session) => session.startedAt >= from || extentOf(session).to > from);
  const intervals = intervalsOf(date, sessions, state.spansBetween(from, to));
  return { date, sessions, intervals, forgotten: found.find((one) => isOpen(one) && !sessions.includes(one)) };
}

const activeOf = (intervals: readonly Interval[]) => intervals.filter(({ kind }) => kind === 'active');

function totalsOf(days: readonly Day[]): DayView['totals'] {
  const intervals = days.flatMap((day) => day.intervals);
  const active = activeOf(intervals);
  const inSessions = active.filter(({ sessionId }) => sessionId !== undefined);
  return {
    sessions: new Set(days.flatMap((day) => day.sessions.map(({ id }) => id))).size,
    active_duration: isoDuration(lengthOf(active)),
    active_in_sessions_duration: isoDuration(lengthOf(inSessions)),
    away_duration: isoDuration(lengthOf(intervals) - lengthOf(active)),
  };
}

function sessionView(session: Session, { date, intervals }: Day, timezone: string): DayView['sessions'][number] {
  const instant = (epochMs: number) => formatWithOffset(timezone, epochMs);
  const extent = extentOf(session);
  const inDay = within(date, extent);
  const active = activeOf(intervals).filter(({ sessionId }) => sessionId === session.id);
  return {
    session_id: session.id,
    intent: session.intent,
    summary: session.summary ?? null,
    started_at: instant(session.startedAt),
    ended_at: session.endedAt === undefined ? null : instant(session.endedAt),
    last_seen_at: instant(session.lastSeenAt),
    ending: session.ending ?? 'open',
    duration: isoDuration(extent.to - extent.from),
    active_duration: isoDuration(session.activeMs),
    in_day: {
      from: instant(inDay.from),
      to: instant(inDay.to),
      duration: isoDuration(inDay.to - inDay.from),
      active_duration: isoDuration(lengthOf(active)),
    },
  };
}

function forgottenView({ id, intent, startedAt, lastSeenAt }: Session, timezone: string) {
  return {
    session_id: id,
    intent,
    started_at: formatWithOffset(timezone, startedAt),
    last_seen_at: formatWithOffset(timezone, lastSeenAt),
  };
}

function viewOf(day: Day, context: CallContext): DayView {
  const { timezone, now, unreadable } = context;
  const { date } = day;
  const instant = (epochMs: number) => formatWithOffset(timezone, epochMs);
  const isPresent = now >= date.from && now < date.to;
  const open = isPresent ? day.sessions.find(isOpen) : undefined;
  const breakStatus = open && breakView(open, context);
  const forgotten = isPresent ? day.forgotten : undefined;
  return {
    date: date.date,
    day_of_week: dayOfWeek(date.day),
    timezone,
    from: instant(date.from),
    to: instant(date.to),
    as_of: instant(now),
    sessions: day.sessions.map((session) => sessionView(session, day, timezone)),
    stretches: day.intervals.map(({ kind, from, to, sessionId }) => ({
      kind,
      from: instant(from),
      to: instant(to),
      duration: isoDuration(to - from),
      session_id: sessionId ?? null,
    })),
    totals: totalsOf([day]),
    ...(breakStatus && { break: breakStatus }),
    ...(forgotten && { forgotten_session: forgottenView(forgotten, timezone) }),
    ...(unreadable !== undefined && { profile_unreadable: unreadable }),
  };
}

/**
 * The logical day of an instant.
 *
 * @param at epoch milliseconds; the present by default
 * @throws ReveilleError as reading the state does
 */
export function viewDay(state: Recorded, context: CallContext, at: number = context.now): DayView {
  return viewOf(readDay(state, dayOf(dayRuleOf(context), at)), context);
}

/** Seven logical days, the last one with the instant; as {@link viewDay}. */
export function viewWeek(state: Recorded, context: CallContext, at: number = context.now): WeekView {
  const dates = daysUntil(dayRuleOf(context), at, DAYS_OF_WEEK);
  const days = dates.map((date) => readDay(state, date));
  const { timezone, now, unreadable } = context;
  const instant = (epochMs: number) => formatWithOffset(timezone, epochMs);
  return {
    from: instant(dates[0]!.from),
    to: instant(dates.at(-1)!.to),
    timezone,
    as_of: instant(now),
    days: days.map((day) => viewOf(day, context)),
    totals: totalsOf(days),
    ...(unreadable !== undefined && { profile_unreadable: unreadable }),
  };
}
