/**
 * Alarms that wait for events. Events that wait for a wake are rows of their own (`AlarmStore.recordEvents`), numbered in
 * the order in which they came. The alarm keeps which of them wait, and one pending occurrence carries the first of them.
 * So the wakes of an alarm follow one another, and many events neither fill the occurrences nor hide other alarms. Pure.
 *
 * The occurrence of the alarm's own schedule is its deadline, or the next look at a source that cannot report by itself.
 */
import {
  type AlarmEvent,
  BATCH_DEFAULT,
  type EventState,
  LOOK_EVERY,
  LOOK_EVERY_LEAST,
} from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { fireIdOf } from '../../wire/fire-id.ts';
import { durationMs } from '../../wire/iso-duration.ts';
import { isLookedAt, isSubscription, type LookedAt, readPosition } from '../../wire/look.ts';
import {
  type Alarm,
  type AlarmState,
  isClaimed,
  NOT_DEFERRED,
  type Occurrence,
  scheduledOccurrence,
  withoutSchedule,
} from './alarm.ts';
import { LAST_INSTANT } from './occurrence.ts';
import { encodeOptions, optionsOf } from './options.ts';

/** Events of one alarm that may wait. */
export const EVENTS_WAITING_MAX = 10_000;
/** A batch waits at most for this many times `quiet_for`. */
const LONGEST_QUIET = 10;
/** Failed looks that are counted. */
const MOST_DOUBLINGS = 20;

/** What the fields `event`, `after` and `expect` of an alarm say. */
export type EventRules = {
  /** A batch waits until no event has come for so long. */
  readonly quietMs: number;
  /** Between two wakes. */
  readonly gapMs: number;
  /** Between an event and its wake. */
  readonly delayMs: number;
  /** Most events of one wake. */
  readonly batch: number;
  /** Without an event for so long, the alarm fires. */
  readonly deadlineMs: number | undefined;
  /** Between two looks at a source; `undefined` for one that reports by itself. */
  readonly lookMs: number | undefined;
  /** The alarm ends with its first wake. */
  readonly isOnce: boolean;
  /** Events only move the deadline (`expect`). */
  readonly isExpected: boolean;
};

const ms = (duration: string | undefined) => (duration === undefined ? undefined : durationMs(duration));

export function eventRulesOf(alarm: Pick<Alarm, 'options'>): EventRules {
  const { event, after, expect } = optionsOf(alarm);
  const collects = event?.quiet_for !== undefined || event?.at_most_every !== undefined;
  return {
    quietMs: ms(event?.quiet_for) ?? 0,
    gapMs: ms(event?.at_most_every) ?? 0,
    delayMs: (after?.delay_seconds ?? 0) * 1000,
    batch: event?.batch_up_to ?? (collects ? BATCH_DEFAULT : 1),
    deadlineMs: expect ? ms(expect.every)! + (ms(expect.grace) ?? 0) : ms(event?.deadline),
    lookMs: event && isLookedAt(event) ? ms(event.look_every ?? LOOK_EVERY) : undefined,
    isOnce: event !== undefined && expect === undefined && (event.repeat ?? 'once') === 'once',
    isExpected: expect !== undefined,
  };
}

const NO_EVENTS: EventState = { last: 0, next: 1, bytes: 0 };

export const eventStateOf = (alarm: Pick<Alarm, 'options'>): EventState => optionsOf(alarm).event_state ?? NO_EVENTS;

const withEventState = (alarm: Alarm, event_state: EventState): Alarm => ({
  ...alarm,
  options: encodeOptions({ ...optionsOf(alarm), event_state }),
});

/** How many events wait for a wake, those of the pending one included. */
export const waitingEvents = ({ last, next }: EventState): number => last - next + 1;

/** Whether an occurrence carries events. */
export function isEventFire(alarm: Pick<Alarm, 'kind' | 'options'>, { source, nominal }: Occurrence): boolean {
  return alarm.kind === 'event' && source === 'trigger' && eventStateOf(alarm).fire?.at === nominal;
}

