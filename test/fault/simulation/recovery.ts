/**
 * After the healing: everything owed must be delivered or given up, nothing may lie about, and what is shown must be
 * what is kept.
 */
import { type AlarmState, isLeased, type Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { readStates } from './durable.ts';
import { OVERDUE_LIMIT_MS } from './watch.ts';
import type { World } from './world.ts';

const MINUTE = 60_000;
/** Between healing and tidying up: series go on as if nothing had been. */
const UNTIDIED_MS = MINUTE;
/** How often the database is looked at: often while there is much to recover, then now and then. */
const OFTEN_MS = 5_000;
const SELDOM_MS = 20_000;
const OFTEN_FOR_MS = 1.5 * MINUTE;
/** The longest that anything healthy can be owed: a rung of the retry ladder, then an alarm's own delay. */
const LIMIT_MS = 30 * MINUTE;

const isOwed = ({ dueAt, leaseUntil }: Occurrence) => dueAt !== null || leaseUntil !== null;

/** Since when an occurrence has been waiting for somebody to take it, or to end its lease. */
const waitingSince = ({ dueAt, leaseUntil }: Occurrence) => leaseUntil ?? dueAt ?? Number.POSITIVE_INFINITY;

/**
 * Lets time pass until nothing is owed any more.
 *
 * @param jumpMs how far the database's clock has jumped in all
 */
export async function recover(world: World, jumpMs: number): Promise<void> {
  const { timeline, clients, replicas, watch, durable, scenario } = world;
  const healedAt = timeline.now;
  // What was set while the clock was as far ahead as it ever was may meet it as far behind.
  const until = healedAt + UNTIDIED_MS + LIMIT_MS + jumpMs;
  const isIdle = () => clients.every((client) => client.isIdle);
  let tidied = false;
  while (timeline.now < until) {
    await timeline.runUntil(timeline.now + (timeline.now < healedAt + OFTEN_FOR_MS ? OFTEN_MS : SELDOM_MS));
    const states = await readStates(durable.store, scenario.owners);
    watch.checkStates(states);
    if (timeline.now > healedAt + OVERDUE_LIMIT_MS + OFTEN_MS && checkOverdue(world, states)) return;
    if (!tidied && timeline.now >= healedAt + UNTIDIED_MS && isIdle()) {
      tidied = true;
      for (const client of clients) void client.tidyUp();
    } else if (tidied && isIdle()) {
      if (!states.some(({ occurrences }) => occurrences.some(isOwed))) return;
      // The rest is waiting, which one of them can do alone.
      for (const replica of replicas.slice(1)) replica.drain();
    }
  }
  watch.violation('something is still owed half an hour after everything was healed');
}

/** Says whether something has been overdue for too long. */
function checkOverdue({ databaseNow, watch }: World, states: readonly AlarmState[]): boolean {
  const now = databaseNow();
  for (const occurrence of states.flatMap(({ occurrences }) => occurrences)) {
    if (isLeased(occurrence, now) || waitingSince(occurrence) >= now - OVERDUE_LIMIT_MS) continue;
    watch.violation(`${occurrence.fireId} is overdue by more than 20 s, and nothing has been broken for longer`);
    return true;
  }
  return false;
}

/** What each client was shown, page by page, is what is kept of it, newest first. */
export function checkLists({ clients, watch }: World, states: readonly AlarmState[]): void {
  for (const { owner, listed } of clients) {
    const kept = states.filter(({ alarm }) => alarm.owner === owner).map(({ alarm }) => alarm.id);
    if (kept.join() !== listed.join())
      watch.violation(`${owner} has ${kept.length} alarms, and its pages showed ${listed.length}, or another order`);
  }
}
