/** The body of every POST in these benchmarks, for all senders: the form of Reveille's wake (docs/reference/api.md). */
import type { Job } from './series.ts';

/** The agent's message to itself, of usual length. */
export const MESSAGE =
  'The deployment that Ada started this morning should be through by now. Look at its status, compare the error rate with yesterday’s, and report to her in two sentences whether she can go home.';
export const PAYLOAD = '{"deployment":"api-2041","started_by":"ada","threshold":0.002,"attempts":[1,2,3]}';
export const CONVERSATION = 'conversation-4f1c';
export const LABEL = 'look after the deployment';

/** The wake as an object; `JSON.stringify` of it is as long as the body that Reveille sends. */
export function wakeBody({ id, owner, due }: Job, setAt: string): Record<string, unknown> {
  return {
    user_id: owner,
    conversation_id: CONVERSATION,
    message: MESSAGE,
    payload: JSON.parse(PAYLOAD),
    alarm_id: id,
    origin: 'chronos',
    fire_id: `${id}@${due}`,
    scheduled_for: new Date(due).toISOString(),
    attempt: 1,
    missed_count: 0,
    label: LABEL,
    set_at: setAt,
  };
}
