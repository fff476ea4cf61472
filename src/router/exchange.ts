/**
 * One HTTP exchange with a daemon: no redirect is followed, the answer is bounded, and a failure says whether the request can
 * have arrived. That last point decides whether it may be sent again, so it is read off the connection and not guessed from
 * error codes.
 */
import type { Dispatcher } from 'undici';

export type Exchange =
  | { result: 'answered'; status: number; headers: Headers; body: Buffer; truncated: boolean }
  /** Not a byte of the request left: it was not received. */
  | { result: 'unsent'; error: Error }
  /** The request, or a part of it, left, and no answer came. */
  | { result: 'unknown'; error: Error };

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export type ExchangeRequest = {
  method: 'GET' | 'POST';
  url: URL;
  headers: Record<string, string>;
  body?: string;
  /** Of the answer's body, no more than this is kept; what is over is not read. */
  maxBytes: number;
  signal: AbortSignal;
};

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

/** Collects what comes back. Undici calls the methods; the order of their calls is the request's life. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number;
  readonly #settle: (exchange: Exchange) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted: Error | undefined;
  #head: { status: number; headers: Headers } | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, settle: (exchange: Exchange) => void) {
    this.#maxBytes = maxBytes;
    this.#settle = settle;
  }

  /** Gives up. A request that still waits for a connection settles as unsent now and is dropped when its turn comes. */
  abort(reason: Error): void {
    this.#aborted = reason;
    if (this.#controller) this.#controller.abort(reason);
    else this.#settle({ result: 'unsent', error: reason });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#aborted) controller.abort(this.#aborted);
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status >= 200) this.#head = { status, headers };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = this.#maxBytes - this.#bytes;
    this.#bytes += chunk.length;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, Math.max(room, 0)) : chunk);
    if (chunk.length > room) controller.abort(new Error(`the answer is longer than ${this.#maxBytes} bytes`));
  }

  onResponseEnd(): void {
    this.#finish(false);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // A status that has arrived is an answer, even when the rest of it was cut off.
    if (this.#head) this.#finish(true);
    else this.#settle({ result: this.#controller ? 'unknown' : 'unsent', error });
  }

  #finish(truncated: boolean): void {
    this.#settle({ result: 'answered', ...this.#head!, body: Buffer.concat(this.#chunks), truncated });
  }
}

/** Sends a request and waits for its answer. Never rejects: what went wrong is in the result. */
export function exchange(dispatcher: Dispatcher, request: ExchangeRequest): Promise<Exchange> {
  const { signal, url } = request;
  if (signal.aborted) return Promise.resolve({ result: 'unsent', error: errorOf(signal.reason) });
  return new Promise((resolve) => {
    const onAbort = () => answer.abort(errorOf(signal.reason));
    const answer = new Answer(request.maxBytes, (result) => {
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    });
    signal.addEventListener('abort', onAbort);
    dispatcher.dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        // The caller's signal bounds everything.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      answer,
    );
  });
}

/** An address below a daemon's base address. */
export function below(base: string, path: string): URL {
  return new URL(base.replace(/\/+$/, '') + path);
}

/** The deepest cause in words: undici and Node wrap what the kernel said. */
export function reasonOf(error: Error): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(errorOf(error.errors[0]));
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message || error.name;
}
