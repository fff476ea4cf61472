/** A notice to an HTTP address: posted once, no redirect followed, time and answer bounded; what became of it in words. */
import type { Clock } from '../clock/clock.ts';
import { codeOf, exchange, reasonOf } from '../http/exchange.ts';
import { RefusedAddress } from '../http/guarded-lookup.ts';
import type { Transport } from '../http/plain-transport.ts';
import { webhookSigner } from '../identity/webhook-signature.ts';
import type { Delivery } from './outbox.ts';

export type NoticePost = {
  /** Begins what is said about it: `the webhook`. */
  readonly who: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** Statuses that say that nobody will ever be there again; 410 unless told. */
  readonly gone?: readonly number[];
  /** Must not be repeated in what is said. */
  readonly secrets?: readonly string[];
};

const TIMEOUT_MS = 20_000;
const SHOWN_BYTES = 300;
const GONE = 410;

/** The headers of a signed webhook (Standard Webhooks, spec v1.0.0); without a secret its id alone. */
export function signedHeaders(
  secret: string | undefined,
  { id, body }: { id: string; body: string },
  clock: Clock,
): Record<string, string> {
  if (secret === undefined) return { 'webhook-id': id };
  return webhookSigner(secret)({ id, timestampSeconds: clock.now() / 1000, body });
}

/** Posts once; never rejects. A refusal that only a person can put right makes the next attempt slow. */
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
    return { result: 'later', why: `${who} was not reached: ${codeOf(answer.error)}` };
  }
  const { status } = answer;
  if (status >= 200 && status <= 299) return { result: 'done' };
  const bare = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), new TextDecoder().decode(answer.body));
  const said = bare.replaceAll(/\s+/g, ' ').trim();
  const redirected = status >= 300 && status <= 399 ? ' (redirects are not followed)' : '';
  const why = `${who} answered ${status}${redirected}${said === '' ? '' : `: ${said}`}`;
  return gone.includes(status) ? { result: 'drop', why } : { result: 'later', why };
}
