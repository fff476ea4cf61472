/** The heartbeat of one server: every {@link BEAT_MS} it looks whether the person is there, and tells the state. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { areOne, joined } from './spans.ts';
import { type ActiveSpan, ASLEEP_AFTER_MS, BEAT_MS, type ChronometricState, REAL_BREAK_MS } from './state.ts';

/** What is remembered from one look to the next, in memory only. */
type Presence = {
  readonly lookedAt: number;
  /** The last beat, where the process has lived through all of the time since. */
  readonly beatAt: number | undefined;
  /** They were seen to be away for as long as a real break, and have not come back yet. */
  readonly onBreak: boolean;
};

type Beat = { readonly at: number; readonly since: number };

/**
 * @param before the look before this one; `undefined` for the first
 * @param now epoch milliseconds
 * @param idleMs since the last key or pointer movement; `undefined` where nothing is known, and then the person counts
 *   as there
 */
function look(
  before: Presence | undefined,
  now: number,
  idleMs: number | undefined,
): { readonly presence: Presence; readonly beat?: Beat } {
  const past = before && livedThrough(before, now) ? before : undefined;
  if (idleMs === undefined) return { presence: thereAt(now), beat: { at: now, since: now } };
  const onBreak = past?.onBreak === true || idleMs >= REAL_BREAK_MS;
  if (idleMs >= BEAT_MS) return { presence: { lookedAt: now, beatAt: past?.beatAt, onBreak } };
  return { presence: thereAt(now), beat: beatAfter(past?.beatAt, now, onBreak) };
}

const thereAt = (now: number): Presence => ({ lookedAt: now, beatAt: now, onBreak: false });

/**
 * A gap in wall time is sleep or a stop of the process, and a step back of the clock has no length. Nothing is counted
 * over either.
 */
const livedThrough = ({ lookedAt }: Presence, now: number) => now >= lookedAt && now - lookedAt <= ASLEEP_AFTER_MS;

function beatAfter(last: number | undefined, now: number, onBreak: boolean): Beat {
  if (last === undefined) return { at: now, since: now };
  if (!onBreak) return { at: now, since: last };
  // Looks are a little early or late; what was a real break has to be as long as one between the beats too.
  const at = Math.max(now, last + REAL_BREAK_MS);
  return { at, since: at };
}

/** So many stretches that the disk would not take are remembered for when it does. */
const OWED_LIMIT = 100;

export type HeartbeatOptions = {
  readonly state: Pick<ChronometricState, 'beat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * How long the operating system has been idle, in milliseconds; `undefined` without consent, or when no probe knows.
   * Asked anew at each beat, so that consent given or taken back counts from the next one on. Must settle.
   */
  readonly idleMs?: () => Promise<number | undefined>;
  /**
   * Whether the person counts as there while nothing is known of how long the operating system has been idle; always
   * unless told.
   */
  readonly presumed?: () => boolean;
};

export type Heartbeat = {
  /** No beat is written after this. */
  stop(): void;
};

/**
 * Starts it; the first beat comes at once, after what is under way. Never throws: beats that cannot be written are
 * written later.
 */
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
