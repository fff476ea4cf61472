/**
 * A logical day, cut into active and away intervals, and the week up to it. Pure, except for reading the given state.
 */
import { isoDuration } from '../../kit/clock/duration.ts';
import { dayAt, dayBeganAt, formatWithOffset, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import type { DayView, WeekView } from '../../wire/chronometric-view.ts';
import { DAYS, type Day, dayOfWeek } from '../../wire/chronometric-vocabulary.ts';
import type { MinuteOfDay } from '../profile/profile.ts';
import type { ActiveSpan, ChronometricState, Session } from '../state/state.ts';
import { breakView } from '../tools/break-request.ts';
import type { CallContext } from '../tools/call-context.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

type LogicalDate = Bounds & {
  /** `2026-06-15` */
  readonly date: string;
  readonly day: Day;
};

/** The start of days: IANA zone and minute. */
type DayRule = { readonly timezone: string; readonly begins: MinuteOfDay };

function dayOf({ timezone, begins }: DayRule, instant: number): LogicalDate {
  const number = dayAt(timezone, instant, begins);
  return {
    date: new Date(number * DAY_MS).toISOString().slice(0, 10),
    // 1 January 1970 was a Thursday.
    day: DAYS[(((number + 3) % 7) + 7) % 7]!,
    from: dayBeganAt(timezone, instant, begins),
    to: nextDayAfter(timezone, instant, begins),
  };
}

/** An instant in the middle of the logical day of a date; `undefined` for a date that the zone does not have. */
export function instantOf({ timezone, begins }: DayRule, date: string): number | undefined {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  // The 30th of February rolls over into March.
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return undefined;
  const wall = midnight + begins * MINUTE_MS + DAY_MS / 2;
  const instant = wall - offsetAt(timezone, wall);
  return dayAt(timezone, instant, begins) === midnight / DAY_MS ? instant : undefined;
}

/** The logical day of an instant and the days before it, oldest first. */
function daysUntil(rule: DayRule, instant: number, count: number): readonly LogicalDate[] {
  const days = [dayOf(rule, instant)];
  while (days.length < count) days.unshift(dayOf(rule, days[0]!.from - 1));
  return days;
}

/** Half-open. */
export type Bounds = { readonly from: number; readonly to: number };

type Interval = Bounds & {
  readonly kind: 'active' | 'away';
  /** Its session; none between sessions. */
  readonly sessionId?: string;
};

/** Start and end of a session as far as known: an open one ends at its last sign. */
export function extentOf({ startedAt, endedAt, lastSeenAt }: Session): Bounds {
  return { from: startedAt, to: Math.max(startedAt, endedAt ?? lastSeenAt) };
}

/** The part of an interval within another; it may be empty, and then `to` is not after `from`. */
export function within(bounds: Bounds, { from, to }: Bounds): Bounds {
  return { from: Math.max(from, bounds.from), to: Math.min(to, bounds.to) };
}

const isEmpty = ({ from, to }: Bounds) => to <= from;

/** Parts within the bounds, in order; ends are queried in the order of time. */
function inOrder<T extends Bounds>(bounds: Bounds, parts: readonly T[]): T[] {
  return parts
    .map((part) => ({ ...part, ...within(bounds, part) }))
    .filter((part) => !isEmpty(part))
    .sort((one, other) => one.from - other.from);
}

/** Returns for rising instants the part that applies: of overlapping ones, the last started one. */
function currentPart<T extends Bounds>(parts: readonly T[]): (instant: number) => T | undefined {
  const begun: T[] = [];
  let next = 0;
  return (instant) => {
    while (next < parts.length && parts[next]!.from <= instant) begun.push(parts[next++]!);
    while (begun.length > 0 && begun.at(-1)!.to <= instant) begun.pop();
    return begun.at(-1);
  };
}

/**
 * Cuts a day into adjacent intervals, from the first sign of presence to the last. Nothing is counted twice: of
 * overlapping sessions, as after a clock that stepped back, the last started one counts.
 *
 * @param bounds of the day
 * @param spans of presence, in any order
 */
export function intervalsOf(
  bounds: Bounds,
  sessions: readonly Session[],
  spans: readonly ActiveSpan[],
): readonly Interval[] {
  const known = inOrder(
    bounds,
    sessions.map((session) => ({ ...extentOf(session), id: session.id })),
  );
  const active = inOrder(bounds, spans);
  const cuts = [...new Set([...known, ...active].flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const sessionAt = currentPart(known);
  const activeAt = currentPart(active);
  const intervals: Interval[] = [];
  for (const [at, from] of cuts.slice(0, -1).entries()) {
    const to = cuts[at + 1]!;
    const kind = activeAt(from) ? 'active' : 'away';
    const sessionId = sessionAt(from)?.id;
    const last = intervals.at(-1);
    if (last?.kind === kind && last.sessionId === sessionId) intervals.splice(-1, 1, { ...last, to });
    else intervals.push({ kind, from, to, ...(sessionId !== undefined && { sessionId }) });
  }
  return intervals;
}

/** The total length of intervals, in milliseconds. */
export function lengthOf(intervals: readonly Bounds[]): number {
  return intervals.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** The used part of the state. */
export type Recorded = Pick<ChronometricState, 'sessionsBetween' | 'spansBetween'>;

const DAYS_OF_WEEK = 7;

/** The starts of a user's days. */
export function dayRuleOf({ profile, timezone }: Pick<CallContext, 'profile' | 'timezone'>): DayRule {
  return { timezone, begins: profile.logicalDayStart };
}

type RecordedDay = {
  readonly date: LogicalDate;
  readonly sessions: readonly Session[];
  readonly intervals: readonly Interval[];
  /** The open session, cut at its last sign before this day began. */
  readonly forgotten?: Session | undefined;
};

const isOpen = ({ endedAt }: Session) => endedAt === undefined;

function readDay(state: Recorded, date: LogicalDate): RecordedDay {
  const { from, to } = date;
  const found = state.sessionsBetween(from, to);
  const sessions = found.filter((session) => session.startedAt >= from || extentOf(session).to > from);
  const intervals = intervalsOf(date, sessions, state.spansBetween(from, to));
  return { date, sessions, intervals, forgotten: found.find((one) => isOpen(one) && !sessions.includes(one)) };
}

const activeOf = (intervals: readonly Interval[]) => intervals.filter(({ kind }) => kind === 'active');

function totalsOf(days: readonly RecordedDay[]): DayView['totals'] {
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

function sessionView(
  session: Session,
  { date, intervals }: RecordedDay,
  timezone: string,
): DayView['sessions'][number] {
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

function viewOf(day: RecordedDay, context: CallContext): DayView {
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
