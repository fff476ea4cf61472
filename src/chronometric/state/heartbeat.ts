/** The heartbeat of one server: every {@link BEAT_MS} it checks the user's presence and records it. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import {
  type ActiveSpan,
  ASLEEP_AFTER_MS,
  areOne,
  BEAT_MS,
  type ChronometricState,
  joined,
  REAL_BREAK_MS,
} from './state.ts';

/** The memory between two checks. */
type Presence = {
  readonly observedAt: number;
  /** The last beat, if the process ran all the time since. */
  readonly beatAt: number | undefined;
  /** The user was away for a real break, and has not returned. */
  readonly onBreak: boolean;
};

type Beat = { readonly at: number; readonly since: number };

/**
 * @param before the check before this one; `undefined` for the first
 * @param now epoch milliseconds
 * @param idleMs since the last key or pointer movement; `undefined` when unknown, which counts as presence
 */
function observe(
  before: Presence | undefined,
  now: number,
  idleMs: number | undefined,
): { readonly presence: Presence; readonly beat?: Beat } {
  const past = before && ranSince(before, now) ? before : undefined;
  if (idleMs === undefined) return { presence: presentAt(now), beat: { at: now, since: now } };
  const onBreak = past?.onBreak === true || idleMs >= REAL_BREAK_MS;
  if (idleMs >= BEAT_MS) return { presence: { observedAt: now, beatAt: past?.beatAt, onBreak } };
  return { presence: presentAt(now), beat: beatAfter(past?.beatAt, now, onBreak) };
}

const presentAt = (now: number): Presence => ({ observedAt: now, beatAt: now, onBreak: false });

/** A gap in wall time is sleep or a stop of the process, and a clock that steps back has no length. Neither is counted. */
const ranSince = ({ observedAt }: Presence, now: number) => now >= observedAt && now - observedAt <= ASLEEP_AFTER_MS;

function beatAfter(last: number | undefined, now: number, onBreak: boolean): Beat {
  if (last === undefined) return { at: now, since: now };
  if (!onBreak) return { at: now, since: last };
  // Checks are slightly early or late; a real break must be as long between the beats too.
  const at = Math.max(now, last + REAL_BREAK_MS);
  return { at, since: at };
}

/** Intervals that are kept in memory while the disk rejects them. */
const PENDING_LIMIT = 100;

export type HeartbeatOptions = {
  readonly state: Pick<ChronometricState, 'beat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * The operating system's idle time in milliseconds; `undefined` without consent, or without a probe that answers.
   * Queried at each beat, so that a change of consent counts from the next one on. Must settle.
   */
  readonly idleMs?: () => Promise<number | undefined>;
  /** Whether the user counts as present while the idle time is unknown; always by default. */
  readonly presumed?: () => boolean;
};

export type Heartbeat = {
  /** No beat is written after this. */
  stop(): void;
};

/** Starts it; the first beat comes at once. Never throws: beats that cannot be written are written later. */
export function startHeartbeat({ state, clock, log, idleMs, presumed = () => true }: HeartbeatOptions): Heartbeat {
  let presence: Presence | undefined;
  let pending: readonly ActiveSpan[] = [];
  let failing = false;
  let stopped = false;

  async function idle(): Promise<number | undefined> {
    try {
      const answer = await idleMs?.();
      return answer !== undefined && answer >= 0 ? answer : undefined;
    } catch {
      // Unknown. The error may contain a sample, so it is not logged.
      return undefined;
    }
  }

  function addPending({ at, since }: Beat): void {
    const span = { from: since, to: at };
    const last = pending.at(-1);
    pending =
      last && areOne(last, span)
        ? [...pending.slice(0, -1), joined([last, span])]
        : [...pending, span].slice(-PENDING_LIMIT);
  }

  function write(): void {
    try {
      for (let span = pending[0]; span; span = pending[0]) {
        state.beat(span.to, span.from);
        pending = pending.slice(1);
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
    const observation = idleNow !== undefined || presumed() ? observe(presence, clock.now(), idleNow) : undefined;
    presence = observation?.presence;
    if (observation?.beat) addPending(observation.beat);
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
