/**
 * One HTTP exchange without redirects, with limits on time and on the answer's size. A failure says whether the request
 * may have been sent, which decides whether it may be repeated. This follows from the connection's state, never from an
 * error code. Failures before the connection is established count as unsent: no address, no local port, an untrusted
 * certificate, a timeout in the queue.
 */
import type { Dispatcher } from 'undici';
import { withoutTrailing } from '../../wire/text.ts';
import type { Clock } from '../clock/clock.ts';
import { type Handler, plainTransport, type Transport } from './plain-transport.ts';

export type Answered = {
  result: 'answered';
  status: number;
  headers: Headers;
  body: Buffer;
  /** The body is incomplete: it exceeds `maxBytes`, or the connection broke. */
  truncated: boolean;
};

export type Unanswered =
  /** No byte of the request was sent. */
  | { result: 'unsent'; error: Error }
  /** The request was sent, at least in part, and no answer arrived. */
  | { result: 'unknown'; error: Error };

export type Exchange = Answered | Unanswered;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ExchangeRequest = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers?: Record<string, string>;
  body?: string | Uint8Array | undefined;
  /** Maximum of kept body bytes; the rest is not read. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
  /** Time limit of the whole exchange; without it, only `signal` ends it. */
  limit?: { readonly clock: Clock; readonly ms: number };
};

/** The reason of an exchange that timed out. */
export class ExchangeTimeout extends Error {
  readonly limitMs: number;

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
    this.limitMs = limitMs;
  }
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

export type AnswerOptions = {
  maxBytes: number;
  /** How many more bytes are read and dropped, so that the connection can be reused. Default 0. */
  drainBytes?: number;
  /** Whether the status alone settles an answer, so that its body is dropped. */
  needsNoBody?: (status: number) => boolean;
  /** Called once with the result. */
  settle: (exchange: Exchange) => void;
  /** Called when the connection is free again, or closed. */
  onEnd?: () => void;
};

const NO_HEADERS: Headers = {};
const NOTHING = Buffer.alloc(0);

