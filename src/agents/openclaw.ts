/**
 * Agent `openclaw`: a hook of a gateway that runs an agent's turn. It recognizes a repeated wake by its
 * `idempotencyKey`.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../kit/clock/clock.ts';
import { joinUrl } from '../kit/http/exchange.ts';
import { ANSWER_MAX_BYTES } from '../neo/client.ts';
import { call, within } from './call.ts';
import type { DeliveryOutcome, DirectAgent } from './direct-deliveries.ts';
import type { AgentMaker, PresetOf } from './preset.ts';

export type OpenclawOptions = { dispatcher: Dispatcher; clock: Clock };

const DEFAULT_TIMEOUT_SECONDS = 25;
/** Its errors for a run that did not begin: the session changed, the preparation failed, no free place in time. */
const NOT_BEGUN = new Set([409, 429, 502, 503]);

export function openclawAgent({ dispatcher, clock }: OpenclawOptions): AgentMaker<PresetOf<'openclaw'>, DirectAgent> {
  return (preset, { spec, token }) => ({
    async deliver(wake, turn, prompt, signal): Promise<DeliveryOutcome> {
      const seconds = spec.timeout_seconds ?? preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
      const answer = await within(clock, seconds * 1000, signal, (limited) =>
        call(dispatcher, {
          method: 'POST',
          url: joinUrl(spec.url!, preset.path),
          headers: { authorization: `Bearer ${token}` },
          body: JSON.stringify({
            ...preset.body,
            message: prompt,
            // A wake without a conversation goes to the default of the gateway's settings.
            ...(turn.named
              ? { sessionKey: preset.session_key.replaceAll('<conversation>', () => turn.conversationId) }
              : {}),
            idempotencyKey: wake.fire_id,
          }),
          signal: limited,
          secrets: [token],
          maxBytes: ANSWER_MAX_BYTES,
        }),
      );
      if (answer.result === 'unsent') return { result: 'not_there', why: `the gateway was not reached: ${answer.why}` };
      if (answer.result === 'unknown') return { result: 'unknown', why: `the gateway did not answer: ${answer.why}` };
      const { status, json, summary, retryAfterSeconds } = answer;
      if (status >= 200 && status <= 299) {
        return { result: 'accepted', handle: typeof json?.runId === 'string' ? json.runId : undefined };
      }
      const why = `the gateway answered ${summary}`;
      if (NOT_BEGUN.has(status)) return { result: 'not_started', why, retryAfterSeconds };
      return status >= 500 ? { result: 'unknown', why } : { result: 'refused', why };
    },
  });
}
