/**
 * A notice to an address, signed as Standard Webhooks has it (spec v1.0.0). The address comes from whoever runs the executor, never from
 * a request, so it may be any; redirects are not followed, for nobody wrote those down.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';

export type Webhook = { readonly url: string; readonly secret: string | undefined };

const TIMEOUT_MS = 20_000;
const SHOWN_BYTES = 300;
const GONE = 410;

async function beginning(response: Response): Promise<string> {
  for await (const chunk of response.body ?? []) {
    const text = new TextDecoder().decode(chunk.subarray(0, SHOWN_BYTES));
    return text.replaceAll(/\s+/g, ' ').trim();
  }
  return '';
}

function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Posts once; never rejects. */
export async function postNotice(
  { url, secret }: Webhook,
  { id, body }: { id: string; body: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Delivery> {
  const timestampSeconds = clock.now() / 1000;
  const signed = secret === undefined ? { 'webhook-id': id } : webhookSigner(secret)({ id, timestampSeconds, body });
  const late = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () => late.abort(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...signed, 'content-type': 'application/json', 'user-agent': 'reveille' },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([signal, late.signal]),
    });
    const { status } = response;
    const ok = status >= 200 && status <= 299;
    const said = ok ? '' : await beginning(response).catch(() => '');
    // What else it says is not wanted; a body that is not read would hold the connection.
    await response.body?.cancel().catch(() => {});
    if (ok) return { result: 'done' };
    const why = `the webhook answered ${status}${said === '' ? '' : `: ${said}`}`;
    return status === GONE ? { result: 'drop', why } : { result: 'later', why };
  } catch (thrown) {
    return { result: 'later', why: `the webhook was not reached: ${reasonOf(thrown)}` };
  } finally {
    cancel();
  }
}
