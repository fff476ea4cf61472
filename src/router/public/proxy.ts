/**
 * Proxies one request and its answer through the listener as streams, without buffering. A reader that is slower than
 * the daemon applies back pressure to it and uses no memory.
 */
import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Dispatcher } from 'undici';
import { reasonOf } from '../../kit/http/exchange.ts';
import { withoutTrailing } from '../../wire/text.ts';

export type ProxyRequest = {
  dispatcher: Dispatcher;
  /** The daemon's base address. */
  url: string;
  method: string;
  /** Path and query below it. */
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
  outgoing: ServerResponse;
  /** Ends a begun answer as if it were complete: for streams, which do not end themselves. */
  ending: AbortSignal | undefined;
  /** The longest silence of the daemon, in milliseconds; 0: unlimited. */
  silenceMs: number;
};

export type ProxyResult =
  /** The answer, or its part before an abort, was sent to the reader. */
  | { result: 'answered'; status: number; response: Response }
  /** The reader disconnected before an answer. */
  | { result: 'left'; response: Response }
  /** No byte of the request was sent. */
  | { result: 'unsent'; why: string }
  /** The request was sent, and no usable answer arrived. */
  | { result: 'unknown'; why: string };

/** The headers of an answer that the user receives. */
const RESPONSE_HEADERS = ['content-type', 'retry-after', 'x-accel-buffering'] as const;

/** Sends a request to the daemon and its answer back. Never rejects. */
export function proxyRequest(request: ProxyRequest): Promise<ProxyResult> {
  return new Promise((resolve) => {
    const { dispatcher, url, method, path, headers, body, outgoing, silenceMs } = request;
    const base = new URL(url);
    const handler = new ProxyExchange(request, resolve);
    const options: Dispatcher.DispatchOptions = {
      origin: base.origin,
      path: withoutTrailing(base.pathname, '/') + path,
      method: method as Dispatcher.HttpMethod,
      headers,
      body: body ?? null,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    };
    if (outgoing.destroyed) handler.leave();
    else {
      try {
        dispatcher.dispatch(options, handler);
      } catch (thrown) {
        handler.fail(thrown instanceof Error ? thrown : new Error(String(thrown)));
      }
    }
  });
}

class ProxyExchange implements Dispatcher.DispatchHandler {
  readonly #request: ProxyRequest;
  readonly #resolve: (result: ProxyResult) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #status: number | undefined;
  #hasEnded = false;

  constructor(request: ProxyRequest, resolve: (result: ProxyResult) => void) {
    this.#request = request;
    this.#resolve = resolve;
    request.outgoing.once('close', this.leave);
    request.ending?.addEventListener('abort', this.#end);
  }

  /** The reader has disconnected, so the request to the daemon is aborted. */
  readonly leave = (): void => {
    if (this.#hasEnded) return;
    const begun = this.#status;
    this.#settle(
      begun === undefined
        ? { result: 'left', response: RESPONSE_ALREADY_SENT }
        : { result: 'answered', status: begun, response: RESPONSE_ALREADY_SENT },
    );
    this.#controller?.abort(new Error('the reader disconnected'));
  };

  readonly #end = (): void => {
    if (this.#hasEnded || this.#status === undefined) return;
    this.#answered(this.#status);
    this.#controller?.abort(new Error('the stream was ended'));
  };

  readonly #drained = (): void => this.#controller?.resume();

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#hasEnded) controller.abort(new Error('the reader disconnected'));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200 || this.#hasEnded) return;
    if ((status >= 300 && status <= 399) || status > 599) {
      this.#settle({ result: 'unknown', why: `it answered ${status}, which is not passed on` });
      controller.abort(new Error('not passed on'));
      return;
    }
    const { outgoing, ending } = this.#request;
    const kept = RESPONSE_HEADERS.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : []));
    outgoing.writeHead(status, Object.fromEntries(kept));
    outgoing.flushHeaders();
    this.#status = status;
    if (ending?.aborted) this.#end();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { outgoing } = this.#request;
    if (this.#hasEnded || outgoing.write(chunk)) return;
    controller.pause();
    outgoing.once('drain', this.#drained);
  }

  onResponseEnd(): void {
    if (!this.#hasEnded && this.#status !== undefined) this.#answered(this.#status);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    if (this.#hasEnded) return;
    if (this.#status !== undefined) {
      const status = this.#status;
      this.#settle({ result: 'answered', status, response: RESPONSE_ALREADY_SENT });
      // Only a broken connection shows the reader that the answer is incomplete.
      this.#request.outgoing.destroy();
      return;
    }
    this.#settle({ result: this.#controller ? 'unknown' : 'unsent', why: reasonOf(error) });
  }

  #answered(status: number): void {
    const { outgoing } = this.#request;
    this.#settle({ result: 'answered', status, response: RESPONSE_ALREADY_SENT });
    outgoing.end();
  }

  #settle(result: ProxyResult): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { outgoing, ending } = this.#request;
    outgoing.off('close', this.leave).off('drain', this.#drained);
    ending?.removeEventListener('abort', this.#end);
    this.#resolve(result);
  }
}
