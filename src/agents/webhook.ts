/**
 * Agent `webhook`: any address, with a signature according to Standard Webhooks (https://www.standardwebhooks.com,
 * spec v1.0.0).
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { GuardedClient } from '../kit/http/guarded-client.ts';
import { RefusedAddress } from '../kit/http/guarded-lookup.ts';
import { webhookSigner } from '../kit/identity/webhook-signature.ts';
import { ANSWER_MAX_BYTES } from '../neo/client.ts';
import { encodeJson } from '../wire/json.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import type { Wake } from '../wire/wake.ts';
import { call, within } from './call.ts';
import type { DeliveryOutcome, DirectAgent } from './direct-deliveries.ts';
import type { AgentMaker, PresetOf } from './preset.ts';

export type WebhookOptions = { client: GuardedClient; clock: Clock };

const DEFAULT_TIMEOUT_SECONDS = 20;
const TOO_MANY = 429;
const UNAVAILABLE = 503;
const GONE = 410;

/** The event: the wake from chronosd, without the members that differ between attempts. */
function eventOf(type: string, wake: Wake, conversationId: string): string {
  const { user_id, message, payload, alarm_id, fire_id, missed_count, label, set_at, set_by } = wake;
  return encodeJson({
    type,
    timestamp: formatInstant(wake.scheduled_for),
    data: {
      ...{ user_id, conversation_id: conversationId, message, payload, alarm_id, fire_id },
      scheduled_for: formatInstant(wake.scheduled_for),
      ...{ missed_count, label },
      set_at: set_at === undefined ? undefined : formatInstant(set_at),
      set_by,
    },
  });
}

export function webhookAgent({ client, clock }: WebhookOptions): AgentMaker<PresetOf<'webhook'>, DirectAgent> {
  return (preset, { spec, token }) => ({
    async deliver(wake, turn, _prompt, signal): Promise<DeliveryOutcome> {
      const url = new URL(spec.url!);
      const allowPrivate = spec.allow_private === true;
      const refusal = client.refusalOf(url, allowPrivate);
      if (refusal !== undefined) return { result: 'refused', why: refusal };
      const seconds = spec.timeout_seconds ?? preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
      const body = eventOf(preset.event, wake, turn.conversationId);
      const signed = webhookSigner(token)({ id: wake.fire_id, timestampSeconds: clock.now() / 1000, body });
      const headers = { ...signed, 'user-agent': 'reveille' };
      const dispatcher = client.dispatcher(allowPrivate);
      const answer = await within(clock, seconds * 1000, signal, (limited) =>
        call(dispatcher, {
          method: 'POST',
          url,
          headers,
          body,
          signal: limited,
          secrets: [token],
          maxBytes: ANSWER_MAX_BYTES,
        }),
      );
      if (answer.result === 'unsent') {
        if (answer.error instanceof RefusedAddress) return { result: 'refused', why: answer.error.message };
        return { result: 'not_there', why: `the webhook was not reached: ${answer.why}` };
      }
      if (answer.result === 'unknown') return { result: 'unknown', why: `the webhook did not answer: ${answer.why}` };
      const { status, summary, retryAfterSeconds } = answer;
      if (status >= 200 && status <= 299) return { result: 'accepted' };
      const why = `the webhook answered ${summary}`;
      if (status === GONE) return { result: 'gone', why };
      if (status === TOO_MANY || status === UNAVAILABLE) return { result: 'not_started', why, retryAfterSeconds };
      return { result: 'refused', why };
    },
  });
}
