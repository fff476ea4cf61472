/** One post of receipts to chronosd: signed, bounded in time, never redirected. */

import { receiptBody, type TurnReport } from '../../wire/receipt.ts';
import type { Clock } from '../clock/clock.ts';
import { webhookSigner } from '../identity/webhook-signature.ts';

export type Post = {
  /** chronosd's base address. */
  url: string;
  userId: string;
  fireId: string;
  /** In the order in which they happened. */
  reports: readonly TurnReport[];
  /** As `receiptKey` makes it. */
  key: string;
};

/** The status of the answer, or why there was none. */
export type Answered = { status: number; reason: string } | { status: undefined; reason: string };

const TIMEOUT_MS = 10_000;
const SHOWN_CHARACTERS = 300;

/** Posts; never rejects. */
export async function postReceipts(
  post: Post,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Answered> {
  const { url, userId, fireId, reports, key } = post;
  const body = receiptBody(userId, reports);
  const signed = webhookSigner(key)({ id: fireId, timestampSeconds: clock.now() / 1000, body });
  const overdue = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () => overdue.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)));
  try {
    const response = await fetch(`${url}/v1/fires/${encodeURIComponent(fireId)}/receipts`, {
      method: 'POST',
      headers: { ...signed, 'content-type': 'application/json', accept: 'application/json' },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([overdue.signal, signal]),
    });
    const text = await response.text();
    return { status: response.status, reason: text.slice(0, SHOWN_CHARACTERS).toWellFormed() };
  } catch (thrown) {
    const { cause } = thrown as Error;
    return { status: undefined, reason: cause instanceof Error ? cause.message : String(thrown) };
  } finally {
    cancel();
  }
}
