/** Records the outcomes of attempts. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState, Attempt, Occurrence, Transition } from '../../alarm/alarm.ts';
import { checkAttempt, checkTransition, withoutClaim } from '../difference.ts';
import type { ClaimKey, Completion, CompletionResult } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import type { Buckets } from './buckets.ts';
import type { Change } from './change.ts';
import type { PrimaryPool } from './pool.ts';
import type { Versioned } from './rows.ts';
import type { ClaimedStates } from './state.ts';
import { type AlarmKey, readStates } from './state.ts';
import { retryUntilUncontended, writeChanges } from './write.ts';

/** How one claim ends. */
export type Settlement = {
  key: ClaimKey;
  /** The ledger's entry. */
  attempt: (claimed: Occurrence) => Attempt | null;
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
    const record = attempt(claimed);
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
    return changes.length === 0 || (await writeChanges(pool, buckets, [changes])) ? results : undefined;
  });
}

function settleOn(states: readonly Versioned[], settlements: readonly Settlement[], now: number) {
  const batch = new BatchStates(states, now);
  const results = settlements.map((settlement) => batch.settle(settlement));
  return { results, changes: batch.changes() };
}

export type Completions = Settling & {
  claimed: ClaimedStates;
  /** Called with each alarm's state when it is written. */
  onState: (state: AlarmState) => void;
};

/** Buckets whose outcomes are written in one transaction, where one server has all of them. */
const TOGETHER = 16;

/** The result of a part of a batch before it is written. */
type Settled = { results: CompletionResult[]; changes: Change[] };

export function prepareComplete({ claimed, onState, ...settling }: Completions) {
  const { pool, buckets, now } = settling;

  /** Settles on the cached states of the claims; returns nothing when they seem to be outdated. */
  async function settleCached(settlements: readonly Settlement[]): Promise<Settled | undefined> {
    const states = new Map<string, Versioned>();
    for (const { key } of settlements) {
      const cached = claimed.take(key);
      if (cached) states.set(nameOf(cached.state.alarm), cached);
    }
    if (states.size === 0) return undefined;
    const others = alarmsOf(settlements).filter((alarm) => !states.has(nameOf(alarm)));
    const read = others.length > 0 ? await readStates(pool, buckets, others) : [];
    try {
      return settleOn([...states.values(), ...read], settlements, now());
    } catch {
      // The cached state may be outdated. A settlement on the current state decides.
      return undefined;
    }
  }

  const settlementOf = ({ key, attempt, settle }: Completion): Settlement => {
    const observed: Transition = (state) => {
      const wanted = settle(state);
      onState(wanted);
      return wanted;
    };
    return { key, attempt: () => attempt, settle: observed };
  };

  /**
   * Settles parts, each about owners of one bucket. They share one transaction unless another change intervened; then
   * each has its own.
   */
  async function settleParts(parts: readonly (readonly Settlement[])[]): Promise<CompletionResult[][]> {
    const settled = await Promise.all(parts.map(settleCached));
    const batches = settled.flatMap((part) => (part && part.changes.length > 0 ? [part.changes] : []));
    const written = batches.length === 0 || (await writeChanges(pool, buckets, batches));
    return Promise.all(
      parts.map((settlements, index) => {
        const part = settled[index];
        const done = part && (written || part.changes.length === 0);
        return done ? part.results : settleAll(settling, settlements);
      }),
    );
  }

  return async (completions: readonly Completion[]): Promise<CompletionResult[]> => {
    const grouped = buckets.group(completions, ({ key }) => key.owner);
    const parts = grouped.map(([, those]) => those.map(settlementOf));
    // With several servers, a transaction covers only one of them.
    const atOnce = buckets.distributed ? 1 : TOGETHER;
    const chunks = Array.from({ length: Math.ceil(parts.length / atOnce) }, (_, n) =>
      parts.slice(n * atOnce, (n + 1) * atOnce),
    );
    const settled = (await Promise.all(chunks.map(settleParts))).flat();
    if (grouped.length === 1) return settled[0]!;
    const results = new Map<Completion, CompletionResult>();
    grouped.forEach(([, those], group) => {
      those.forEach((completion, index) => {
        results.set(completion, settled[group]![index]!);
      });
    });
    return completions.map((completion) => results.get(completion)!);
  };
}