/** When the alarm fires without an event; {@link LAST_INSTANT} without a deadline. */
export function deadlineOf(alarm: Pick<Alarm, 'options' | 'anchor'>): number {
  const { deadlineMs, isOnce, isExpected } = eventRulesOf(alarm);
  const state = eventStateOf(alarm);
  // What was expected of an alarm that has ended did not happen. Otherwise the wake of the last event ends the alarm.
  const endsByEvent = (state.ends && !isExpected) || (isOnce && waitingEvents(state) > 0);
  if (deadlineMs === undefined || endsByEvent) return LAST_INSTANT;
  return Math.min(Math.max(state.lastAt ?? 0, alarm.anchor) + deadlineMs, LAST_INSTANT);
}

/** Whether an occurrence of the schedule is a look at the source, and not the deadline. */
export function isLook(alarm: Alarm, { source, nominal }: Occurrence): boolean {
  const isOfSource = source === 'schedule' && alarm.kind === 'event' && eventRulesOf(alarm).lookMs !== undefined;
  return isOfSource && nominal < deadlineOf(alarm);
}

/** Whether an alarm ends with this wake. */
export function isLastWake(alarm: Alarm, settled: Occurrence): boolean {
  if (alarm.kind !== 'event') return false;
  const { isOnce } = eventRulesOf(alarm);
  const { ends, fire, last } = eventStateOf(alarm);
  if (settled.source === 'schedule') return !isLook(alarm, settled) && (isOnce || ends === true);
  return isEventFire(alarm, settled) && (isOnce || (ends === true && fire!.to === last));
}

const isUnsubscribed = (alarm: Pick<Alarm, 'options'>): boolean =>
  isSubscription(optionsOf(alarm).event) && eventStateOf(alarm).seen === undefined;

/**
 * The occurrence of the schedule after an instant: the deadline or, if that is earlier, the next look.
 *
 * @param waitMs until the next look; by default the alarm's own time, or none before the first subscription
 */
export function nextOfEvents(
  alarm: Pick<Alarm, 'id' | 'owner' | 'options' | 'anchor'>,
  after: number,
  waitMs = isUnsubscribed(alarm) ? 1 : eventRulesOf(alarm).lookMs,
): Occurrence {
  const hasLook = waitMs !== undefined && eventStateOf(alarm).ends !== true;
  const at = Math.min(deadlineOf(alarm), hasLook ? after + waitMs : LAST_INSTANT);
  return occurrenceOf(alarm, 'schedule', at, at);
}

/** The state with the next occurrence of the schedule, as {@link nextOfEvents}. The fire id of another pending occurrence is not used again. */
export function withNextOfEvents({ alarm, occurrences }: AlarmState, after: number, waitMs?: number): AlarmState {
  const others = withoutSchedule(occurrences);
  const taken = new Set(others.map(({ fireId }) => fireId));
  let { nominal: at } = nextOfEvents(alarm, after, waitMs);
  while (taken.has(fireIdOf(alarm.id, at))) at++;
  const next = occurrenceOf(alarm, 'schedule', at, alarm.status === 'paused' ? null : at);
  return { alarm, occurrences: [...others, next] };
}

function occurrenceOf(
  { id, owner }: Pick<Alarm, 'id' | 'owner'>,
  source: Occurrence['source'],
  at: number,
  dueAt: number | null,
): Occurrence {
  const instants = { scheduledFor: at, nominal: at, dueAt };
  const begin = { attempt: 0, missedCount: 0, fence: 0, claimedAt: null, ...NOT_DEFERRED, cause: null };
  return { fireId: fireIdOf(id, at), alarmId: id, owner, source, ...instants, ...begin };
}

/** When the waiting events are due. */
function dueOf(rules: EventRules, state: EventState, now: number): number {
  const isFull = waitingEvents(state) >= rules.batch;
  const quiet =
    rules.quietMs === 0 || isFull ? now : Math.min(now + rules.quietMs, state.since! + LONGEST_QUIET * rules.quietMs);
  const free = state.wokenAt === undefined ? quiet : state.wokenAt + rules.gapMs;
  return Math.max(quiet + rules.delayMs, free);
}

