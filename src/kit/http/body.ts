/**
 * Request bodies: read once, with a size limit, and given to handlers as JSON. A body is read after the credential in the
 * request's head was checked. Bodies whose sender has not proved a credential share a budget of bytes and of time.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ReveilleError } from '../../wire/errors.ts';
import { parseJsonObject } from '../../wire/json.ts';
import type { Clock } from '../clock/clock.ts';
import type { HttpContext } from './handlers.ts';

const EMPTY = Buffer.alloc(0);
const JSON_MEDIA_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Whether the request announces a body. */
export function hasBody(incoming: IncomingMessage): boolean {
  if (incoming.headers['transfer-encoding'] !== undefined) return true;
  const length = incoming.headers['content-length'];
  return length !== undefined && Number(length) !== 0;
}

/** Refuses a write whose body is not declared as JSON. Writes without a body need no content type. */
export function checkContentType(incoming: IncomingMessage): void {
  if (!WRITES.has(incoming.method ?? '') || !hasBody(incoming)) return;
  const type = incoming.headers['content-type'];
  if (type !== undefined && JSON_MEDIA_TYPE.test(type.trim())) return;
  const got = type === undefined ? 'nothing' : JSON.stringify(type.slice(0, 100));
  throw new ReveilleError('invalid_request', `content-type must be application/json in UTF-8 (got ${got})`);
}

const endedEarly = () => new ReveilleError('invalid_request', 'the body ended before it was complete');

function tooLarge(limitBytes: number): ReveilleError {
  return new ReveilleError('invalid_request', `the body must be at most ${limitBytes} bytes`, { status: 413 });
}

const proved = new WeakSet<object>();

/**
 * Records that the sender of a request proved a credential in its head, so that its body is read without the budget.
 *
 * @param request the one that {@link BodyReader} reads: Node's, or the `Request` of a page or service
 */
export function markProved(request: object): void {
  proved.add(request);
}

export type UnprovedLimits = {
  /** All bodies together whose senders have not proved a credential, from their first byte to the end of the answer. */
  unprovedBytes: number;
  /** From the head of such a request to the end of its body. */
  unprovedMs: number;
};

type Unproved = { bytes: number; readonly reading: AbortController; isComplete: boolean };

/** Reads the bodies of one listener's requests. */
export class BodyReader {
  readonly #limits: UnprovedLimits;
  readonly #clock: Clock;
  /** In the order of their beginning. */
  readonly #open = new Set<Unproved>();
  #bytes = 0;

  constructor(limits: UnprovedLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Bytes of the bodies in the budget. */
  get unprovedBytes(): number {
    return this.#bytes;
  }

  /**
   * @param request marked by {@link markProved} if its sender proved a credential
   * @throws ReveilleError as `readBounded`; without a proof also 408 for a slow body, and 503 when the budget is spent
   */
  async read(
    { incoming, outgoing }: { incoming: IncomingMessage; outgoing: ServerResponse },
    limitBytes: number,
    request: object = incoming,
  ): Promise<Buffer> {
    if (!hasBody(incoming)) return EMPTY;
    if (proved.has(request)) return readBounded(incoming, limitBytes);
    const body: Unproved = { bytes: 0, reading: new AbortController(), isComplete: false };
    this.#open.add(body);
    outgoing.once('close', () => {
      this.#open.delete(body);
      this.#bytes -= body.bytes;
    });
    const cancel = this.#clock.after(this.#limits.unprovedMs, () => body.reading.abort(tooSlow()));
    const onBytes = (bytes: number) => {
      body.bytes += bytes;
      this.#bytes += bytes;
      while (this.#bytes > this.#limits.unprovedBytes && this.#endOldest());
    };
    try {
      return await readBounded(incoming, limitBytes, { onBytes, ended: body.reading.signal });
    } catch (thrown) {
      if (body.reading.signal.aborted) outgoing.setHeader('connection', 'close');
      throw thrown;
    } finally {
      cancel();
      body.isComplete = true;
    }
  }

  /**
   * Ends the incomplete body that began first: senders of events send theirs at once, and one who holds places sends
   * slowly. The largest would often be an event's. False if all are complete.
   */
  #endOldest(): boolean {
    for (const body of this.#open) {
      if (body.isComplete || body.bytes === 0) continue;
      this.#bytes -= body.bytes;
      body.bytes = 0;
      body.isComplete = true;
      body.reading.abort(overBudget());
      return true;
    }
    return false;
  }
}

const tooSlow = () =>
  new ReveilleError('invalid_request', 'the body took too long to arrive; send it again', {
    status: 408,
    retryable: true,
  });

const overBudget = () =>
  new ReveilleError('unavailable', 'too many bodies of unauthenticated senders are being read; send it again', {
    retryAfterSeconds: 1,
  });

/**
 * Reads a request's body.
 *
 * @throws ReveilleError `invalid_request`: 413 as soon as more than `limitBytes` are announced or have arrived, 400 if
 * the sender ends early
 */
function readBounded(
  incoming: IncomingMessage,
  limitBytes: number,
  { onBytes, ended }: { onBytes?: (bytes: number) => void; ended?: AbortSignal } = {},
): Promise<Buffer> {
  if (Number(incoming.headers['content-length'] ?? 0) > limitBytes) return Promise.reject(tooLarge(limitBytes));
  // The sender may have disconnected while its credential was checked.
  if (incoming.destroyed) return Promise.reject(endedEarly());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (then: () => void) => {
      incoming.off('data', onData).off('end', onEnd).off('close', onBroken).off('error', onBroken);
      ended?.removeEventListener('abort', onEnded);
      then();
    };
    const onEnded = () => settle(() => reject(ended!.reason));
    ended?.addEventListener('abort', onEnded);
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limitBytes) settle(() => reject(tooLarge(limitBytes)));
      else {
        chunks.push(chunk);
        onBytes?.(chunk.length);
      }
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onBroken = () => settle(() => reject(endedEarly()));
    incoming.on('data', onData).on('end', onEnd).on('close', onBroken).on('error', onBroken);
  });
}

/** The exact bytes of the body, for signatures. */
export function bodyBytes(c: HttpContext): Buffer {
  return c.get('body');
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The body as a JSON object. A byte order mark is refused, as any character before the first brace (RFC 8259 §8.1: it
 * must not be sent).
 *
 * @param raw members returned as source text, so that their digits and key order survive
 * @throws ReveilleError `invalid_request` if the bytes are not UTF-8, not JSON, or not an object
 */
export async function readJson(
  c: HttpContext,
  { raw = [] }: { raw?: readonly string[] } = {},
): Promise<Record<string, unknown>> {
  const bytes = bodyBytes(c);
  if (bytes.length === 0) throw new ReveilleError('invalid_request', 'the body must be a JSON object (got nothing)');
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch (cause) {
    throw new ReveilleError('invalid_request', 'the body must be UTF-8; it contains invalid bytes', { cause });
  }
  if (text.charCodeAt(0) === 0xfeff) {
    throw new ReveilleError('invalid_request', 'the body must be a JSON object without a byte order mark');
  }
  return parseJsonObject(text, raw);
}
