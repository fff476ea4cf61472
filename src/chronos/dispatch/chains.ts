/**
 * Chains of alarms: registers an alarm with the one that it follows, and passes the end of a fire to the followers.
 *
 * The end is recorded at each follower before it is settled at the followed alarm. A repeated notification is known by
 * its id, so none is lost or counted twice when a process is killed in between.
 */

import { storedCause } from '../../wire/cause.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { hasValue } from '../../wire/json-pointer.ts';
import type { TurnReport } from '../../wire/turn-report.ts';
import type { Alarm, AlarmState, Attempt } from '../alarm/alarm.ts';
import { causeOf, inheritedCause } from '../alarm/cause.ts';
import {
  CHAIN_MAX,
  eventOfEnd,
  type FireEnd,
  FOLLOWERS_MAX,
  followedBy,
  followersOf,
  hasEnded,
  withFollower,
  withoutFollowers,
} from '../alarm/chain.ts';
import { eventRulesOf, withEvents } from '../alarm/events.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';
import { optionsOf } from '../alarm/options.ts';
import { TURNS_READ, turnsOf } from '../alarm/policies.ts';
import type { AlarmStore } from '../store/store.ts';
import { type EventSink, recordAlarmEvents } from './record-events.ts';

type Store = Pick<AlarmStore, 'get' | 'update' | 'attempts' | 'turnReportsOf'>;

const isOpen = ({ alarm: { status } }: AlarmState) => status === 'active' || status === 'paused';

async function historyOf(store: Store, { owner, id }: Alarm) {
  const attempts = await store.attempts(owner, id, { limit: TURNS_READ });
  const fireIds = [...new Set(attempts.map(({ fireId }) => fireId))];
  const reports = fireIds.length > 0 ? await store.turnReportsOf(owner, id, fireIds) : [];
  return { attempts, reports };
}

/** Whether an alarm fires no more, and no turn of another fire runs. */
async function isOver(store: Store, followed: AlarmState, fireId: string, now: number): Promise<boolean> {
  if (!hasEnded(followed)) return false;
  const { attempts, reports } = await historyOf(store, followed.alarm);
  return turnsOf(attempts, reports, { fireId, now }).running === undefined;
}

/** The end of a turn, without its cause. @param at when its first report arrived */
export function endOfTurn(fireId: string, { outcome, reply, error }: TurnReport, at: number): Omit<FireEnd, 'cause'> {
  const outcomes = { ok: 'finished', failed: 'failed', unknown: 'unknown' } as const;
  return { fireId, outcome: outcomes[outcome ?? 'unknown'], at, reply, error };
}

/** Attempts in which the cause of a fire is searched. */
const CAUSES_READ = 500;

/** The cause of a fire. One whose cannot be found counts as the agent's. */
async function causeOfFire(store: Store, { alarm, occurrences }: AlarmState, fireId: string): Promise<string> {
  const attempts = await store.attempts(alarm.owner, alarm.id, { limit: CAUSES_READ });
  const found = attempts.find((attempt) => attempt.fireId === fireId);
  const pending = occurrences.find((one) => one.fireId === fireId);
  if (found) return inheritedCause(alarm, found.cause);
  const cause = pending ? causeOf(alarm, pending) : ({ by: 'agent' } as const);
  return inheritedCause(alarm, cause ? storedCause(cause) : null);
}

/** How the latest fire has ended. */
function latestEnd(
  attempts: readonly Attempt[],
  reports: readonly StoredTurnReport[],
  { alarm }: AlarmState,
): FireEnd | undefined {
  const [latest] = attempts;
  if (!latest) return undefined;
  const finished = reports.find(({ fireId, stage }) => fireId === latest.fireId && stage === 'turn_finished');
  const cause = inheritedCause(alarm, latest.cause);
  if (finished) return { ...endOfTurn(latest.fireId, finished, finished.recordedAt), cause };
  if (alarm.status !== 'failed') return undefined;
  const outcome = latest.outcome === 'missed' ? 'missed' : 'failed';
  return { fireId: latest.fireId, outcome, at: latest.finishedAt, error: latest.error, cause };
}

