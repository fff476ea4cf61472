/** HTTP calls to a Reveille daemon: timeouts, envelopes, and errors per kind of failure. */
import type { z } from 'zod';
import { NoEnvelope, openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { ANSWER_DEPTH, encodeJson, parseJsonObject, type RawJson } from '../../wire/json.ts';
import { type PathNames, pathOf, type Route } from '../../wire/route.ts';
import { withoutTrailing } from '../../wire/text.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Clock } from '../clock/clock.ts';
import { traceHeaders } from '../trace/trace.ts';
import { codeOf, type ExchangeRequest, exchange, headerSafe, retryAfterOf } from './exchange.ts';
import { plainTransport, type Transport } from './plain-transport.ts';

/**
 * Runs the work of one call with a signal that limits its time. The signal's reason completes a sentence that begins
 * with the daemon's name. `caller` aborts the call earlier.
 */
export type LimitedCall = <T>(work: (signal: AbortSignal) => Promise<T>, caller?: AbortSignal) => Promise<T>;

/** Limits a call to `timeoutMs`. */
export function withinTime(clock: Clock, timeoutMs: number): LimitedCall {
  return async (work, caller) => {
    const limit = new AbortController();
    const abortByCaller = () => limit.abort(new Error('did not answer before the caller aborted the call'));
    const cancel = clock.after(timeoutMs, () => limit.abort(new Error(`did not answer within ${timeoutMs} ms`)));
    caller?.addEventListener('abort', abortByCaller);
    if (caller?.aborted) abortByCaller();
    try {
      return await work(limit.signal);
    } finally {
      cancel();
      caller?.removeEventListener('abort', abortByCaller);
    }
  };
}

export type Call = {
  method: ExchangeRequest['method'];
  /** Path below the daemon's address, already encoded. */
  path: string;
  query?: Readonly<Record<string, string | number | undefined>> | undefined;
  /** Encoded with `encodeJson`, which writes raw JSON verbatim. */
  body?: unknown;
  token?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Headers computed from a request, such as a signature. Without a body it is ''. */
  sign?: ((request: { method: string; path: string; body: string }) => Record<string, string>) | undefined;
  /** For requests that change state: end of the error message if the call was sent and not answered. */
  ifLost?: string | undefined;
};

/** The call of a route; `given` has the parameters of its path. */
export function callOf<R extends Route>(
  route: R,
  given: { readonly [Name in PathNames<R['path']>]: string },
  more: Omit<Call, 'method' | 'path'> = {},
): Call {
  return { method: route.method.toUpperCase() as Call['method'], path: pathOf(route, given), ...more };
}

/** A call without an answer, or with an answer that this version cannot parse. */
export class NoAnswer extends ReveilleError {
  /** Whether the daemon may have received the request. */
  readonly mayHaveArrived: boolean;

  constructor(message: string, options: { mayHaveArrived: boolean; retryable?: boolean; cause?: unknown }) {
    const { mayHaveArrived, retryable = true, cause } = options;
    super('unavailable', message, { retryable, cause });
    this.mayHaveArrived = mayHaveArrived;
  }
}

export type Daemon = {
  /** Name in sentences: `chronosd`, `the router`. */
  name: string;
  /** Base URL, such as `http://127.0.0.1:9096`. */
  url: string;
  /** Remedy if nothing listens there. */
  remedy: string;
  token?: string | undefined;
  /** The token's name in error messages. */
  tokenName: string;
  /** Sent with every call. */
  headers?: Readonly<Record<string, string>>;
  /** A longer answer is an error. Default 64 MiB. */
  maxBytes?: number;
  /** Rewords the daemon's own errors for the caller. */
  explain?: ((error: ReveilleError) => ReveilleError) | undefined;
  /** Used for the calls instead of new connections. */
  transport?: Transport | undefined;
};

const MAX_BYTES = 64 * 1024 * 1024;

/** @throws ReveilleError `invalid_request` for a token that is not valid in a header */
export function checkToken(token: string | undefined, name: string): void {
  if (token !== undefined && !headerSafe(token))
    throw new ReveilleError('invalid_request', `${name} must be printable ASCII without spaces`);
}

/** The address for requests and messages: no credentials, no query, no trailing slash. */
function addressOf({ url, name }: Daemon): string {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new ReveilleError('invalid_request', `the address of ${name} must be an http:// or https:// URL`);
  if (parsed.username || parsed.password)
    throw new ReveilleError('invalid_request', `the address of ${name} must not carry a user name or password`);
  return withoutTrailing(`${parsed.origin}${parsed.pathname}`, '/');
}

/** @throws ReveilleError `invalid_request` for an invalid address or token */
export function createCaller(daemon: Daemon) {
  const { name, remedy, token, tokenName, headers, maxBytes = MAX_BYTES, explain = (error) => error } = daemon;
  const { transport = plainTransport } = daemon;
  const address = addressOf(daemon);
  const who = `${name} at ${address}`;
  checkToken(token, tokenName);

  /**
   * Sends a call and opens the envelope of its answer.
   *
   * @throws ReveilleError the daemon's own error, {@link NoAnswer} if there was no answer
   */
  async function call(call: Call, signal: AbortSignal): Promise<RawJson> {
    const { method, path, query, ifLost = '', sign, token: bearer = token } = call;
    const url = new URL(`${address}${path}`);
    for (const [member, value] of Object.entries(query ?? {}))
      if (value !== undefined) url.searchParams.set(member, String(value));
    const body = call.body === undefined ? undefined : encodeJson(call.body);
    const answer = await exchange(transport, {
      ...{ method, url, body, maxBytes, signal },
      headers: {
        accept: 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...traceHeaders(),
        ...headers,
        ...call.headers,
        ...sign?.({ method, path: url.pathname, body: body ?? '' }),
      },
    });
    const cutOff = answer.result === 'answered' && answer.truncated;
    if (cutOff && answer.body.length >= maxBytes) {
      const message = `the answer of ${who} is longer than ${maxBytes} bytes; request fewer entries with a smaller limit`;
      throw new NoAnswer(message, { mayHaveArrived: true, retryable: false });
    }
    if (answer.result !== 'answered' || cutOff) {
      const mayHaveArrived = answer.result !== 'unsent';
      const cause = answer.result === 'answered' ? undefined : answer.error;
      const lost = mayHaveArrived ? ifLost : '';
      const failed = (message: string) => new NoAnswer(message, { mayHaveArrived, cause });
      if (signal.aborted && signal.reason instanceof Error) throw failed(`${who} ${signal.reason.message}${lost}`);
      if (!mayHaveArrived) throw failed(`cannot reach ${who} (${codeOf(cause)}): ${remedy}`);
      const why = cause === undefined ? 'it is incomplete' : codeOf(cause);
      throw failed(`${who} closed the connection before it answered (${why})${lost}`);
    }
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(answer.body);
    } catch (cause) {
      throw new ReveilleError('unavailable', `${who} answered with bytes that are not UTF-8${ifLost}`, { cause });
    }
    try {
      return openEnvelope(text, answer.status, who, retryAfterOf(answer.headers['retry-after']));
    } catch (thrown) {
      // A proxy in between answers 502 or 504 when the daemon's answer is lost.
      if (thrown instanceof NoEnvelope && thrown.mayHaveArrived && ifLost !== '')
        throw new NoAnswer(`${thrown.message}${ifLost}`, { mayHaveArrived: true, cause: thrown });
      throw thrown instanceof ReveilleError ? explain(thrown) : thrown;
    }
  }

  /** Parses an answer of this version; throws {@link NoAnswer} for any other. */
  function reading<T>({ method, path, ifLost = '' }: Call, read: () => T): T {
    try {
      return read();
    } catch (cause) {
      const why = cause instanceof ReveilleError ? cause.message : 'it is malformed';
      const message = `${who} answered ${method} ${path} unexpectedly (does it have the same version?): ${why}${ifLost}`;
      throw new NoAnswer(message, { mayHaveArrived: true, retryable: false, cause });
    }
  }

  /** Parses data with a schema. Values never appear in messages: they may be tokens. */
  function read<T extends z.ZodType>(call: Call, schema: T, data: RawJson): z.output<T> {
    return reading(call, () => parseOrThrow(schema, parseJsonObject(data.text, [], ANSWER_DEPTH), ['token', 'nonce']));
  }

  return { address, call, reading, read };
}