/** Adds the occurrence that carries the first waiting events. */
function opened({ alarm, occurrences }: AlarmState, now: number): AlarmState {
  const rules = eventRulesOf(alarm);
  const state = eventStateOf(alarm);
  const taken = new Set(occurrences.map(({ fireId }) => fireId));
  // Two events may come in one millisecond, and the first may have fired already.
  let at = Math.max(dueOf(rules, state, now), (state.lastFire ?? 0) + 1);
  while (taken.has(fireIdOf(alarm.id, at))) at++;
  const to = Math.min(state.next + rules.batch - 1, state.last);
  const fire = occurrenceOf(alarm, 'trigger', at, alarm.status === 'paused' ? null : at);
  return {
    alarm: withEventState(alarm, { ...state, fire: { at, to }, lastFire: at }),
    occurrences: [...occurrences, fire],
  };
}

/**
 * The schedule with its deadline moved. A wake that says that nothing came is not tried again once something has come.
 */
function rescheduled(state: AlarmState, now: number): AlarmState {
  const current = scheduledOccurrence(state);
  const { nominal } = nextOfEvents(state.alarm, now);
  if (!current || current.nominal === nominal) return state;
  const hasLooks = eventRulesOf(state.alarm).lookMs !== undefined;
  if (hasLooks && (current.nominal < nominal || isClaimed(current))) return state;
  return withNextOfEvents({ ...state, alarm: { ...state.alarm, failureCount: 0 } }, now);
}

const sizeOf = (events: readonly AlarmEvent[]) => events.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);

/** The alarm has had its last wake. A running attempt of its schedule is not retried. */
const endedBy = ({ alarm, occurrences }: AlarmState): AlarmState => ({
  alarm: { ...alarm, status: 'fired' },
  occurrences: withoutSchedule(occurrences),
});

/**
 * New events have come.
 *
 * @param events in their order, without known ones
 * @param isLast no further event can come: the alarm ends with the wake of the last one
 * @throws ReveilleError `conflict` when the alarm has ended, `rate_limited` when too many events wait
 */
export function withEvents(state: AlarmState, events: readonly AlarmEvent[], now: number, isLast = false): AlarmState {
  const { alarm } = state;
  if (alarm.status !== 'active' && alarm.status !== 'paused')
    throw new ReveilleError('conflict', `this alarm is ${alarm.status}; it takes no more events`);
  const rules = eventRulesOf(alarm);
  const before = eventStateOf(alarm);
  const ends = isLast || before.ends ? ({ ends: true } as const) : {};
  if (rules.isExpected) {
    const isMet = events.length > 0;
    const arrived = isMet && { lastAt: now, met: (before.met ?? 0) + events.length };
    const met = { ...state, alarm: withEventState(alarm, { ...before, ...arrived, ...ends }) };
    return ends.ends && isMet ? endedBy(met) : rescheduled(met, now);
  }
  if (events.length === 0) {
    if (!ends.ends) return state;
    const last = { ...state, alarm: withEventState(alarm, { ...before, ...ends }) };
    return waitingEvents(before) === 0 ? endedBy(last) : rescheduled(last, now);
  }
  const after: EventState = {
    ...before,
    ...ends,
    last: before.last + events.length,
    bytes: before.bytes + sizeOf(events),
    since: before.since ?? now,
    lastAt: now,
  };
  if (waitingEvents(after) > EVENTS_WAITING_MAX)
    throw new ReveilleError('rate_limited', `${EVENTS_WAITING_MAX} events of this alarm wait for a wake`, {
      retryAfterSeconds: 10,
    });
  const recorded = rescheduled({ ...state, alarm: withEventState(alarm, after) }, now);
  const pending = recorded.occurrences.find((one) => isEventFire(alarm, one));
  if (!pending) return opened(recorded, now);
  const { at, isFixed } = after.fire!;
  if (isFixed || isClaimed(pending) || pending.attempt > 0) return recorded;
  const to = Math.min(after.next + rules.batch - 1, after.last);
  const extended = { ...recorded, alarm: withEventState(recorded.alarm, { ...after, fire: { at, to } }) };
  // Only `quiet_for` moves what waits already.
  if (rules.quietMs === 0 || pending.heldReason !== null) return extended;
  return opened({ ...extended, occurrences: recorded.occurrences.filter((one) => one !== pending) }, now);
}

