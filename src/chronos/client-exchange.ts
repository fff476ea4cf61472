/** One HTTP request to chronosd and its answer: where it goes, how long it may take, and what each way of failing is called. */
import type { Clock } from '../kit/clock/clock.ts';
import { PERSON_HEADER, PRINCIPAL_HEADER } from '../wire/agent.ts';
import { openEnvelope } from '../wire/envelope.ts';
import { ReveilleError } from '../wire/errors.ts';
import { encodeJson, type RawJson } from '../wire/json.ts';

/** Makes the proof for one request. */
export type PersonProver = (request: { method: string; path: string; body: string }) => string;

export type Call = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path below the daemon's address, already encoded. */
  path: string;
  query?: Readonly<Record<string, string | number | undefined>> | undefined;
  /** Written with `encodeJson`, so that source text inside stays as it is. */
  body?: unknown;
  bearer?: string | undefined;
  principal?: string | undefined;
  /** Proves that a person makes the call. */
  person?: PersonProver | undefined;
  /**
   * What the caller should do when the answer got lost, for requests that change something: it is appended to the error of a
   * call after which nobody knows whether it was carried out.
   */
  ifLost?: string | undefined;
};

/** Sends one call and opens the envelope of its answer. Rejects with `ReveilleError` and nothing else. */
export type Exchange = (call: Call, signal: AbortSignal) => Promise<RawJson>;

/** More than this in one answer is not read: 500 alarms of ordinary size are a hundredth of it. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Failures of connecting: the request never left. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
  // A port that `fetch` refuses to talk to; it has no code.
  'bad port',
]);

/** Whether a token can stand in a header; what cannot would otherwise end up, in full, in an error message of `fetch`. */
export function headerSafe(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}

/** The address as it may be shown and requested: no credentials, no query, no trailing slash. */
function addressOf(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new ReveilleError('invalid_request', "chronosd's address must be an http:// or https:// URL");
  }
  if (parsed.username || parsed.password) {
    throw new ReveilleError('invalid_request', "chronosd's address must not carry a user name or password");
  }
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '');
}

function codeOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : String(cause);
}

async function readText(response: Response, who: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body) {
    for await (const chunk of response.body) {
      size += chunk.byteLength;
      if (size > MAX_ANSWER_BYTES) {
        const message = `${who} answered with more than ${MAX_ANSWER_BYTES} bytes; ask for fewer entries with a smaller limit`;
        throw new ReveilleError('unavailable', message, { retryable: false });
      }
      chunks.push(chunk);
    }
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new ReveilleError('unavailable', `${who} answered with bytes that are not UTF-8`, { cause });
  }
}

/**
 * @param url where chronosd listens
 * @throws ReveilleError `invalid_request` when it is no address to call
 */
export function createExchange(url: string): Exchange {
  const address = addressOf(url);
  const who = `chronosd at ${address}`;

  /** A call that failed without an answer; `detail` completes "chronosd at …". */
  const lost = (call: Call, detail: string, cause: unknown) =>
    new ReveilleError(
      'unavailable',
      `${who} ${detail}${call.ifLost ? `; it is not known whether the request was carried out: ${call.ifLost}` : ''}`,
      { cause },
    );

  const failure = (call: Call, thrown: unknown, signal: AbortSignal): ReveilleError => {
    if (signal.aborted && signal.reason instanceof Error) return lost(call, signal.reason.message, signal.reason);
    if (thrown instanceof ReveilleError) return thrown;
    const code = codeOf(thrown);
    if (NEVER_SENT.has(code)) {
      const remedy = 'is chronosd running? start it with "reveille up", or correct the address';
      return new ReveilleError('unavailable', `cannot reach ${who} (${code}): ${remedy}`, { cause: thrown });
    }
    return lost(call, `broke the connection off before it had answered (${code})`, thrown);
  };

  return async (call, signal) => {
    const target = new URL(`${address}${call.path}`);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) target.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { accept: 'application/json' };
    if (call.bearer !== undefined) headers.authorization = `Bearer ${call.bearer}`;
    if (call.principal !== undefined) headers[PRINCIPAL_HEADER] = call.principal;
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    const body = call.body === undefined ? null : encodeJson(call.body);
    if (call.person && body !== null)
      headers[PERSON_HEADER] = call.person({ method: call.method, path: target.pathname, body });

    let status: number;
    let text: string;
    try {
      const response = await fetch(target, { method: call.method, headers, body, signal, redirect: 'manual' });
      status = response.status;
      text = await readText(response, who);
    } catch (thrown) {
      throw failure(call, thrown, signal);
    }
    return openEnvelope(text, status, who);
  };
}

/**
 * Runs `work` with a signal that aborts after `timeoutMs`, or when the caller gives up. The reason completes the sentence
 * "chronosd at … ".
 */
export async function withinDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  limits: { clock: Clock; timeoutMs: number; signal: AbortSignal | undefined },
): Promise<T> {
  const { clock, timeoutMs, signal } = limits;
  const controller = new AbortController();
  const giveUp = () => controller.abort(new Error('was not waited for: the caller gave the call up'));
  const cancelTimer = clock.after(timeoutMs, () =>
    controller.abort(new Error(`did not answer within ${timeoutMs} ms`)),
  );
  signal?.addEventListener('abort', giveUp);
  if (signal?.aborted) giveUp();
  try {
    return await work(controller.signal);
  } finally {
    cancelTimer();
    signal?.removeEventListener('abort', giveUp);
  }
}
