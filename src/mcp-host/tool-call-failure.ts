/** A tool call that brought no answer, and whether it may have had its effect all the same. */
import { ProtocolError, ProtocolErrorCode, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { ReveilleError } from '../wire/errors.ts';
import { Cancelled, TimedOut } from './deadline.ts';

/**
 * - `timeout`: no answer within the tool's time
 * - `cancelled`: the caller gave up
 * - `connection`: the server died, hung up or could not be reached
 * - `changed`: the tool has another definition than the one that the caller knows
 */
export type FailureReason = 'timeout' | 'cancelled' | 'connection' | 'changed';

/** The server did not carry the call out as it stands: it wants to be called again with more. */
export class AskedForMore extends Error {
  override name = 'AskedForMore';

  constructor() {
    super('it wants to be called again with more input');
  }
}

/** Between the caller's look at a tool and its call the tool has changed. */
export class AnotherDefinition extends Error {
  override name = 'AnotherDefinition';

  constructor(known: string, live: string) {
    super(`its definition has changed (known ${known.slice(0, 12)}, live ${live.slice(0, 12)})`);
  }
}

/**
 * A failure of the transport: there is no result that a model could read. Whoever repeats the call must ask {@link
 * mayHaveRun} first.
 */
export class ToolCallFailure extends ReveilleError {
  readonly reason: FailureReason;
  /** `false` only where it is certain that the server never began. */
  readonly mayHaveRun: boolean;

  constructor(reason: FailureReason, message: string, { mayHaveRun, cause }: { mayHaveRun: boolean; cause?: unknown }) {
    super('unavailable', message, { retryable: !mayHaveRun && reason !== 'cancelled', cause });
    this.name = 'ToolCallFailure';
    this.reason = reason;
    this.mayHaveRun = mayHaveRun;
  }
}

/**
 * How a call stands that has no result of its tool, only words for the model:
 * - `unsent`: nothing was sent
 * - `refused`: the server turned it away
 * - `unclear`: the server answered, and the tool may have run all the same
 */
export type WithoutResult = 'unsent' | 'refused' | 'unclear';

/** Words for the model in the place of a result. */
export type InBand = { inBand: string; withoutResult: WithoutResult };

/** What went wrong with a call: a failure to throw, or words for the model, because the server did answer. */
export type CallVerdict = { failure: ToolCallFailure } | InBand;

/** The codes with which a server says that it did not take a request on. */
const TURNED_AWAY: ReadonlySet<number> = new Set([
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.MethodNotFound,
  ProtocolErrorCode.InvalidRequest,
  ProtocolErrorCode.ParseError,
]);

/** Failures before a connection existed over which anything could have been sent. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The server wants a person or a model to be asked something, or asks without end. */
const ASKS_FOR_MORE: ReadonlySet<string> = new Set([
  SdkErrorCode.CapabilityNotSupported,
  SdkErrorCode.InputRequiredRoundsExceeded,
]);

/** The codes of an error and of those that caused it. */
function codesOf(thrown: unknown): string[] {
  const codes: string[] = [];
  for (let at = thrown; at instanceof Error && codes.length < 8; at = at.cause) {
    codes.push('code' in at ? String(at.code) : '');
  }
  return codes;
}

function verdictOnProtocolError(error: ProtocolError): CallVerdict {
  const words = error.message.replace(/^MCP error -?\d+: /, '');
  if (error.code === ProtocolErrorCode.InvalidParams) {
    return { inBand: `the server refused the call: ${words}`, withoutResult: 'refused' };
  }
  const withoutResult = TURNED_AWAY.has(error.code) ? 'refused' : 'unclear';
  return { inBand: `the server answered with an error (${error.code}): ${words}`, withoutResult };
}

function verdictOnHttpError(called: string, error: SdkHttpError): CallVerdict {
  const { status } = error;
  // A status in the 400s says that the request itself was turned away, but for 408, which gateways send when they have
  // waited long enough for what is behind them; after one in the 500s anything may have happened.
  const mayHaveRun = status >= 500 || status < 400 || status === 408;
  const message = `${called}: the server answered with HTTP status ${status}`;
  return { failure: new ToolCallFailure('connection', message, { mayHaveRun, cause: error }) };
}

/**
 * Judges what a call threw.
 *
 * @param called names the tool in messages, as `alias/tool`
 * @param ending why the connection ended, in words that finish "the server …", where that is known
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
  if (thrown instanceof AskedForMore) {
    return {
      inBand: `the server asks for something that this host does not give: ${thrown.message}`,
      withoutResult: 'unclear',
    };
  }
  if (thrown instanceof SdkError) {
    const { code, message } = thrown;
    if (ASKS_FOR_MORE.has(code)) {
      const inBand = `the server asks for something that this host does not give: ${message}`;
      return { inBand, withoutResult: 'unclear' };
    }
    if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
      const inBand = 'the tool has run, but the server answered with something that is no tool result';
      return { inBand, withoutResult: 'unclear' };
    }
  }
  const mayHaveRun = !codesOf(thrown).some((code) => NEVER_CONNECTED.has(code) || code === SdkErrorCode.NotConnected);
  const why = ending ? `the server ${ending}` : thrown instanceof Error ? thrown.message : String(thrown);
  const message = `${called}: ${why}${mayHaveRun ? '; it may have run' : ''}`;
  return { failure: new ToolCallFailure('connection', message, { mayHaveRun, cause: thrown }) };
}

/**
 * Judges why a call was not even sent.
 *
 * @param why what is wrong with the server, in words that finish "server … "; `undefined` when it is there and has no
 *   such tool
 */
export function judgeUnsent(alias: string, tool: string, thrown: unknown, why: string | undefined): CallVerdict {
  const called = `${alias}/${tool}`;
  const options = { mayHaveRun: false, cause: thrown };
  if (thrown instanceof Cancelled) {
    return { failure: new ToolCallFailure('cancelled', `${called} was cancelled before it was sent`, options) };
  }
  if (thrown instanceof TimedOut) {
    const message = `${called} was not sent within ${thrown.limitMs} ms: the server was still being looked at`;
    return { failure: new ToolCallFailure('timeout', message, options) };
  }
  if (thrown instanceof AnotherDefinition) {
    return { failure: new ToolCallFailure('changed', `${called} was not called: ${thrown.message}`, options) };
  }
  if (why === undefined) {
    return { inBand: `${called} is not available: the server does not have it any more`, withoutResult: 'unsent' };
  }
  return { failure: new ToolCallFailure('connection', `${called}: server "${alias}" ${why}`, options) };
}