/** The numbers of the events that an occurrence carries. */
export function eventsOfFire(alarm: Pick<Alarm, 'options'>): { from: number; to: number; isFixed: boolean } {
  const { next, fire } = eventStateOf(alarm);
  const isSingle = eventRulesOf(alarm).batch === 1;
  return { from: next, to: fire!.to, isFixed: isSingle || fire!.isFixed === true };
}

/**
 * Fixes the events of the pending occurrence, before they are sent: every try carries the same.
 *
 * @param to the last one that fits into a wake; by default all that were added to the occurrence
 */
export function withFixedEvents(state: AlarmState, fireId: string, to?: number): AlarmState {
  const { alarm, occurrences } = state;
  const before = eventStateOf(alarm);
  const pending = occurrences.find((one) => one.fireId === fireId && isEventFire(alarm, one));
  if (!pending) return state;
  const { fire } = before;
  const last = Math.min(fire!.to, to ?? fire!.to);
  if (fire!.isFixed && fire!.to === last) return state;
  return { alarm: withEventState(alarm, { ...before, fire: { at: fire!.at, to: last, isFixed: true } }), occurrences };
}

/**
 * The state after the wake of some events, of the deadline, or of a look has ended.
 *
 * @param others the other pending occurrences
 * @param end `woken`: it was delivered at `at`; otherwise it was given up, missed or skipped
 */
export function afterEventFire(
  alarm: Alarm,
  settled: Occurrence,
  others: readonly Occurrence[],
  { at, isWoken }: { at: number; isWoken: boolean },
): AlarmState {
  const before = eventStateOf(alarm);
  const isOver = alarm.status === 'cancelled' || alarm.status === 'failed' || alarm.status === 'fired';
  // A skipped wake of an alarm that ends with its first wake was none.
  const isLast = isLastWake(alarm, settled) && (isWoken || before.ends === true);
  if (settled.source === 'schedule') {
    if (isOver) return { alarm, occurrences: others };
    if (isLast) return endedBy({ alarm, occurrences: others });
    const lastFire = Math.max(before.lastFire ?? 0, settled.nominal);
    const passed = { ...before, lastFire, lastAt: Math.max(at, settled.nominal) };
    const after = isLook(alarm, settled) ? alarm : withEventState(alarm, passed);
    return withNextOfEvents({ alarm: after, occurrences: others }, at);
  }
  const carried = before.fire!.to - before.next + 1;
  const left = waitingEvents(before) - carried;
  const { fire: _, since: __, ...rest } = before;
  const state: EventState = {
    ...rest,
    next: before.fire!.to + 1,
    bytes: left === 0 ? 0 : Math.round((before.bytes * left) / (left + carried)),
    ...(left > 0 && { since: at }),
    ...(isWoken && { wokenAt: at }),
  };
  const after = { alarm: withEventState(alarm, state), occurrences: others };
  if (isOver) return after;
  if (isLast) return endedBy(after);
  return left === 0 ? rescheduled(after, at) : opened(rescheduled(after, at), at);
}

/** A paused alarm is resumed: the deadline counts from now. @param cause of the fire of events that is due because of it */
export function resumedEvents({ alarm, occurrences }: AlarmState, now: number, cause: string): AlarmState {
  const active: Alarm = { ...alarm, status: 'active', failureCount: 0, updatedAt: now };
  const resumed = (one: Occurrence) =>
    one.nominal <= now ? { ...one, dueAt: now, cause } : { ...one, dueAt: one.nominal };
  const due = occurrences.map((one) => (isEventFire(alarm, one) ? resumed(one) : one));
  const counted = withEventState(active, { ...eventStateOf(alarm), lastAt: now });
  return withNextOfEvents({ alarm: counted, occurrences: due }, now);
}

/** The owner has triggered an alarm: no later occurrence has that instant. */
export function triggeredAt(alarm: Alarm, at: number): Alarm {
  if (alarm.kind !== 'event') return alarm;
  const state = eventStateOf(alarm);
  return at <= (state.lastFire ?? 0) ? alarm : withEventState(alarm, { ...state, lastFire: at });
}