/** What a follower learns: an end, and whether none comes after it. */
type Notice = { readonly end: FireEnd | undefined; readonly isLast: boolean };

/** Whether an alarm that follows another one waits for this end. */
function concerns(follower: Alarm, { outcome }: FireEnd, event: AlarmEvent): boolean {
  const on = followedBy(follower)?.on;
  const filter = optionsOf(follower).event?.filter;
  return (on === 'any' || on === outcome) && (filter === undefined || hasValue(event.data, filter));
}

/** A failed alarm, or one whose turn failed, can be redriven: followers that wait for another outcome go on waiting. */
const mayFollowAgain = ({ alarm }: AlarmState, end: FireEnd | undefined) =>
  alarm.status === 'failed' || end?.outcome === 'failed' || end?.outcome === 'missed';

async function notify(sink: EventSink, followed: AlarmState, id: string, { end, isLast }: Notice): Promise<void> {
  const { owner } = followed.alarm;
  const follower = await sink.store.get(owner, id);
  if (!follower || !isOpen(follower) || followedBy(follower.alarm)?.id !== followed.alarm.id) return;
  // What had ended before it followed: a machine may report that again at any time.
  const isEarlier = end !== undefined && end.at < follower.alarm.anchor;
  const event = end && !isEarlier ? eventOfEnd(followed.alarm, end) : undefined;
  const events = end && event && concerns(follower.alarm, end, event) ? [event] : [];
  try {
    if (events.length > 0) await recordAlarmEvents(sink, owner, id, events);
    if (!isLast || (events.length === 0 && mayFollowAgain(followed, end))) return;
    const now = sink.clock.now();
    const after = await sink.store.update(owner, id, (state) =>
      withEvents(state, eventRulesOf(state.alarm).isExpected ? events : [], now, true),
    );
    for (const { dueAt } of after?.occurrences ?? []) if (dueAt !== null) sink.onDue(dueAt);
  } catch (error) {
    // It has ended meanwhile, or too many events wait for it.
    const isRefusal = error instanceof ReveilleError && (error.code === 'conflict' || error.code === 'rate_limited');
    if (!isRefusal) throw error;
  }
}

/**
 * Passes the end of a fire to the alarms that wait for it.
 *
 * @param ended its cause is read from the ledger where it is absent
 * @param notified followers that were notified before
 * @returns all that know it now
 */
export async function notifyFollowers(
  sink: EventSink,
  { owner, alarmId }: { owner: string; alarmId: string },
  ended: Omit<FireEnd, 'cause'> & { readonly cause?: string },
  notified: readonly string[] = [],
): Promise<readonly string[]> {
  const followed = await sink.store.get(owner, alarmId);
  const followers = followed ? followersOf(followed.alarm) : [];
  if (!followed || followers.length === 0) return [];
  const end: FireEnd = { ...ended, cause: ended.cause ?? (await causeOfFire(sink.store, followed, ended.fireId)) };
  const isLast = await isOver(sink.store, followed, end.fireId, sink.clock.now());
  const unnotified = isLast ? followers : followers.filter((id) => !notified.includes(id));
  await Promise.all(unnotified.map((id) => notify(sink, followed, id, { end, isLast })));
  return followers;
}

/** An alarm was cancelled: unless a turn of it still runs, nothing follows it any more. */
export async function releaseFollowers(sink: EventSink, cancelled: AlarmState): Promise<void> {
  const followers = followersOf(cancelled.alarm);
  if (followers.length === 0 || !(await isOver(sink.store, cancelled, '', sink.clock.now()))) return;
  await Promise.all(followers.map((id) => notify(sink, cancelled, id, { end: undefined, isLast: true })));
}

