/** A tool call without an answer, and whether it may have had its effect. */
import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import { Cancelled, TimedOut } from './deadline.ts';

/**
 * - `timeout`: no answer within the tool's time limit
 * - `cancelled`: the caller gave up
 * - `connection`: the server died, closed the connection or could not be reached
 * - `changed`: the tool's definition differs from the one that the caller knows
 */
export type FailureReason = 'timeout' | 'cancelled' | 'connection' | 'changed';

/** The server did not execute the call: it requires a second request with more input. */
export class InputRequired extends Error {
  override name = 'InputRequired';

  constructor() {
    super('it requires another request with more input');
  }
}

/** The tool's definition changed between the caller's read and its call. */
export class DefinitionChanged extends Error {
  override name = 'DefinitionChanged';

  constructor(known: string, live: string) {
    super(`its definition has changed (known ${known.slice(0, 12)}, live ${live.slice(0, 12)})`);
  }
}

/**
 * A failure of the transport: there is no result that a model could read. A caller that repeats the call must check
 * {@link mayHaveRun} first.
 */
export class ToolCallFailure extends ReveilleError {
  readonly reason: FailureReason;
  /** `false` only where the server certainly never began. */
  readonly mayHaveRun: boolean;

  constructor(reason: FailureReason, message: string, { mayHaveRun, cause }: { mayHaveRun: boolean; cause?: unknown }) {
    super('unavailable', message, { retryable: !mayHaveRun && reason !== 'cancelled', cause });
    this.name = 'ToolCallFailure';
    this.reason = reason;
    this.mayHaveRun = mayHaveRun;
  }
}

/**
 * The state of a call without a result of its tool, with only a text for the model:
 * - `unsent`: nothing was sent
 * - `refused`: the server refused it
 * - `unclear`: the server answered, but the tool may have run
 */
export type WithoutResult = 'unsent' | 'refused' | 'unclear';

/** Text for the model in place of a result. */
export type InBandAnswer = { inBand: string; withoutResult: WithoutResult };

/** The judgement on a failed call: a failure to throw, or a text for the model because the server did answer. */
export type CallVerdict = { failure: ToolCallFailure } | InBandAnswer;

/** The codes with which a server refuses a request before it executes it. */
const REFUSAL_CODES: ReadonlySet<number> = new Set([
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.MethodNotFound,
  ProtocolErrorCode.InvalidRequest,
  ProtocolErrorCode.ParseError,
]);

/** Failures before a connection existed over which anything could have been sent. */
const CONNECT_ERROR_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The server requests input from a person or a model, or requests it without end. */
const INPUT_REQUEST_CODES: ReadonlySet<string> = new Set([
  SdkErrorCode.CapabilityNotSupported,
  SdkErrorCode.InputRequiredRoundsExceeded,
]);

/** The codes of an error and of its causes. */
function codesOf(thrown: unknown): string[] {
  const codes: string[] = [];
  for (let at = thrown; at instanceof Error && codes.length < 8; at = at.cause) {
    codes.push('code' in at ? String(at.code) : '');
  }
  return codes;
}

function verdictOnProtocolError(error: ProtocolError): CallVerdict {
  const message = error.message.replace(/^MCP error -?\d+: /, '');
  if (error.code === ProtocolErrorCode.InvalidParams) {
    return { inBand: `the server refused the call: ${message}`, withoutResult: 'refused' };
  }
  const withoutResult = REFUSAL_CODES.has(error.code) ? 'refused' : 'unclear';
  return { inBand: `the server answered with an error (${error.code}): ${message}`, withoutResult };
}

function verdictOnHttpError(called: string, error: SdkHttpError): CallVerdict {
  const { status } = error;
  // A status in the 400s says that the request itself was refused. The exception is 408: gateways send it after waiting
  // for their backend. After a status in the 500s the tool may have run.
  const mayHaveRun = status >= 500 || status < 400 || status === 408;
  const message = `${called}: the server answered with HTTP status ${status}`;
  return { failure: new ToolCallFailure('connection', message, { mayHaveRun, cause: error }) };
}

/**
 * Judges the error of a call.
 *
 * @param called names the tool in messages, as `alias/tool`
 * @param ending why the connection ended, if known; finishes "the server …"
 */
export function judgeFailure(called: string, thrown: unknown, ending: string | undefined): CallVerdict {
  if (thrown instanceof TimedOut) {
    const message = `${called} gave no answer within ${thrown.limitMs} ms; it may have run`;
    return { failure: new ToolCallFailure('timeout', message, { mayHaveRun: true, cause: thrown }) };
  }
  if (thrown instanceof Cancelled) {
    const message = `${called} was cancelled; it may have run`;
    return { failure: new ToolCallFailure('cancelled', message, { mayHaveRun: true, cause: thrown }) };
  }
  if (thrown instanceof ProtocolError) return verdictOnProtocolError(thrown);
  if (thrown instanceof SdkHttpError) return verdictOnHttpError(called, thrown);
  if (thrown instanceof InputRequired) {
    return {
      inBand: `the server requests something that this host does not support: ${thrown.message}`,
      withoutResult: 'unclear',
    };
  }
  if (thrown instanceof SdkError) {
    const { code, message } = thrown;
    if (INPUT_REQUEST_CODES.has(code)) {
      const inBand = `the server requests something that this host does not support: ${message}`;
      return { inBand, withoutResult: 'unclear' };
    }
    if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
      const inBand = "the tool has run, but the server's answer is not a tool result";
      return { inBand, withoutResult: 'unclear' };
    }
  }
  const mayHaveRun = !codesOf(thrown).some(
    (code) => CONNECT_ERROR_CODES.has(code) || code === SdkErrorCode.NotConnected,
  );
  const reason = ending ? `the server ${ending}` : thrownText(thrown);
  const message = `${called}: ${reason}${mayHaveRun ? '; it may have run' : ''}`;
  return { failure: new ToolCallFailure('connection', message, { mayHaveRun, cause: thrown }) };
}

/**
 * Judges why a call was not sent.
 *
 * @param reason the problem of the server, finishes "server … "; `undefined` when the server is ready and has no such tool
 */
export function judgeUnsent(alias: string, tool: string, thrown: unknown, reason: string | undefined): CallVerdict {
  const called = `${alias}/${tool}`;
  const options = { mayHaveRun: false, cause: thrown };
  if (thrown instanceof Cancelled) {
    return { failure: new ToolCallFailure('cancelled', `${called} was cancelled before it was sent`, options) };
  }
  if (thrown instanceof TimedOut) {
    const message = `${called} was not sent within ${thrown.limitMs} ms: the server's tools were still being checked`;
    return { failure: new ToolCallFailure('timeout', message, options) };
  }
  if (thrown instanceof DefinitionChanged) {
    return { failure: new ToolCallFailure('changed', `${called} was not called: ${thrown.message}`, options) };
  }
  if (reason === undefined) {
    return { inBand: `${called} is not available: the server no longer has it`, withoutResult: 'unsent' };
  }
  return { failure: new ToolCallFailure('connection', `${called}: server "${alias}" ${reason}`, options) };
}
