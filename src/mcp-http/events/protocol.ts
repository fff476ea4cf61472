/** MCP Events on the wire (`io.modelcontextprotocol/events`, SEP-3415): names, error codes and secrets. */
import { ProtocolError } from '@modelcontextprotocol/server';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import type { RemoteMessage } from '../servers.ts';

/** Links a notification to the request of its stream. */
export const SUBSCRIPTION_META = 'io.modelcontextprotocol/subscriptionId';
export const SUBSCRIPTION_HEADER = 'x-mcp-subscription-id';

/** Why a callback has failed. It contains no text of the callback's answer. */
export type CallbackError =
  | ('connection_refused' | 'timeout' | 'tls_error')
  | ('http_4xx' | 'http_5xx' | 'challenge_failed');

const CODES = {
  InvalidParams: -32_602,
  InternalError: -32_603,
  NotFound: -32_011,
  Forbidden: -32_012,
  ResourceExhausted: -32_013,
  Unsupported: -32_014,
  CallbackEndpointError: -32_015,
} as const;
type EventsErrorName = keyof typeof CODES;

/** The error of a request. Programs read its code and data. */
export class EventsError extends ProtocolError {
  constructor(name: EventsErrorName, detail: string, data?: Readonly<Record<string, unknown>>) {
    super(CODES[name], `${name}: ${detail}`, data);
  }
}

/** The `error` of a terminated subscription whose client has lost its access. */
export const ACCESS_ENDED = {
  code: CODES.Forbidden,
  message: 'Forbidden',
  data: { reason: 'Access revoked' },
} as const;

/** The `error` of a subscription whose callback has failed for too long. */
export const callbackEnded = (reason: CallbackError) => ({
  ...{ code: CODES.CallbackEndpointError, message: 'CallbackEndpointError' },
  data: { reason },
});

/** The error that a client gets. Unexpected errors become a general one without details. */
export function eventsErrorOf(thrown: unknown): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown;
  const { code, message } = toReveilleError(thrown);
  if (!(thrown instanceof ReveilleError)) return new EventsError('InternalError', 'the request has failed');
  if (code === 'invalid_request') return new EventsError('InvalidParams', message);
  return new EventsError('InternalError', message, { retryable: thrown.retryable });
}

/** The answer 429 over HTTP when a limit is reached: of a number, or of a rate by the minute. */
export function exhaustedOf({ code, message, data }: ProtocolError): RemoteMessage['exhausted'] {
  if (code !== CODES.ResourceExhausted) return undefined;
  const isRate = isObject(data) && data.limit === 'challenges';
  return { code, message, data, retryAfterSeconds: isRate ? 60 : undefined };
}

const SECRET = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const [SECRET_LEAST_BYTES, SECRET_MOST_BYTES] = [24, 64];

/** Whether a text is a secret of Standard Webhooks with 24 to 64 bytes. */
export function isSigningSecret(text: string): boolean {
  if (text.length > 200 || !SECRET.test(text)) return false;
  const { length } = Buffer.from(text.slice('whsec_'.length), 'base64');
  return length >= SECRET_LEAST_BYTES && length <= SECRET_MOST_BYTES;
}
