/**
 * Wakes the agent that parked an intent: sets an alarm in chronosd with the executor's own key under the user's label.
 * The idempotency key makes all attempts one alarm.
 */
import { createChronosClient } from '../../chronos/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';
import { didOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { RawJson } from '../../wire/json.ts';
import type { SigningKey } from '../receipt/signing-key.ts';

export type WakeOptions = {
  readonly chronos: { readonly url: string; readonly token: string };
  readonly key: SigningKey;
  readonly clock: Clock;
};

export type Wake = {
  readonly user: string;
  readonly conversationId: string;
  readonly intentId: string;
  readonly message: string;
  readonly payload: RawJson;
};

const DELAY_SECONDS = 1;
const LABEL = 'task ended';

function deliveryFor(thrown: unknown, { user, intentId }: Wake, publicKey: string): Delivery {
  if (!(thrown instanceof ReveilleError)) throw thrown;
  const { code, message, retryable } = thrown;
  // An earlier attempt set it, before the intent's outcome was reconciled.
  if (code === 'conflict') return { result: 'drop', why: `an alarm intent-${intentId} already exists: ${message}` };
  if (code === 'forbidden') {
    const remedy = `enrol it with: reveille agent enroll --label ${user} --public-key ${publicKey}`;
    return { result: 'later', slow: true, why: `chronosd does not accept the executor's key for ${user}; ${remedy}` };
  }
  if (code === 'unauthorized') {
    const remedy = 'EXECUTOR_CHRONOS_TOKEN must be the CHRONOS_TOKEN of the chronosd at EXECUTOR_CHRONOS_URL';
    return { result: 'later', slow: true, why: `chronosd rejects the executor's token (${message}); ${remedy}` };
  }
  return { result: 'later', slow: !retryable, why: message };
}

/** Sets the alarm once. @returns the delivery result */
export function createWaker({ chronos, key, clock }: WakeOptions) {
  return async (wake: Wake, signal: AbortSignal): Promise<Delivery> => {
    const { user, conversationId, intentId, message, payload } = wake;
    try {
      // Each call proves the key again, because no session is kept.
      const identity = { ...key, did: didOf(user, key.publicKeyHex) };
      const client = createChronosClient({ ...chronos, identity, clock });
      await client.createAlarm(
        {
          kind: 'once',
          delay_seconds: DELAY_SECONDS,
          label: LABEL,
          wake_message: message,
          conversation_id: conversationId,
          payload,
          idempotency_key: `intent-${intentId}`,
        },
        { signal },
      );
      return { result: 'done' };
    } catch (thrown) {
      return deliveryFor(thrown, wake, key.publicKeyHex);
    }
  };
}