/** @throws ReveilleError `invalid_request` for a circle, or for too many links */
async function checkChain(store: Store, follower: Alarm, followed: AlarmState): Promise<void> {
  const ids = [follower.id];
  let current: AlarmState | undefined = followed;
  while (current) {
    ids.push(current.alarm.id);
    if (current.alarm.id === follower.id)
      throw new ReveilleError(
        'invalid_request',
        `alarms cannot wait for each other in a circle: ${ids.join(' after ')}`,
      );
    if (ids.length > CHAIN_MAX)
      throw new ReveilleError('invalid_request', `a chain has at most ${CHAIN_MAX} alarms; follow an earlier one`);
    const next = followedBy(current.alarm);
    current = next && (await store.get(follower.owner, next.id));
  }
}

/**
 * Checks an alarm that is stored already. Edits at the same time do not see each other before they are stored; the last
 * one of a circle sees all of it.
 *
 * @throws ReveilleError as {@link follow}, for a circle
 */
export async function confirmChain({ store }: Pick<EventSink, 'store'>, follower: Alarm): Promise<void> {
  const next = followedBy(follower);
  const followed = next && (await store.get(follower.owner, next.id));
  if (followed) await checkChain(store, follower, followed);
}

/** Followers that wait no more, when the list is full. */
async function formerFollowers(store: Store, { alarm }: AlarmState): Promise<string[]> {
  const ids = followersOf(alarm);
  if (ids.length < FOLLOWERS_MAX) return [];
  const states = await Promise.all(ids.map((id) => store.get(alarm.owner, id)));
  return ids.filter((_, index) => {
    const state = states[index];
    return !state || !isOpen(state) || followedBy(state.alarm)?.id !== alarm.id;
  });
}

const ENDED = {
  failed: 'has failed; redrive it first',
  fired: 'has fired, and its turn has ended',
  cancelled: 'is cancelled',
} as const;

/**
 * Registers an alarm with the one that it follows, before it is stored itself.
 *
 * @throws ReveilleError naming the field: the followed alarm does not exist or has ended, or the chain is not possible
 */
export async function follow({ store, clock }: Pick<EventSink, 'store' | 'clock'>, follower: Alarm): Promise<void> {
  const { id } = followedBy(follower)!;
  const field = optionsOf(follower).after ? 'after.alarm' : 'event.alarm';
  const followed = await store.get(follower.owner, id);
  const missing = () =>
    new ReveilleError('not_found', `${field}: you have no alarm with this id; alarm_list shows the ones you have`);
  if (!followed) throw missing();
  await checkChain(store, follower, followed);
  if (await isOver(store, followed, '', clock.now())) {
    const status = followed.alarm.status as keyof typeof ENDED;
    throw new ReveilleError('conflict', `${field}: alarm ${id} ${ENDED[status]}, so nothing would follow it`);
  }
  const former = await formerFollowers(store, followed);
  const registered = await store.update(follower.owner, id, (state) =>
    withFollower(withoutFollowers(state, former), follower.id),
  );
  if (!registered) throw missing();
}

/** The stored alarm learns what happened to the followed one while it was being stored. */
export async function catchUpWith(sink: EventSink, follower: Alarm): Promise<void> {
  const followed = await sink.store.get(follower.owner, followedBy(follower)!.id);
  if (!followed || !(await isOver(sink.store, followed, '', sink.clock.now()))) return;
  const { attempts, reports } = await historyOf(sink.store, followed.alarm);
  await notify(sink, followed, follower.id, { end: latestEnd(attempts, reports, followed), isLast: true });
}

/** The alarm follows another one no more, or was not stored. */
export async function unfollow({ store }: Pick<EventSink, 'store'>, follower: Alarm): Promise<void> {
  const followed = followedBy(follower);
  if (followed) await store.update(follower.owner, followed.id, (state) => withoutFollowers(state, [follower.id]));
}
