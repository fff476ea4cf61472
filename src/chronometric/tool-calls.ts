/**
 * Executes a tool call: reads the arguments, runs the tool, returns its result. Read-only tools write nothing. Open sessions
 * are closed by the overlap policy.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { isoDuration } from '../kit/clock/duration.ts';
import { formatWithOffset } from '../kit/clock/wall-clock.ts';
import type { IdleStatus, SessionEnded, SessionStarted } from '../wire/chronometric.ts';
import type { ChronometricTool } from '../wire/chronometric-vocabulary.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ChronometricError } from './chronometric-error.ts';
import type { ConsentedIdle } from './consented-idle.ts';
import type { IdleReading } from './idle/idle.ts';
import type { LazyProfile } from './lazy-profile.ts';
import type { Profile } from './profile/profile.ts';
import { type ChronometricState, REAL_BREAK_MS, type Session } from './state/state.ts';
import { breakRequest } from './tools/break-request.ts';
import { type CallContext, callContextOf, type Known, timeContext, usableTime } from './tools/call-context.ts';
import { type Arguments, readIntent, readSummary, readThreshold } from './tools/definitions.ts';

/** Below this idle time the user is at the computer. */
const AT_MACHINE_MS = 60_000;
/** After this time without a prompt the user is busy with other programs. */
const OUT_OF_CONTACT_MS = 10 * 60_000;

type Signal = IdleStatus['hyperfocus_signal'];

/** Without a known prompt the user counts as in contact. */
function signalOf(idleMs: number, sincePromptMs = 0): Signal {
  if (idleMs >= REAL_BREAK_MS) return 'distraction_or_break';
  return idleMs < AT_MACHINE_MS && sincePromptMs >= OUT_OF_CONTACT_MS ? 'hyperfocus_elsewhere' : 'active';
}

/** The result without consent; it is not an error. */
const NO_CONSENT: IdleStatus = { consent_granted: false, hyperfocus_signal: 'unknown' };

/**
 * @param context the time of the reading; `undefined` without a usable clock or zone
 * @param lastPromptAt epoch milliseconds; `undefined` when no prompt is known
 */
export function idleStatus(
  reading: IdleReading,
  context: Pick<CallContext, 'now' | 'timezone'> | undefined,
  lastPromptAt: number | undefined,
): IdleStatus {
  if ('unavailable' in reading)
    return { consent_granted: true, hyperfocus_signal: 'unknown', unavailable: reading.unavailable };
  const sincePrompt = context && lastPromptAt !== undefined ? context.now - lastPromptAt : undefined;
  return {
    consent_granted: true,
    os_idle_duration: isoDuration(reading.idleMs),
    hyperfocus_signal: signalOf(reading.idleMs, sincePrompt),
    ...(context && { sampled_at: formatWithOffset(context.timezone, context.now) }),
    source: reading.source,
  };
}

export type ToolParts = {
  readonly state: ChronometricState;
  readonly profile: LazyProfile;
  readonly idle: ConsentedIdle;
  readonly clock: Clock;
  /** The computer's time zone, IANA; `undefined` when unknown. */
  readonly machineZone: () => string | undefined;
};

/** A tool's result: `structured` for programs, and `text`, whose JSON is the text for models. */
export type ToolAnswer = { readonly structured: object; readonly text: unknown };

/**
 * @param args as received
 * @param signal aborts when the client cancels the call or disconnects
 * @throws ChronometricError for errors with a code
 * @throws InvalidArgument for an invalid argument without an error code
 * @throws ReveilleError when the state cannot be read or written
 */
export type ToolCalls = (name: ChronometricTool, args: Arguments, signal: AbortSignal) => Promise<ToolAnswer>;

const plain = (answer: object): ToolAnswer => ({ structured: answer, text: answer });

/** The result of a query; `undefined` when it is not possible. */
function attempt<T>(operation: () => T, onFailure: (error: ReveilleError | ChronometricError) => void = () => {}) {
  try {
    return operation();
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError || thrown instanceof ChronometricError)) throw thrown;
    onFailure(thrown);
    return undefined;
  }
}

export function createToolCalls({ state, profile, idle, clock, machineZone }: ToolParts): ToolCalls {
  const contextNow = () => callContextOf(usableTime(clock.now()), machineZone(), profile.read());

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

  async function readIdleStatus(signal: AbortSignal): Promise<IdleStatus> {
    try {
      const reading = await idle.readSoon(signal);
      if (reading === undefined) return NO_CONSENT;
      return idleStatus(reading, attempt(contextNow), attempt(state.lastPromptAt));
    } catch {
      // The error may contain a sample.
      return { ...NO_CONSENT, unavailable: 'the consent could not be read' };
    }
  }

  function start(context: CallContext, intent: string) {
    try {
      return state.start(intent, context.now, overlapOf(context));
    } catch (thrown) {
      if (thrown instanceof ChronometricError && thrown.code === 'SESSION_ALREADY_OPEN')
        throw overlapError(context, thrown);
      throw thrown;
    }
  }

  function run(name: Exclude<ChronometricTool, 'idle_status'>, args: Arguments, context: CallContext): ToolAnswer {
    switch (name) {
      case 'get_time_context':
        return plain(timeContext(context, known()));
      case 'mark_session_start':
        return plain(sessionStarted(start(context, readIntent(args)), context.timezone));
      case 'mark_session_end':
        return plain(sessionEnded(state.end(readSummary(args), context.now), context.timezone));
      case 'request_break_if_needed': {
        const threshold = readThreshold(args);
        const result = breakRequest(context, state.open(), threshold);
        return { structured: { result }, text: result };
      }
    }
  }

  return async (name, args, signal) => {
    if (name === 'idle_status') return plain(await readIdleStatus(signal));
    await profile.ready();
    return run(name, args, contextNow());
  };
}

/** An ended session in both results. */
function closed({ id, intent, startedAt, endedAt = startedAt, activeMs }: Session, timezone: string) {
  return {
    session_id: id,
    started_at: formatWithOffset(timezone, startedAt),
    ended_at: formatWithOffset(timezone, endedAt),
    duration: isoDuration(endedAt - startedAt),
    active_duration: isoDuration(activeMs),
    intent,
  };
}

/** The policy for a session that is still open. With an unreadable profile nothing is closed. */
function overlapOf({ profile, unreadable }: CallContext): Profile['overlapPolicy'] {
  return unreadable === undefined ? profile.overlapPolicy : 'error';
}

/** The error when a session is open and must not be closed. @param thrown `SESSION_ALREADY_OPEN` of the state */
function overlapError({ unreadable }: CallContext, thrown: ChronometricError): ChronometricError {
  if (unreadable === undefined)
    return new ChronometricError(
      thrown.code,
      'a session is open, and the profile has chronometric.session_overlap_policy: error; end it with mark_session_end first',
    );
  return new ChronometricError(
    'PROFILE_UNREADABLE',
    `a session is open, and the profile with the policy for it cannot be read (${unreadable}); correct it, or end the session with mark_session_end first`,
  );
}

function sessionStarted(
  { session, autoClosed }: { session: Session; autoClosed?: Session },
  timezone: string,
): SessionStarted {
  return {
    session_id: session.id,
    started_at: formatWithOffset(timezone, session.startedAt),
    intent: session.intent,
    ...(autoClosed && { auto_closed_prior_session: closed(autoClosed, timezone) }),
  };
}

function sessionEnded(session: Session, timezone: string): SessionEnded {
  return { ...closed(session, timezone), summary: session.summary ?? null };
}