/** Remembers what a look at the source has shown; `undefined`: nothing yet. */
export function withSeen(alarm: Alarm, seen: string | undefined): Alarm {
  const { seen: _, ...rest } = eventStateOf(alarm);
  return withEventState(alarm, { ...rest, ...(seen !== undefined && { seen }) });
}

/** Remembers how far a server of MCP Events has delivered; `undefined`: nothing new. */
export function withCursor(alarm: Alarm, cursor: string | undefined): Alarm {
  const { seen } = eventStateOf(alarm);
  const position = seen === undefined || cursor === undefined ? undefined : readPosition(seen);
  return position ? withSeen(alarm, JSON.stringify({ ...position, cursor })) : alarm;
}

/** What the looks of an alarm ask for; `undefined` for a source that reports by itself. */
export function lookedAtBy(alarm: Pick<Alarm, 'kind' | 'options'>): LookedAt | undefined {
  const { event } = optionsOf(alarm);
  if (alarm.kind !== 'event' || eventRulesOf(alarm).lookMs === undefined) return undefined;
  return event as LookedAt;
}

/** What identifies the source that an alarm's looks see: with another one, they begin anew. */
export function sourceSeen(alarm: Pick<Alarm, 'kind' | 'options'>): string | undefined {
  const event = lookedAtBy(alarm);
  if (event?.source === 'file') return JSON.stringify(event.path);
  if (event?.source === 'process') return JSON.stringify(event.pid);
  return event && JSON.stringify([event.server, event.name, event.arguments, event.delivery]);
}

/** How a look has ended. */
export type LookEnd = {
  /** Not before it was claimed. */
  readonly at: number;
  /** What it has shown; `undefined` for one that failed. */
  readonly seen?: string;
  readonly error?: string;
  /** More is to be seen soon. */
  readonly again?: boolean | undefined;
  /** No event can come any more. */
  readonly ends?: boolean | undefined;
  /** Until the next look at the shortest. */
  readonly waitMs?: number | undefined;
};

/** Failed looks in a row that the alarm does not show yet, and the longest time until the next one. */
const FAILED_QUIETLY = 2;
const LONGEST_LOOK_MS = 15 * 60_000;
/** A source that always has more is not looked at more often. */
const LOOK_LEAST_MS = durationMs(LOOK_EVERY_LEAST);

/** A look has ended: the next one follows, and later and later while they fail. Its events are recorded before. */
export function settleLook(state: AlarmState, fireId: string, end: LookEnd): AlarmState {
  const { at, seen, error, again, ends, waitMs = 0 } = end;
  const { alarm } = state;
  const occurrences = state.occurrences.filter((one) => one.fireId !== fireId);
  const isOpen = alarm.status === 'active' || alarm.status === 'paused';
  // The alarm has ended, or was edited meanwhile.
  if (!isOpen || scheduledOccurrence({ alarm, occurrences })) return { alarm, occurrences };
  const { failedLooks: failed = 0, ...before } = eventStateOf(alarm);
  const lookMs = eventRulesOf(alarm).lookMs!;
  if (error !== undefined) {
    const failedLooks = Math.min(failed + 1, MOST_DOUBLINGS);
    const looked = withEventState(alarm, { ...before, failedLooks });
    const after = failedLooks > FAILED_QUIETLY ? { ...looked, lastError: error } : looked;
    const longer = Math.min(lookMs * 2 ** failed, Math.max(LONGEST_LOOK_MS, lookMs));
    return withNextOfEvents({ alarm: after, occurrences }, at, Math.max(longer, waitMs));
  }
  const looked = withEventState(alarm, { ...before, ...(seen !== undefined && { seen }) });
  const after = { alarm: failed > FAILED_QUIETLY ? { ...looked, lastError: null } : looked, occurrences };
  const last = ends && before.ends !== true ? withEvents(after, [], at, true) : after;
  const nextMs = again ? LOOK_LEAST_MS : Math.max(lookMs, waitMs);
  return last.alarm.status === 'fired' ? last : withNextOfEvents(last, at, nextMs);
}
