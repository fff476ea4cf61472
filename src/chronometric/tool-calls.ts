/** A tool call on its way: the marker moved, the arguments read, the tool run, its answer given. */

import type { Clock } from '../kit/clock/clock.ts';
import { isoDuration } from '../kit/clock/duration.ts';
import { formatWithOffset } from '../kit/clock/wall-clock.ts';
import type { IdleStatus } from '../wire/chronometric.ts';
import type { ChronometricTool } from '../wire/chronometric-words.ts';
import { ChronometricError } from './chronometric-error.ts';
import type { ConsentedIdle } from './consented-idle.ts';
import type { IdleReading } from './idle/idle.ts';
import type { LateProfile } from './late-profile.ts';
import { type ChronometricState, REAL_BREAK_MS } from './state/state.ts';
import { type Arguments, readIntent, readSummary, readThreshold } from './tools/arguments.ts';
import { breakRequest } from './tools/break-request.ts';
import { type Occasion, occasionOf, usableTime } from './tools/occasion.ts';
import { overlapError, overlapOf, sessionEnded, sessionStarted } from './tools/sessions.ts';
import { timeContext } from './tools/time-context.ts';

/** Below this somebody sits at the machine. */
const AT_MACHINE_MS = 60_000;
/** Without a tool call for so long they do something else there. */
const OUT_OF_TOUCH_MS = 10 * 60_000;

type Signal = IdleStatus['hyperfocus_signal'];

/** Before the first call ever nothing is known of how long they have been out of touch: then they count as in touch. */
function signalOf(idleMs: number, { now, lastCallAt = now }: Occasion): Signal {
  if (idleMs >= REAL_BREAK_MS) return 'distraction_or_break';
  return idleMs < AT_MACHINE_MS && now - lastCallAt >= OUT_OF_TOUCH_MS ? 'hyperfocus_elsewhere' : 'active';
}

/** What is answered without consent, which is a result and not a failure. */
const NO_CONSENT: IdleStatus = { consent_granted: false, hyperfocus_signal: 'unknown' };

/** @param sampledAt epoch milliseconds */
export function idleStatus(occasion: Occasion, reading: IdleReading, sampledAt: number): IdleStatus {
  if ('unavailable' in reading)
    return { consent_granted: true, hyperfocus_signal: 'unknown', unavailable: reading.unavailable };
  return {
    consent_granted: true,
    os_idle_duration: isoDuration(reading.idleMs),
    hyperfocus_signal: signalOf(reading.idleMs, occasion),
    sampled_at: formatWithOffset(occasion.timezone, sampledAt),
    source: reading.source,
  };
}

export type ToolParts = {
  readonly state: ChronometricState;
  readonly profile: LateProfile;
  readonly idle: ConsentedIdle;
  readonly clock: Clock;
  /** The machine's own, IANA; `undefined` where it names none. */
  readonly machineZone: () => string | undefined;
};

/** What a tool says: for programs, and as the value whose JSON models read. */
export type ToolAnswer = { readonly structured: object; readonly told: unknown };

/**
 * Carries one call out.
 *
 * @param given the arguments as they arrived
 * @param signal aborts when the client cancels the call or goes away
 * @throws ChronometricError for what the tool's caller has to know
 * @throws UnfitArgument for an argument that no error code is about
 * @throws ReveilleError when the state cannot be read or written
 */
export type ToolCalls = (name: ChronometricTool, given: Arguments, signal: AbortSignal) => Promise<ToolAnswer>;

const plain = (answer: object): ToolAnswer => ({ structured: answer, told: answer });

export function createToolCalls({ state, profile, idle, clock, machineZone }: ToolParts): ToolCalls {
  function start(occasion: Occasion, intent: string) {
    try {
      return state.start(intent, occasion.now, overlapOf(occasion));
    } catch (thrown) {
      if (thrown instanceof ChronometricError && thrown.code === 'SESSION_ALREADY_OPEN')
        throw overlapError(occasion, thrown);
      throw thrown;
    }
  }

  async function run(
    name: ChronometricTool,
    given: Arguments,
    occasion: Occasion,
    signal: AbortSignal,
  ): Promise<ToolAnswer> {
    switch (name) {
      case 'get_time_context':
        return plain(timeContext(occasion, state.open()));
      case 'mark_session_start':
        return plain(sessionStarted(start(occasion, readIntent(given)), occasion.timezone));
      case 'mark_session_end':
        return plain(sessionEnded(state.end(readSummary(given), occasion.now), occasion.timezone));
      case 'request_break_if_needed': {
        const threshold = readThreshold(given);
        const result = breakRequest(occasion, state.open(), threshold);
        return { structured: { result }, told: result };
      }
      case 'idle_status': {
        const reading = await idle.readSoon(signal);
        return plain(reading === undefined ? NO_CONSENT : idleStatus(occasion, reading, clock.now()));
      }
    }
  }

  return async (name, given, signal) => {
    await profile.ready();
    const now = usableTime(clock.now());
    const lastCallAt = state.touch(now, name);
    return run(name, given, occasionOf(now, machineZone(), profile.read(), lastCallAt), signal);
  };
}
