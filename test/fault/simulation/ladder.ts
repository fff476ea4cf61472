/** Checks that retries follow the contract (docs/reference/api.md, retry ladder). Shares no code with the product. */
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';

const FIRST_MS = 30_000;
const LONGEST_MS = 900_000;
const SHORTEST_MS = 1_000;
const JITTER = 0.1;

/** When the next attempt may be due. */
type Rung = { attempt: number; from: number; until: number; interrupted: number | null };

export class Ladder {
  readonly #rungs = new Map<string, Rung>();

  /** @param finishedAt by the clock of the attempt's process */
  failed({ alarm, occurrence }: Claim, result: WakeResult, finishedAt: number): void {
    if (result.outcome === 'delivered') return;
    const failure = occurrence.source === 'trigger' ? occurrence.attempt - 1 : alarm.failureCount;
    let until = Math.min(FIRST_MS * 2 ** failure, LONGEST_MS);
    let from = until * (1 - JITTER);
    if (result.outcome === 'failed' && result.retryAfterSeconds !== undefined) {
      until = Math.min(Math.max(result.retryAfterSeconds * 1000, SHORTEST_MS), LONGEST_MS);
      from = until;
    }
    this.#rungs.set(occurrence.fireId, {
      attempt: occurrence.attempt,
      from: Math.floor(finishedAt + from),
      until: Math.ceil(finishedAt + until),
      interrupted: occurrence.dueAt,
    });
  }

  /** The error in the start time of an attempt; `undefined` if there is none, or if it cannot be determined. */
  judge({ fireId, attempt, dueAt }: Claim['occurrence']): string | undefined {
    const rung = this.#rungs.get(fireId);
    if (!rung || rung.attempt !== attempt - 1 || dueAt === null) return undefined;
    // If the outcome was lost with its process, the attempt counts as interrupted, and the next has the same due time.
    if (dueAt === rung.interrupted || (dueAt >= rung.from && dueAt <= rung.until)) return undefined;
    return `attempt ${attempt} at ${fireId} was due at ${dueAt}, and the ladder requires a time between ${rung.from} and ${rung.until}`;
  }
}
