/** The heartbeat of one server: every {@link BEAT_MS} it looks whether the person is there, and tells the state. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { type Beat, look, type Presence } from './presence.ts';
import { areOne, joined } from './spans.ts';
import { type ActiveSpan, BEAT_MS, type ChronometricState } from './state.ts';

/** So many stretches that the disk would not take are remembered for when it does. */
const OWED_LIMIT = 100;

export type HeartbeatOptions = {
  readonly state: Pick<ChronometricState, 'beat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * How long the operating system has been idle, in milliseconds; `undefined` without consent, or when no probe knows. Asked anew at
   * each beat, so that consent given or taken back counts from the next one on. Must settle.
   */
  readonly idleMs?: () => Promise<number | undefined>;
  /** Whether the person counts as there while nothing is known of how long the operating system has been idle; always unless told. */
  readonly presumed?: () => boolean;
};

export type Heartbeat = {
  /** No beat is written after this. */
  stop(): void;
};

/** Starts it; the first beat comes at once, after what is under way. Never throws: beats that cannot be written are written later. */
export function startHeartbeat({ state, clock, log, idleMs, presumed = () => true }: HeartbeatOptions): Heartbeat {
  let presence: Presence | undefined;
  let owed: readonly ActiveSpan[] = [];
  let failing = false;
  let stopped = false;

  async function idle(): Promise<number | undefined> {
    try {
      const answer = await idleMs?.();
      return answer !== undefined && answer >= 0 ? answer : undefined;
    } catch {
      // Unknown, like any other missing answer. What was thrown may carry a sample, so it is not logged.
      return undefined;
    }
  }

  /** Adds a beat to what is still to be written. */
  function owe({ at, since }: Beat): void {
    const span = { from: since, to: at };
    const last = owed.at(-1);
    owed =
      last && areOne(last, span) ? [...owed.slice(0, -1), joined([last, span])] : [...owed, span].slice(-OWED_LIMIT);
  }

  function write(): void {
    try {
      for (let span = owed[0]; span; span = owed[0]) {
        state.beat(span.to, span.from);
        owed = owed.slice(1);
      }
      if (failing) log.info('heartbeats can be written again; none is lost');
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ err: error }, 'heartbeats cannot be written; they are kept until they can');
      failing = true;
    }
  }

  async function tick(): Promise<void> {
    const idleNow = await idle();
    if (stopped) return;
    const seen = idleNow !== undefined || presumed() ? look(presence, clock.now(), idleNow) : undefined;
    presence = seen?.presence;
    if (seen?.beat) owe(seen.beat);
    write();
    cancel = clock.after(BEAT_MS, () => void tick());
  }

  let cancel = clock.after(0, () => void tick());
  return {
    stop() {
      stopped = true;
      cancel();
    },
  };
}
