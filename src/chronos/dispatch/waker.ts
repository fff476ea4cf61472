/** The port that delivers a fire to the router and returns its outcome. */
import type { AbsenceReason } from '../../wire/alarm.ts';
import type { CheckVerdict } from '../../wire/check-verdict.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import type { Claim } from '../store/store.ts';

/** Milliseconds from the arrival of the wake at the router until the machine was ready, when the router reports it. */
type Readiness = { machineReadyMs?: number };

/** The result of one wake. */
export type WakeResult =
  | ({ outcome: 'delivered'; httpStatus: number; verdict?: CheckVerdict } & Readiness)
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
 * The router has started nothing and requests the wake again at `until`, epoch milliseconds. It is neither an attempt
 * nor a failure.
 */
export type Deferral = { outcome: 'held'; until: number; reason: string };

/** The alarm's check said no: the router has started nothing. */
export type Skip = { outcome: 'skipped'; httpStatus: number; verdict: CheckVerdict };

export type WakeOutcome = WakeResult | Deferral | Skip;

/** Delivers due occurrences. `http-waker.ts` is the only implementation. */
export type Waker = {
  /**
   * Delivers one occurrence, with the reason of its lateness. It never rejects: every failure is a result. The
   * implementation limits its duration.
   *
   * @param events carried by the occurrence, none for a deadline; `undefined` for an alarm without events
   */
  wake(claim: Claim, late?: AbsenceReason, events?: readonly AlarmEvent[]): Promise<WakeOutcome>;
  /** Aborts running wakes and closes the connections. */
  close(): Promise<void>;
};
