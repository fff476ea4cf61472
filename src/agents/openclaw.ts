/**
 * Agent `openclaw`: a hook of a gateway that runs an agent's turn. It recognizes a repeated wake by its
 * `idempotencyKey`.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../kit/clock/clock.ts';
import { joinUrl } from '../kit/http/exchange.ts';
import { type DirectAgent, post, refused, tryLater, uncertain } from './direct-deliveries.ts';
import type { AgentMaker, PresetOf } from './preset.ts';

export type OpenclawOptions = { dispatcher: Dispatcher; clock: Clock };

const DEFAULT_TIMEOUT_SECONDS = 25;
/** Its errors for a run that did not begin: the session changed, the preparation failed, no free place in time. */
const NOT_BEGUN = new Set([409, 429, 502, 503]);

export function openclawAgent({ dispatcher, clock }: OpenclawOptions): AgentMaker<PresetOf<'openclaw'>, DirectAgent> {
  return (preset, { spec, token }) => ({
    async deliver(wake, { named, conversationId }, prompt, signal) {
      // A wake without a conversation goes to the default of the gateway's settings.
      const sessionKey = named ? preset.session_key.replaceAll('<conversation>', () => conversationId) : undefined;
      const { status, json, summary, retryAfterSeconds } = await post({
        ...{ receiver: 'the gateway', dispatcher, url: joinUrl(spec.url!, preset.path), token, clock, signal },
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({
          ...preset.body,
          ...(wake.model === undefined ? {} : { model: wake.model }),
          ...{ message: prompt, sessionKey, idempotencyKey: wake.fire_id },
        }),
        limitSeconds: spec.timeout_seconds ?? preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS,
      });
      if (status >= 200 && status <= 299) return typeof json?.runId === 'string' ? json.runId : undefined;
      const why = `the gateway answered ${summary}`;
      if (NOT_BEGUN.has(status)) throw tryLater(why, retryAfterSeconds);
      throw status >= 500 ? uncertain(why) : refused(why);
    },
  });
}
