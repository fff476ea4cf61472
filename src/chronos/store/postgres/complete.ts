/** Records the outcomes of attempts. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Alarm, AlarmState, Attempt, Occurrence, Transition } from '../../alarm/alarm.ts';
import { checkAttempt, checkTransition, withoutClaim } from '../difference.ts';
import type { Claim, ClaimKey, Completion, CompletionResult } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import type { Buckets } from './buckets.ts';
import type { Change } from './change.ts';
import type { ClaimedRow } from './claim-query.ts';
import { Deliveries } from './deliver.ts';
import { earliestDue } from './due-index.ts';
import type { PrimaryPool } from './pool.ts';
import type { Versioned } from './rows.ts';
import { type AlarmKey, readStates } from './state.ts';
import { callsOf, retryUntilUncontended, writeAll } from './write.ts';

/** How one claim ends. */
export type Settlement = {
  key: ClaimKey;
  /** The ledger's entry. */
  attempt: (claimed: Occurrence, alarm: Alarm) => Attempt | null;
  settle: Transition;
};

const nameOf = ({ owner, id }: AlarmKey) => `${owner} ${id}`;

/** The alarms of a batch, from the state that was read to the one to write. */
class BatchStates {
  readonly #now: number;
  readonly #alarms: Map<string, { stored: Versioned; wanted: AlarmState; attempts: Attempt[] }>;

  constructor(stored: readonly Versioned[], now: number) {
    this.#now = now;
    this.#alarms = new Map(
      stored.map((versioned) => [
        nameOf(versioned.state.alarm),
        { stored: versioned, wanted: versioned.state, attempts: [] },
      ]),
    );
  }

  settle({ key, attempt, settle }: Settlement): CompletionResult {
    const entry = this.#alarms.get(nameOf({ owner: key.owner, id: key.alarmId }));
    const claimed = entry?.wanted.occurrences.find(({ fireId }) => fireId === key.fireId);
    if (!entry || !claimed || claimed.fence !== key.fence || claimed.claimedAt === null) return 'lost_claim';
    const record = attempt(claimed, entry.wanted.alarm);
    const given = withoutClaim(entry.wanted, key.fireId);
    const wanted = settle(given);
    checkTransition(given, wanted);
    if (record) checkAttempt(key, record);
    entry.attempts.push(...abandonedAttempts(given, wanted, this.#now), ...(record ? [record] : []));
    entry.wanted = wanted;
    return 'applied';
  }

  changes(): Change[] {
    return [...this.#alarms.values()].filter(({ stored, wanted }) => stored.state !== wanted);
  }
}

/** What a settlement needs; `now` is the database's clock. */
export type Settling = { pool: PrimaryPool; buckets: Buckets; clock: Clock; now: () => number };

/** The alarms of a batch. */
function alarmsOf(settlements: readonly Settlement[]): AlarmKey[] {
  const alarms = new Map<string, AlarmKey>();
  for (const { key } of settlements) {
    const alarm = { owner: key.owner, id: key.alarmId };
    alarms.set(nameOf(alarm), alarm);
  }
  return [...alarms.values()];
}

/** Settles a batch about owners of one bucket in one transaction; the settlements of one alarm in sequence. */
export async function settleAll(
  { pool, buckets, clock, now }: Settling,
  settlements: readonly Settlement[],
): Promise<CompletionResult[]> {
  if (settlements.length === 0) return [];
  const alarms = alarmsOf(settlements);
  return retryUntilUncontended(clock, async () => {
    const { results, changes } = settleOn(await readStates(pool, buckets, alarms), settlements, now());
    if (changes.length === 0) return results;
    return (await writeAll(pool, callsOf(buckets.of(alarms[0]!.owner), changes))) ? results : undefined;
  });
}

function settleOn(states: readonly Versioned[], settlements: readonly Settlement[], now: number) {
  const batch = new BatchStates(states, now);
  const results = settlements.map((settlement) => batch.settle(settlement));
  return { results, changes: batch.changes() };
}

export type Completions = Settling & {
  /** The rows of claims that can be completed directly. */
  claimed: WeakMap<Claim, ClaimedRow>;
  /** Called with the next due instant of an alarm when its outcome is written. */
  noteDue: (owner: string, dueAt: number) => void;
};

/** Buckets whose outcomes are written in one transaction, where one server has all of them. */
const TOGETHER = 16;

type Part = readonly [bucket: number, completions: readonly Completion[]];

export function prepareComplete({ claimed, noteDue, ...settling }: Completions) {
  const { pool, buckets, now } = settling;

  const settlementOf = ({ key, attempt, settle }: Completion): Settlement => {
    const observed: Transition = (state) => {
      const wanted = settle(state);
      const due = earliestDue(wanted);
      if (due !== undefined) noteDue(key.owner, due);
      return wanted;
    };
    return { key, attempt: () => attempt, settle: observed };
  };

  /** Prepares the statements that write a part: deliveries directly, the rest after reading its alarms. */
  async function prepare([bucket, completions]: Part) {
    const deliveries = new Deliveries();
    const rest = completions.filter((completion) => !deliveries.add(completion, claimed));
    const calls = deliveries.calls(bucket, buckets.distributed !== undefined);
    const results = new Map<Completion, CompletionResult>(completions.map((each) => [each, 'applied']));
    if (rest.length > 0) {
      const settlements = rest.map(settlementOf);
      const settled = settleOn(await readStates(pool, buckets, alarmsOf(settlements)), settlements, now());
      if (settled.changes.length > 0) calls.push(...callsOf(bucket, settled.changes));
      rest.forEach((completion, index) => void results.set(completion, settled.results[index]!));
    }
    for (const { owner, dueAt } of deliveries.due) noteDue(owner, dueAt);
    return { calls, results: completions.map((completion) => results.get(completion)!) };
  }

  /** Completes parts in one transaction unless another change intervened; then each part has its own. */
  async function completeParts(parts: readonly Part[]): Promise<CompletionResult[][]> {
    const prepared = await Promise.all(parts.map(prepare));
    const calls = prepared.flatMap((part) => part.calls);
    if (calls.length === 0 || (await writeAll(pool, calls))) return prepared.map(({ results }) => results);
    return Promise.all(parts.map(([, those]) => settleAll(settling, those.map(settlementOf))));
  }

  return async (completions: readonly Completion[]): Promise<CompletionResult[]> => {
    const parts = buckets.group(completions, ({ key }) => key.owner);
    // With several servers, a transaction covers only one of them.
    const atOnce = buckets.distributed ? 1 : TOGETHER;
    const chunks = Array.from({ length: Math.ceil(parts.length / atOnce) }, (_, n) =>
      parts.slice(n * atOnce, (n + 1) * atOnce),
    );
    const settled = (await Promise.all(chunks.map(completeParts))).flat();
    if (parts.length === 1) return settled[0]!;
    const results = new Map<Completion, CompletionResult>();
    parts.forEach(([, those], part) => {
      those.forEach((completion, index) => {
        results.set(completion, settled[part]![index]!);
      });
    });
    return completions.map((completion) => results.get(completion)!);
  };
}