/** Collects the answer. The transport calls the methods in the order of the request's life cycle. */
export class Answer implements Handler {
  readonly #options: AnswerOptions;
  #connecting: Dispatcher.DispatchController | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted: Error | undefined;
  #status = 0;
  #headers: Headers = NO_HEADERS;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #settled = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** Aborts. A request that waits for a connection settles as unsent now and is dropped when it gets one. */
  abort(reason: Error): void {
    this.#aborted ??= reason;
    if (!this.#controller) this.#settle({ result: 'unsent', error: reason });
    (this.#controller ?? this.#connecting)?.abort(reason);
  }

  onConnecting(controller: Dispatcher.DispatchController): void {
    this.#connecting = controller;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#aborted) controller.abort(this.#aborted);
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (this.#options.needsNoBody?.(status)) this.#finish(false);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { maxBytes, drainBytes = 0 } = this.#options;
    const space = maxBytes - this.#bytes;
    this.#bytes += chunk.length;
    if (!this.#settled && space > 0) this.#chunks.push(chunk.length > space ? chunk.subarray(0, space) : chunk);
    if (this.#bytes <= maxBytes) return;
    this.#finish(true);
    if (this.#bytes > maxBytes + drainBytes) controller.abort(new Error(`the answer is longer than ${maxBytes} bytes`));
  }

  onResponseEnd(): void {
    this.#options.onEnd?.();
    this.#finish(false);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#options.onEnd?.();
    // A received status is an answer, even if the rest is missing.
    if (this.#status !== 0) this.#finish(true);
    else this.#settle({ result: this.#controller ? 'unknown' : 'unsent', error });
  }

  #finish(truncated: boolean): void {
    if (this.#settled) return;
    const body = this.#chunks.length === 0 ? NOTHING : Buffer.concat(this.#chunks);
    this.#settle({ result: 'answered', status: this.#status, headers: this.#headers, body, truncated });
  }

  #settle(exchange: Exchange): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.settle(exchange);
  }
}

function optionsOf({ method, url, headers, body }: Omit<ExchangeRequest, 'maxBytes'>): Dispatcher.DispatchOptions {
  const path = url.pathname + url.search;
  // `limit` and `signal` replace undici's timeouts.
  const unbounded = { headersTimeout: 0, bodyTimeout: 0 };
  return { origin: url.origin, path, method, headers: headers ?? {}, body: body ?? null, ...unbounded };
}

/** Sends a request and waits for its answer. Never rejects: the result describes failures. */
export function exchange(transport: Transport, request: ExchangeRequest): Promise<Exchange> {
  const { signal, limit, maxBytes } = request;
  if (signal?.aborted) return Promise.resolve({ result: 'unsent', error: errorOf(signal.reason) });
  return new Promise((resolve) => {
    const onAbort = () => answer.abort(errorOf(signal!.reason));
    const answer = new Answer({
      maxBytes,
      settle: (result) => {
        cancel?.();
        signal?.removeEventListener('abort', onAbort);
        resolve(result);
      },
    });
    signal?.addEventListener('abort', onAbort);
    const cancel = limit?.clock.after(limit.ms, () => answer.abort(new ExchangeTimeout(limit.ms)));
    try {
      transport.dispatch(optionsOf(request), answer);
    } catch (thrown) {
      answer.abort(errorOf(thrown));
    }
  });
}

/** An answer that is not an event stream. */
export class StreamRefused extends Error {
  readonly status: number;
  /** The beginning of its body. */
  readonly text: string;
  /** The unparsed `Retry-After` header. */
  readonly retryAfter: unknown;

  constructor(status: number, text: string, retryAfter: unknown) {
    super(`it answered ${status} instead of an event stream`);
    this.status = status;
    this.text = text;
    this.retryAfter = retryAfter;
  }
}

const REFUSAL_BYTES = 64 * 1024;

/**
 * Opens an event stream. Resolves once it is open, and rejects with {@link StreamRefused} for any other answer. It ends
 * only when `signal` aborts.
 */
export function openStream(
  url: URL,
  given: { headers: Record<string, string>; signal: AbortSignal; transport?: Transport | undefined },
): Promise<ReadableStream<Uint8Array>> {
  const { headers, signal, transport = plainTransport } = given;
  if (signal.aborted) return Promise.reject(errorOf(signal.reason));
  return new Promise((resolve, reject) => {
    let sink: ReadableStreamDefaultController<Uint8Array> | undefined;
    let onAbort = () => {};
    let refusal: { status: number; retryAfter: unknown; chunks: Buffer[]; bytes: number } | undefined;
    const refuse = ({ status, retryAfter, chunks }: NonNullable<typeof refusal>) =>
      reject(new StreamRefused(status, Buffer.concat(chunks).toString('utf8'), retryAfter));
    const abortWith = (controller: Dispatcher.DispatchController) => {
      // A repeated request has another controller.
      signal.removeEventListener('abort', onAbort);
      onAbort = () => controller.abort(errorOf(signal.reason));
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort);
    };
    transport.dispatch(optionsOf({ method: 'GET', url, headers: { ...headers, accept: 'text/event-stream' } }), {
      onConnecting: abortWith,
      // An agent of undici has no other method for it.
      onRequestStart: abortWith,
      onResponseStart(controller, status, head) {
        if (status !== 200 || !String(head['content-type']).startsWith('text/event-stream')) {
          refusal = { status, retryAfter: head['retry-after'], chunks: [], bytes: 0 };
          // Only an envelope is read to its end.
          if (!String(head['content-type']).startsWith('application/json'))
            controller.abort(new Error('not an envelope'));
          return;
        }
        resolve(
          new ReadableStream({
            start: (opened) => {
              sink = opened;
            },
            pull: () => controller.resume(),
            cancel: (reason) => controller.abort(errorOf(reason)),
          }),
        );
      },
      onResponseData(controller, chunk) {
        if (refusal) {
          refusal.chunks.push(chunk);
          refusal.bytes += chunk.length;
          if (refusal.bytes > REFUSAL_BYTES) controller.abort(new Error('the refusal is too long'));
          return;
        }
        sink?.enqueue(chunk);
        if ((sink?.desiredSize ?? 1) <= 0) controller.pause();
      },
      onResponseEnd() {
        signal.removeEventListener('abort', onAbort);
        if (refusal) refuse(refusal);
        else sink?.close();
      },
      onResponseError(_, error) {
        signal.removeEventListener('abort', onAbort);
        if (sink) sink.error(error);
        else if (refusal && !signal.aborted) refuse(refusal);
        else reject(error);
      },
    });
  });
}

export function joinUrl(base: string, path: string): URL {
  return new URL(withoutTrailing(base, '/') + path);
}

/** Whether a token is valid in a header. The error message of Node would otherwise contain the whole token. */
export function headerSafe(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}

/** `Retry-After` in whole seconds; a date counts as absent, because daemons rarely send one. */
export function retryAfterOf(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header.trim()) ? Number(header) : undefined;
}

/** The message of the deepest cause: undici and Node wrap the kernel's errors. */
export function reasonOf(error: Error): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(errorOf(error.errors[0]));
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message || error.name;
}

/** The system's error code, such as `ECONNREFUSED`, or else the message of the deepest cause. */
export function codeOf(thrown: unknown): string {
  const error = errorOf(thrown);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.cause instanceof Error ? codeOf(error.cause) : reasonOf(error);
}
