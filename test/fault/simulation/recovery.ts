/**
 * After the healing: every pending occurrence must be delivered or given up, none may be neglected, and listings must
 * equal the stored data.
 */
import type { AlarmState, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { readStates } from './durable.ts';
import { OVERDUE_LIMIT_MS } from './watch.ts';
import type { World } from './world.ts';

const MINUTE = 60_000;
/** Time between healing and the final cancels: series continue normally. */
const BEFORE_CANCELS_MS = MINUTE;
/** Interval of the checks of the database: short during the recovery, then longer. */
const OFTEN_MS = 5_000;
const SELDOM_MS = 20_000;
const OFTEN_FOR_MS = 1.5 * MINUTE;
/** The longest wait of a healthy occurrence: a step of the retry ladder, then an alarm's own delay. */
const LIMIT_MS = 30 * MINUTE;

const isOwed = ({ dueAt, claimedAt }: Occurrence) => dueAt !== null || claimedAt !== null;

/** A delivery ends at the latest this long after its claim. */
const LONGEST_DELIVERY_MS = MINUTE;

/** Since when an occurrence has waited for a claim, or for the end of one. */
const waitingSince = ({ dueAt, claimedAt }: Occurrence) =>
  claimedAt === null ? (dueAt ?? Number.POSITIVE_INFINITY) : claimedAt + LONGEST_DELIVERY_MS;

/**
 * Lets time pass until no occurrence is pending.
 *
 * @param jumpMs sum of the jumps of the database's clock
 */
export async function recover(world: World, jumpMs: number): Promise<void> {
  const { timeline, clients, replicas, watch, durable, scenario } = world;
  const healedAt = timeline.now;
  // An alarm set at the largest forward offset may wait until the largest backward offset has passed.
  const until = healedAt + BEFORE_CANCELS_MS + LIMIT_MS + jumpMs;
  const isIdle = () => clients.every((client) => client.isIdle);
  let cancelled = false;
  while (timeline.now < until) {
    await timeline.runUntil(timeline.now + (timeline.now < healedAt + OFTEN_FOR_MS ? OFTEN_MS : SELDOM_MS));
    const states = await readStates(durable.store, scenario.owners);
    watch.checkStates(states);
    if (timeline.now > healedAt + OVERDUE_LIMIT_MS + OFTEN_MS && checkOverdue(world, states)) return;
    if (!cancelled && timeline.now >= healedAt + BEFORE_CANCELS_MS && isIdle()) {
      cancelled = true;
      for (const client of clients) void client.cancelAll();
    } else if (cancelled && isIdle()) {
      if (!states.some(({ occurrences }) => occurrences.some(isOwed))) return;
      // The rest is waiting; one replica can do it alone.
      for (const replica of replicas.slice(1)) replica.drain();
    }
  }
  watch.violation('an occurrence is still pending half an hour after everything was healed');
}

/** Returns whether an occurrence has been overdue for too long. */
function checkOverdue({ databaseNow, watch }: World, states: readonly AlarmState[]): boolean {
  const now = databaseNow();
  for (const occurrence of states.flatMap(({ occurrences }) => occurrences)) {
    if (waitingSince(occurrence) >= now - OVERDUE_LIMIT_MS) continue;
    watch.violation(`${occurrence.fireId} is overdue by more than 20 s, and no fault has been active for longer`);
    return true;
  }
  return false;
}

/** Each client's listing, page by page, equals its stored alarms, newest first. */
export function checkLists({ clients, watch }: World, states: readonly AlarmState[]): void {
  for (const { owner, listed } of clients) {
    const kept = states.filter(({ alarm }) => alarm.owner === owner).map(({ alarm }) => alarm.id);
    if (kept.join() !== listed.join())
      watch.violation(`${owner} has ${kept.length} alarms, and its pages showed ${listed.length}, or another order`);
  }
}
