/**
 * The states of alarms that this store has claimed something of, kept until the outcome comes: most outcomes find the alarm as the
 * claim left it and need not read it again. A hint and no more: what is written on the strength of it is written only where
 * the rows still are as remembered.
 */
import type { Claim, LeaseKey } from '../store.ts';
import type { Versioned } from './rows.ts';

/** More than are in flight at once; beyond that they are claims whose outcome never came. */
const MOST = 1024;

export class ClaimedStates {
  readonly #states = new Map<string, Versioned>();

  /** @param claim of an alarm that owes nothing else */
  remember({ alarm, occurrence }: Claim, revision: number): void {
    this.#states.set(occurrence.fireId, { revision, state: { alarm, occurrences: [occurrence] } });
    if (this.#states.size <= MOST) return;
    const [oldest] = this.#states.keys();
    this.#states.delete(oldest!);
  }

  /** Gives a state out, once. */
  take({ owner, fireId, fence }: LeaseKey): Versioned | undefined {
    const remembered = this.#states.get(fireId);
    if (!remembered) return undefined;
    this.#states.delete(fireId);
    const [held] = remembered.state.occurrences;
    return held?.owner === owner && held.fence === fence ? remembered : undefined;
  }

  renewed(fireId: string, leaseUntil: number): void {
    const remembered = this.#states.get(fireId);
    if (!remembered) return;
    const { revision, state } = remembered;
    const occurrences = state.occurrences.map((occurrence) => ({ ...occurrence, leaseUntil }));
    this.#states.set(fireId, { revision, state: { alarm: state.alarm, occurrences } });
  }
}
