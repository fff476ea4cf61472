/**
 * Agent `webhook`: any address, with a signature according to Standard Webhooks (https://www.standardwebhooks.com,
 * spec v1.0.0).
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { GuardedClient } from '../kit/http/guarded-client.ts';
import { webhookSigner } from '../kit/identity/webhook-signature.ts';
import { encodeJson } from '../wire/json.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { termsOf, type Wake } from '../wire/wake.ts';
import { type DirectAgent, post, ReceiverGone, refused, tryLater } from './direct-deliveries.ts';
import type { AgentMaker, PresetOf } from './preset.ts';

export type WebhookOptions = { client: GuardedClient; clock: Clock };

const DEFAULT_TIMEOUT_SECONDS = 20;
const TOO_MANY = 429;
const UNAVAILABLE = 503;
const GONE = 410;

/** The event: the wake from chronosd, without the members that differ between attempts. */
function eventOf(type: string, wake: Wake, conversationId: string): string {
  const { user_id, message, payload, alarm_id, fire_id, missed_count, label, set_at, set_by, text_by } = wake;
  return encodeJson({
    type,
    timestamp: formatInstant(wake.scheduled_for),
    data: {
      ...{ user_id, conversation_id: conversationId, message, payload, alarm_id, fire_id },
      scheduled_for: formatInstant(wake.scheduled_for),
      ...{ missed_count, label },
      set_at: set_at === undefined ? undefined : formatInstant(set_at),
      ...{ set_by, text_by },
      ...termsOf(wake),
      check: wake.check,
    },
  });
}

export function webhookAgent({ client, clock }: WebhookOptions): AgentMaker<PresetOf<'webhook'>, DirectAgent> {
  return (preset, { spec, token }) => ({
    async deliver(wake, turn, _prompt, signal) {
      const url = new URL(spec.url!);
      const allowPrivate = spec.allow_private === true;
      const refusal = client.refusalOf(url, allowPrivate);
      if (refusal !== undefined) throw refused(refusal);
      const body = eventOf(preset.event, wake, turn.conversationId);
      const signed = webhookSigner(token)({ id: wake.fire_id, timestampSeconds: clock.now() / 1000, body });
      const { status, summary, retryAfterSeconds } = await post({
        ...{ receiver: 'the webhook', dispatcher: client.dispatcher(allowPrivate), url, body, token, clock, signal },
        headers: { ...signed, 'user-agent': 'reveille' },
        limitSeconds: spec.timeout_seconds ?? preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS,
      });
      if (status >= 200 && status <= 299) return undefined;
      const why = `the webhook answered ${summary}`;
      if (status === GONE) throw new ReceiverGone(why);
      if (status === TOO_MANY || status === UNAVAILABLE) throw tryLater(why, retryAfterSeconds);
      throw refused(why);
    },
  });
}
