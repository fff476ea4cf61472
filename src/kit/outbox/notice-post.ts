/**
 * Posts a notification to an HTTP address once: no redirects, limits on time and answer size, and an outcome as text.
 */
import type { Clock } from '../clock/clock.ts';
import { codeOf, exchange, reasonOf } from '../http/exchange.ts';
import { RefusedAddress } from '../http/guarded-lookup.ts';
import type { Transport } from '../http/plain-transport.ts';
import { webhookSigner } from '../identity/webhook-signature.ts';
import type { Delivery } from './outbox.ts';

export type NoticePost = {
  /** Subject of the error messages: `the webhook`. */
  readonly who: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** Statuses that mean a permanently missing receiver. Default 410. */
  readonly gone?: readonly number[];
  /** Removed from messages. */
  readonly secrets?: readonly string[];
};

const TIMEOUT_MS = 20_000;
const SHOWN_BYTES = 300;
const GONE = 410;

/** The headers of a signed webhook (Standard Webhooks, spec v1.0.0); without a secret, only its id. */
export function signedHeaders(
  secret: string | undefined,
  { id, body }: { id: string; body: string },
  clock: Clock,
): Record<string, string> {
  if (secret === undefined) return { 'webhook-id': id };
  return webhookSigner(secret)({ id, timestampSeconds: clock.now() / 1000, body });
}

/** Posts once; never rejects. After a refusal that needs a person, the next attempt is delayed longer. */
export async function postNotice(
  { who, url, headers, body, gone = [GONE], secrets = [] }: NoticePost,
  { transport, clock, signal }: { transport: Transport; clock: Clock; signal: AbortSignal },
): Promise<Delivery> {
  const answer = await exchange(transport, {
    ...{ method: 'POST', url, headers: { ...headers, 'user-agent': 'reveille' } },
    ...{ body, signal, maxBytes: SHOWN_BYTES, limit: { clock, ms: TIMEOUT_MS } },
  });
  if (answer.result !== 'answered') {
    if (answer.error instanceof RefusedAddress) return { result: 'later', slow: true, why: reasonOf(answer.error) };
    return { result: 'later', why: `${who} cannot be reached: ${codeOf(answer.error)}` };
  }
  const { status } = answer;
  if (status >= 200 && status <= 299) return { result: 'done' };
  const bare = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), new TextDecoder().decode(answer.body));
  const detail = bare.replaceAll(/\s+/g, ' ').trim();
  const redirected = status >= 300 && status <= 399 ? ' (redirects are not followed)' : '';
  const why = `${who} answered ${status}${redirected}${detail === '' ? '' : `: ${detail}`}`;
  return gone.includes(status) ? { result: 'drop', why } : { result: 'later', why };
}
