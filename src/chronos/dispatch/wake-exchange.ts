/**
 * One wake's request and answer, as events of the HTTP client: most answers are a status and a few bytes that nobody reads, and a
 * stream for each of them took longer than the wake itself.
 */
import type { Dispatcher } from 'undici';
import { errorMessageOf } from '../../wire/envelope.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { beginningOf } from '../../wire/text.ts';
import { HELD_UNTIL_HEADER, MACHINE_READY_HEADER } from '../../wire/wake.ts';
import type { Hold, WakeResult } from './waker.ts';

/** How much of a refusal's words the error keeps. */
const ERROR_BODY_CHARACTERS = 300;
/** How much of a refusal's body is read: an envelope that is cut is no envelope, and its message could not be told from the rest. */
const ERROR_BODY_BYTES = 16 * 1024;
/** An answer longer than this is not read to its end: a new connection costs less. */
const LONGEST_ANSWER_BYTES = 128 * 1024;

/** Errors that occur before a single byte of the request has left. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * `Retry-After` in seconds; the form with a date is rare between daemons and taken as absent. "At once" is taken as a second: a
 * receiver that keeps saying it would use up every attempt in no time.
 */
function retryAfterSeconds(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header.trim()) ? Math.max(1, Number(header)) : undefined;
}

/** How long the machine took, in milliseconds. */
function machineReadyMs(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

/** The instant of a hold; a header that is none leaves a refusal like any other. */
function heldUntil(header: unknown): number | undefined {
  return typeof header === 'string' ? parseInstant(header) : undefined;
}

/** It is stored as text: half of a surrogate pair or a NUL would not survive that everywhere. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

export class WakeExchange implements Dispatcher.DispatchHandler {
  readonly #url: string;
  readonly #settle: (result: WakeResult | Hold) => void;
  readonly #onEnd: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #retryAfter: number | undefined;
  #machineReadyMs: number | undefined;
  /** The router's hold on the wake, epoch ms. */
  #heldUntil: number | undefined;
  #settled = false;
  #bytes = 0;
  /** The start of a refusal's body. */
  readonly #refusal: Buffer[] = [];

  /**
   * @param url for error messages
   * @param settle gets the result, once
   * @param onEnd called when the connection is free again, or gone
   */
  constructor(url: string, settle: (result: WakeResult | Hold) => void, onEnd: () => void) {
    this.#url = url;
    this.#settle = settle;
    this.#onEnd = onEnd;
  }

  /** The time is up: whatever has not come does not count any more, and a request that has not been sent never will be. */
  abandon(reason: Error): void {
    if (this.#controller) this.#controller.abort(reason);
    else this.#unreached(reason.message);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error('abandoned before it was sent'));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Record<string, unknown>): void {
    if (status < 200) return;
    this.#status = status;
    this.#machineReadyMs = machineReadyMs(headers[MACHINE_READY_HEADER]);
    // The status decides; the rest of the answer is only drained for the connection's sake.
    if (status < 300) {
      this.#finish({ outcome: 'delivered', httpStatus: status, ...this.#readiness() });
      return;
    }
    this.#retryAfter = retryAfterSeconds(headers['retry-after'] as string | string[] | undefined);
    if (status === 429) this.#heldUntil = heldUntil(headers[HELD_UNTIL_HEADER]);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (!this.#settled) {
      // A copy: the client's own memory is used again.
      this.#refusal.push(Buffer.from(chunk));
      if (this.#bytes >= ERROR_BODY_BYTES) this.#refused();
    }
    if (this.#bytes > LONGEST_ANSWER_BYTES) controller.abort(new Error('the answer is too long'));
  }

  onResponseEnd(): void {
    this.#onEnd();
    this.#refused();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#onEnd();
    if (this.#status !== 0) this.#refused();
    else this.#failed(error);
  }

  #finish(result: WakeResult | Hold): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#settle(result);
  }

  #refused(): void {
    if (this.#settled) return;
    const body = Buffer.concat(this.#refusal).toString('utf8');
    const message = errorMessageOf(body);
    const words =
      message === undefined ? body.slice(0, ERROR_BODY_CHARACTERS) : beginningOf(message, ERROR_BODY_CHARACTERS);
    if (this.#heldUntil !== undefined) {
      this.#finish({ outcome: 'held', until: this.#heldUntil, reason: storable(words) });
      return;
    }
    this.#finish({
      outcome: 'failed',
      httpStatus: this.#status,
      error: `the router answered ${this.#status}: ${storable(words)}`,
      final: this.#status === 410,
      ...this.#readiness(),
      ...(this.#retryAfter === undefined ? {} : { retryAfterSeconds: this.#retryAfter }),
    });
  }

  #readiness(): { machineReadyMs?: number } {
    return this.#machineReadyMs === undefined ? {} : { machineReadyMs: this.#machineReadyMs };
  }

  #unreached(words: string): void {
    const error = `the router at ${this.#url} could not be reached (${words})`;
    this.#finish({ outcome: 'failed', httpStatus: null, error, final: false });
  }

  #failed(error: Error): void {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const words = `${code ? `${code}: ` : ''}${error.message}`;
    if (NOT_SENT.has(code)) {
      this.#unreached(words);
      return;
    }
    this.#finish({
      outcome: 'unknown',
      httpStatus: null,
      error: `the router at ${this.#url} did not answer; whether it accepted the wake is not known (${words})`,
    });
  }
}
