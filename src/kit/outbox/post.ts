/** One post of receipts to chronosd: signed, bounded in time, never redirected. */

import { receiptBody, type TurnReport } from '../../wire/receipt.ts';
import type { Clock } from '../clock/clock.ts';
import { below, exchange, reasonOf } from '../http/exchange.ts';
import { plainTransport } from '../http/plain-transport.ts';
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
const MAX_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 300;

/** Posts; never rejects. */
export async function postReceipts(
  post: Post,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Answered> {
  const { url, userId, fireId, reports, key } = post;
  const body = receiptBody(userId, reports);
  const signed = webhookSigner(key)({ id: fireId, timestampSeconds: clock.now() / 1000, body });
  const answer = await exchange(plainTransport, {
    method: 'POST',
    url: below(url, `/v1/fires/${encodeURIComponent(fireId)}/receipts`),
    headers: { ...signed, 'content-type': 'application/json', accept: 'application/json' },
    ...{ body, signal, maxBytes: MAX_BYTES, limit: { clock, ms: TIMEOUT_MS } },
  });
  if (answer.result !== 'answered') return { status: undefined, reason: reasonOf(answer.error) };
  return { status: answer.status, reason: answer.body.toString('utf8').slice(0, SHOWN_CHARACTERS).toWellFormed() };
}
