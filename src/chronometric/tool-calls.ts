/** Executes a tool call: reads the arguments, runs the tool, returns its result. Read-only tools leave no trace. */

import type { Clock } from '../kit/clock/clock.ts';
import { isoDuration } from '../kit/clock/duration.ts';
import { formatWithOffset } from '../kit/clock/wall-clock.ts';
import type { IdleStatus } from '../wire/chronometric.ts';
import type { ChronometricTool } from '../wire/chronometric-words.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ChronometricError } from './chronometric-error.ts';
import type { ConsentedIdle } from './consented-idle.ts';
import type { IdleReading } from './idle/idle.ts';
import type { LateProfile } from './late-profile.ts';
import { type ChronometricState, REAL_BREAK_MS } from './state/state.ts';
import { type Arguments, readIntent, readSummary, readThreshold } from './tools/arguments.ts';
import { breakRequest } from './tools/break-request.ts';
import { type Occasion, occasionOf, usableTime } from './tools/occasion.ts';
import { overlapError, overlapOf, sessionEnded, sessionStarted } from './tools/sessions.ts';
import { type Known, timeContext } from './tools/time-context.ts';

/** Below this idle time the user is at the computer. */
const AT_MACHINE_MS = 60_000;
/** After this time without a prompt the user does something else there. */
const OUT_OF_TOUCH_MS = 10 * 60_000;

type Signal = IdleStatus['hyperfocus_signal'];

/** Without a known prompt, nothing is known about contact: then the user counts as in contact. */
function signalOf(idleMs: number, sincePromptMs = 0): Signal {
  if (idleMs >= REAL_BREAK_MS) return 'distraction_or_break';
  return idleMs < AT_MACHINE_MS && sincePromptMs >= OUT_OF_TOUCH_MS ? 'hyperfocus_elsewhere' : 'active';
}

/** The result without consent; it is not an error. */
const NO_CONSENT: IdleStatus = { consent_granted: false, hyperfocus_signal: 'unknown' };

/**
 * @param occasion of the reading; `undefined` without a usable clock or zone
 * @param lastPromptAt epoch milliseconds; `undefined` when no prompt is known
 */
export function idleStatus(
  reading: IdleReading,
  occasion: Pick<Occasion, 'now' | 'timezone'> | undefined,
  lastPromptAt: number | undefined,
): IdleStatus {
  if ('unavailable' in reading)
    return { consent_granted: true, hyperfocus_signal: 'unknown', unavailable: reading.unavailable };
  const sincePrompt = occasion && lastPromptAt !== undefined ? occasion.now - lastPromptAt : undefined;
  return {
    consent_granted: true,
    os_idle_duration: isoDuration(reading.idleMs),
    hyperfocus_signal: signalOf(reading.idleMs, sincePrompt),
    ...(occasion && { sampled_at: formatWithOffset(occasion.timezone, occasion.now) }),
    source: reading.source,
  };
}

export type ToolParts = {
  readonly state: ChronometricState;
  readonly profile: LateProfile;
  readonly idle: ConsentedIdle;
  readonly clock: Clock;
  /** The computer's time zone, IANA; `undefined` when unknown. */
  readonly machineZone: () => string | undefined;
};

/** A tool's result: for programs, and as the value whose JSON models read. */
export type ToolAnswer = { readonly structured: object; readonly told: unknown };

/**
 * Executes one call.
 *
 * @param given the arguments as received
 * @param signal aborts when the client cancels the call or disconnects
 * @throws ChronometricError for errors with a code
 * @throws UnfitArgument for an invalid argument without an error code
 * @throws ReveilleError when the state cannot be read or written
 */
export type ToolCalls = (name: ChronometricTool, given: Arguments, signal: AbortSignal) => Promise<ToolAnswer>;

const plain = (answer: object): ToolAnswer => ({ structured: answer, told: answer });

/** The result of a query; `undefined` when it is not possible. */
function attempt<T>(look: () => T, onFailure: (error: ReveilleError | ChronometricError) => void = () => {}) {
  try {
    return look();
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError || thrown instanceof ChronometricError)) throw thrown;
    onFailure(thrown);
    return undefined;
  }
}

export function createToolCalls({ state, profile, idle, clock, machineZone }: ToolParts): ToolCalls {
  const occasionNow = () => occasionOf(usableTime(clock.now()), machineZone(), profile.read());

  /** The known data, and the reason when there is none. */
  function known(): Known {
    let unavailable: string | undefined;
    const found = attempt(
      () => ({ lastPromptAt: state.lastPromptAt(), session: state.open() }),
      ({ message }) => {
        unavailable = message;
      },
    );
    return { ...found, unavailable };
  }

  async function lookAtIdleness(signal: AbortSignal): Promise<IdleStatus> {
    try {
      const reading = await idle.readSoon(signal);
      if (reading === undefined) return NO_CONSENT;
      return idleStatus(reading, attempt(occasionNow), attempt(state.lastPromptAt));
    } catch {
      // The error may contain a sample.
      return { ...NO_CONSENT, unavailable: 'the consent could not be read' };
    }
  }

  function start(occasion: Occasion, intent: string) {
    try {
      return state.start(intent, occasion.now, overlapOf(occasion));
    } catch (thrown) {
      if (thrown instanceof ChronometricError && thrown.code === 'SESSION_ALREADY_OPEN')
        throw overlapError(occasion, thrown);
      throw thrown;
    }
  }

  function run(name: Exclude<ChronometricTool, 'idle_status'>, given: Arguments, occasion: Occasion): ToolAnswer {
    switch (name) {
      case 'get_time_context':
        return plain(timeContext(occasion, known()));
      case 'mark_session_start':
        return plain(sessionStarted(start(occasion, readIntent(given)), occasion.timezone));
      case 'mark_session_end':
        return plain(sessionEnded(state.end(readSummary(given), occasion.now), occasion.timezone));
      case 'request_break_if_needed': {
        const threshold = readThreshold(given);
        const result = breakRequest(occasion, state.open(), threshold);
        return { structured: { result }, told: result };
      }
    }
  }

  return async (name, given, signal) => {
    if (name === 'idle_status') return plain(await lookAtIdleness(signal));
    await profile.ready();
    return run(name, given, occasionNow());
  };
}
