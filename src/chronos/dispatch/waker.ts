/** Handing a fire to the router, and saying honestly what came of it. */
import type { AbsenceReason } from '../../wire/alarm.ts';
import type { Claim } from '../store/store.ts';

/**
 * Of the machine, where the router said so: how long after the wake had reached the router it was ready, in
 * milliseconds.
 */
type Readiness = { machineReadyMs?: number };

/** What came of one wake. */
export type WakeResult =
  | ({ outcome: 'delivered'; httpStatus: number } & Readiness)
  /** It was not accepted; nothing ran because of it. */
  | ({
      outcome: 'failed';
      httpStatus: number | null;
      error: string;
      final: boolean;
      retryAfterSeconds?: number;
    } & Readiness)
  /** The request may have been accepted before the answer was lost. */
  | { outcome: 'unknown'; httpStatus: null; error: string };

/**
 * The router has begun nothing and asks for the wake again at `until`, epoch milliseconds; neither an attempt nor a
 * failure.
 */
export type Hold = { outcome: 'held'; until: number; reason: string };

/** Delivers due occurrences. The one implementation in the house is `http-waker.ts`. */
export type Waker = {
  /** Delivers one occurrence, and says why it is late. Never rejects: every failure is a result. Bounded in time by the implementation. */
  wake(claim: Claim, late?: AbsenceReason): Promise<WakeResult | Hold>;
  /** Abandons what is under way and lets go of the connections. */
  close(): Promise<void>;
};
