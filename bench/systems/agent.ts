/** An agent that sets alarms over HTTP. */
import { createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { RawJson } from '../../src/wire/json.ts';
import { CONVERSATION, LABEL, MESSAGE, PAYLOAD } from '../wake-body.ts';
import { CHRONOS_TOKEN } from './chronosd.ts';

/** The owner of the alarm that bulk loading copies. */
export const SEED_OWNER = 'seed';
const TEN_YEARS_SECONDS = 10 * 365 * 24 * 3600;

export const alarmBody = {
  kind: 'once',
  wake_message: MESSAGE,
  label: LABEL,
  conversation_id: CONVERSATION,
  payload: new RawJson(PAYLOAD),
  delay_seconds: TEN_YEARS_SECONDS,
} as const;

/** Sets one alarm through the HTTP API. Bulk loading copies its rows. */
export async function setSeedAlarm(url: string): Promise<void> {
  const client = createChronosClient({
    url,
    token: CHRONOS_TOKEN,
    identity: agentIdentity(SEED_OWNER, generateKey()),
    principal: holdPrincipal(),
  });
  await client.createAlarm(alarmBody);
}
