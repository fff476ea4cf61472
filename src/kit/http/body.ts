/** Request bodies: read once, with a size limit, and given to handlers as JSON. */
import type { IncomingMessage } from 'node:http';
import { ReveilleError } from '../../wire/errors.ts';
import { parseJsonObject } from '../../wire/json.ts';
import type { HttpContext } from './handlers.ts';

const EMPTY = Buffer.alloc(0);
const JSON_MEDIA_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Whether the request announces a body. */
function hasBody(incoming: IncomingMessage): boolean {
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

function tooLarge(limitBytes: number): ReveilleError {
  return new ReveilleError('invalid_request', `the body must be at most ${limitBytes} bytes`, { status: 413 });
}

/**
 * Reads a request's body.
 *
 * @throws ReveilleError `invalid_request`: 413 as soon as more than `limitBytes` are announced or have arrived, 400 if
 * the sender ends early
 */
export function readBounded(incoming: IncomingMessage, limitBytes: number): Promise<Buffer> {
  if (!hasBody(incoming)) return Promise.resolve(EMPTY);
  if (Number(incoming.headers['content-length'] ?? 0) > limitBytes) return Promise.reject(tooLarge(limitBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const settle = (then: () => void) => {
      incoming.off('data', onData).off('end', onEnd).off('close', onBroken).off('error', onBroken);
      then();
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limitBytes) settle(() => reject(tooLarge(limitBytes)));
      else chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const onBroken = () =>
      settle(() => reject(new ReveilleError('invalid_request', 'the body ended before it was complete')));
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
