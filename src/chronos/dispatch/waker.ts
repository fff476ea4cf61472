/** Handing a fire to the router, and saying honestly what came of it. */
import type { Claim } from '../store/store.ts';

/** What came of one wake. */
export type WakeResult =
  | { outcome: 'delivered'; httpStatus: number }
  /** It was not accepted; nothing ran because of it. */
  | { outcome: 'failed'; httpStatus: number | null; error: string; final: boolean; retryAfterSeconds?: number }
  /** The request may have been accepted before the answer was lost. */
  | { outcome: 'unknown'; httpStatus: null; error: string };

/** Delivers due occurrences. The one implementation in the house is `http-waker.ts`. */
export type Waker = {
  /** Delivers one occurrence. Never rejects: every failure is a result. Bounded in time by the implementation. */
  wake(claim: Claim): Promise<WakeResult>;
  /** Abandons what is under way and lets go of the connections. */
  close(): Promise<void>;
};
