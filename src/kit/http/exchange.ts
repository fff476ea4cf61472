/**
 * One HTTP exchange: no redirect is followed, time and the answer's size are bounded, and a failure says whether the
 * request can have left. That decides whether it may be sent again, so it is read off the connection and never guessed
 * from an error code: what fails before the connection stands (no address, no local port, a certificate that is not
 * trusted, a time that ran out in the queue) was not sent, whatever its code.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock/clock.ts';
import { type Handler, plainTransport, type Transport } from './plain-transport.ts';

export type Answered = {
  result: 'answered';
  status: number;
  headers: Headers;
  body: Buffer;
  /** The body is not whole: it is longer than was to be kept, or the connection broke. */
  truncated: boolean;
};

export type Unanswered =
  /** Not a byte of the request left: it was not received. */
  | { result: 'unsent'; error: Error }
  /** The request, or a part of it, left, and no answer came. */
  | { result: 'unknown'; error: Error };

export type Exchange = Answered | Unanswered;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ExchangeRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers?: Record<string, string>;
  body?: string | Uint8Array | undefined;
  /** Of the answer's body, no more than this is kept; what is over is not read. */
  maxBytes: number;
  /** Gives the exchange up. */
  signal?: AbortSignal | undefined;
  /** How long the exchange may take as a whole; without it only `signal` ends it. */
  limit?: { readonly clock: Clock; readonly ms: number };
};

/** Why an exchange ended whose time ran out. */
export class Overdue extends Error {
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
  /** How much beyond that is read and dropped, so that the connection can be used again; nothing unless told. */
  drainBytes?: number;
  /** Whether an answer of this status is settled with its head; its body is dropped then. */
  needsNoBody?: (status: number) => boolean;
  /** Hears the result, once. */
  settle: (exchange: Exchange) => void;
  /** Hears that the connection is free again, or gone. */
  onEnd?: () => void;
};

const NO_HEADERS: Headers = {};
const NOTHING = Buffer.alloc(0);

/** Collects what comes back. The transport calls the methods; the order of their calls is the request's life. */
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

  /** Gives up. A request that still waits for a connection settles as unsent now and is dropped when its turn comes. */
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
    const room = maxBytes - this.#bytes;
    this.#bytes += chunk.length;
    if (!this.#settled && room > 0) this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
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
    // A status that has arrived is an answer, even when the rest of it was cut off.
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
  // Our own limits bound everything.
  const unbounded = { headersTimeout: 0, bodyTimeout: 0 };
  return { origin: url.origin, path, method, headers: headers ?? {}, body: body ?? null, ...unbounded };
}

/** Sends a request and waits for its answer. Never rejects: what went wrong is in the result. */
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
    const cancel = limit?.clock.after(limit.ms, () => answer.abort(new Overdue(limit.ms)));
    try {
      transport.dispatch(optionsOf(request), answer);
    } catch (thrown) {
      answer.abort(errorOf(thrown));
    }
  });
}

/** Another answer than a stream of events. */
export class StreamRefused extends Error {
  readonly status: number;
  /** The beginning of its body. */
  readonly text: string;
  /** `Retry-After` as it came. */
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
 * Opens a stream of events; resolves when it stands, and rejects with {@link StreamRefused} for any other answer.
 * `signal` ends it, and nothing else does.
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
    transport.dispatch(optionsOf({ method: 'GET', url, headers: { ...headers, accept: 'text/event-stream' } }), {
      onConnecting(controller) {
        // A request that is sent once more has another controller.
        signal.removeEventListener('abort', onAbort);
        onAbort = () => controller.abort(errorOf(signal.reason));
        signal.addEventListener('abort', onAbort);
      },
      onResponseStart(controller, status, head) {
        if (status !== 200 || !String(head['content-type']).startsWith('text/event-stream')) {
          refusal = { status, retryAfter: head['retry-after'], chunks: [], bytes: 0 };
          // Only an envelope is worth waiting for.
          if (!String(head['content-type']).startsWith('application/json')) controller.abort(new Error('no envelope'));
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
          if (refusal.bytes > REFUSAL_BYTES) controller.abort(new Error('the refusal has no end'));
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

/** An address below a base address. */
export function below(base: string, path: string): URL {
  return new URL(base.replace(/\/+$/, '') + path);
}

/** Whether a token can stand in a header; what cannot would otherwise end up, in full, in an error message. */
export function headerSafe(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}

/** `Retry-After` in whole seconds; the form with a date is rare between daemons and taken as absent. */
export function retryAfterOf(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header.trim()) ? Number(header) : undefined;
}

/** The deepest cause in words: undici and Node wrap what the kernel said. */
export function reasonOf(error: Error): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(errorOf(error.errors[0]));
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message || error.name;
}

/** The system's code, such as `ECONNREFUSED`, or else the deepest cause in words. */
export function codeOf(thrown: unknown): string {
  const error = errorOf(thrown);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.cause instanceof Error ? codeOf(error.cause) : reasonOf(error);
}
