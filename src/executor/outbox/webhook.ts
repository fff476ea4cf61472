/**
 * A notice to an address, signed as Standard Webhooks has it (spec v1.0.0). The address comes from whoever runs the executor, never from
 * a request, so it may be any; redirects are not followed, for nobody wrote those down.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { codeOf, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';

export type Webhook = { readonly url: string; readonly secret: string | undefined };

const TIMEOUT_MS = 20_000;
const SHOWN_BYTES = 300;
const GONE = 410;

/** Posts once; never rejects. */
export async function postNotice(
  { url, secret }: Webhook,
  { id, body }: { id: string; body: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Delivery> {
  const timestampSeconds = clock.now() / 1000;
  const signed = secret === undefined ? { 'webhook-id': id } : webhookSigner(secret)({ id, timestampSeconds, body });
  const answer = await exchange(plainTransport, {
    method: 'POST',
    url: new URL(url),
    headers: { ...signed, 'content-type': 'application/json', 'user-agent': 'reveille' },
    ...{ body, signal, maxBytes: SHOWN_BYTES, limit: { clock, ms: TIMEOUT_MS } },
  });
  if (answer.result !== 'answered')
    return { result: 'later', why: `the webhook was not reached: ${codeOf(answer.error)}` };
  const { status } = answer;
  if (status >= 200 && status <= 299) return { result: 'done' };
  const said = new TextDecoder().decode(answer.body).replaceAll(/\s+/g, ' ').trim();
  const why = `the webhook answered ${status}${said === '' ? '' : `: ${said}`}`;
  return status === GONE ? { result: 'drop', why } : { result: 'later', why };
}
