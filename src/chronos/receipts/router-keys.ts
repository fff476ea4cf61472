/** Asking the router for the keys with which a user's machine signs receipts. */
import type { Clock } from '../../kit/clock/clock.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { receiptKeysSchema } from '../../wire/receipt.ts';

/** The user's keys; `undefined` when they have no machine. Rejects with `unavailable` when nobody can tell. */
export type AskKeys = (userId: string) => Promise<readonly string[] | undefined>;

export type RouterKeysOptions = {
  /** Where wakes are posted; the keys are asked of the same router. */
  wakeUrl: string;
  /** Shared with the router; absent only in development. */
  token: string | undefined;
  clock: Clock;
};

const TIMEOUT_MS = 5_000;
const RETRY_AFTER_SECONDS = 2;

export function routerKeys({ wakeUrl, token, clock }: RouterKeysOptions): AskKeys {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const unavailable = (why: string, cause?: unknown) =>
    new ReveilleError('unavailable', `the router cannot be asked who signed this: ${why}`, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause,
    });

  return async (userId) => {
    const url = new URL(`/internal/receipt-keys/${encodeURIComponent(userId)}`, wakeUrl);
    const overdue = new AbortController();
    const cancel = clock.after(TIMEOUT_MS, () => overdue.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    try {
      const response = await fetch(url, { headers, redirect: 'manual', signal: overdue.signal });
      const text = await response.text();
      const answer = receiptKeysSchema.safeParse(openEnvelope(text, response.status, 'the router').value());
      if (answer.success) return answer.data.keys;
      throw unavailable('its answer is none; is it of this version?');
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw unavailable('it does not answer', thrown);
      // A route that is not there is no answer about a user: an older router must not turn news away for good.
      if (thrown.code === 'not_found' && !/is not a route/.test(thrown.message)) return undefined;
      if (thrown.code === 'unauthorized') throw unavailable('it does not accept CHRONOS_WAKE_TOKEN', thrown);
      throw unavailable(thrown.message, thrown);
    } finally {
      cancel();
    }
  };
}
