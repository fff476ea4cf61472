/** Recording what came of attempts. */
import type { Clock } from '../../../clock/clock.ts';
import type { AlarmState, Attempt, Occurrence, Transition } from '../../alarm/alarm.ts';
import { checkAttempt, checkTransition, withoutLease } from '../difference.ts';
import type { Completion, CompletionResult, LeaseKey } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import type { Change } from './change.ts';
import { untilUndisturbed } from './contention.ts';
import type { PrimaryPool } from './pool.ts';
import type { Versioned } from './rows.ts';
import { type AlarmKey, readStates } from './state.ts';
import { writeChanges } from './write.ts';

/** How one lease ends. */
export type Settlement = {
  key: LeaseKey;
  /** What enters the ledger; `undefined` when the occurrence is not to be settled after all. */
  attempt: (held: Occurrence) => Attempt | null | undefined;
  settle: Transition;
};

const nameOf = ({ owner, id }: AlarmKey) => `${owner} ${id}`;

/** The alarms of a batch on their way from the state that was read to the one that is to be written. */
class Sheet {
  readonly #alarms: Map<string, { stored: Versioned; wanted: AlarmState; attempts: Attempt[] }>;

  constructor(stored: readonly Versioned[]) {
    this.#alarms = new Map(
      stored.map((versioned) => [
        nameOf(versioned.state.alarm),
        { stored: versioned, wanted: versioned.state, attempts: [] },
      ]),
    );
  }

  settle({ key, attempt, settle }: Settlement): CompletionResult {
    const entry = this.#alarms.get(nameOf({ owner: key.owner, id: key.alarmId }));
    const held = entry?.wanted.occurrences.find(({ fireId }) => fireId === key.fireId);
    if (!entry || !held || held.fence !== key.fence || held.leaseUntil === null) return 'lost_lease';
    const record = attempt(held);
    if (record === undefined) return 'lost_lease';
    const given = withoutLease(entry.wanted, key.fireId);
    const wanted = settle(given);
    checkTransition(given, wanted);
    if (record) checkAttempt(key, record);
    entry.attempts.push(...abandonedAttempts(given, wanted), ...(record ? [record] : []));
    entry.wanted = wanted;
    return 'applied';
  }

  changes(): Change[] {
    return [...this.#alarms.values()].filter(({ stored, wanted }) => stored.state !== wanted);
  }
}

/** Settles a batch in one transaction; the settlements of one alarm one after the other. */
export async function settleAll(
  pool: PrimaryPool,
  clock: Clock,
  settlements: readonly Settlement[],
): Promise<CompletionResult[]> {
  if (settlements.length === 0) return [];
  const keys = new Map<string, AlarmKey>();
  for (const { key } of settlements) {
    const alarm = { owner: key.owner, id: key.alarmId };
    keys.set(nameOf(alarm), alarm);
  }
  return untilUndisturbed(clock, async () => {
    const sheet = new Sheet(await readStates(pool, [...keys.values()]));
    const results = settlements.map((settlement) => sheet.settle(settlement));
    const changes = sheet.changes();
    return changes.length === 0 || (await writeChanges(pool, changes)) ? results : undefined;
  });
}

export function prepareComplete(pool: PrimaryPool, clock: Clock) {
  return (completions: readonly Completion[]): Promise<CompletionResult[]> =>
    settleAll(
      pool,
      clock,
      completions.map(({ key, attempt, settle }) => ({ key, attempt: () => attempt, settle })),
    );
}
