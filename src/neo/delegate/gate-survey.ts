/**
 * Finding out which gates wait that no turn follows: of tasks that were parked, also where the question came up, or was answered, while
 * Neo slept.
 */
import type { ExecutorClient } from '../../executor/client.ts';
import { type GateDesk, isShowable, type Place } from './gate-desk.ts';

export type SurveyOptions = {
  client: Pick<ExecutorClient, 'list' | 'gates'>;
  desk: Pick<GateDesk, 'open' | 'lapse' | 'shown'>;
  /** Whether a turn follows this intent and brings its gates to the desk itself. */
  isFollowed: (intentId: string) => boolean;
  tell: (conversationId: string) => Place['tell'];
};

/**
 * Brings the desk up to date for a conversation, or for all.
 *
 * @throws as the executor's client does
 */
export async function surveyGates(
  conversationId: string | undefined,
  signal: AbortSignal,
  { client, desk, isFollowed, tell }: SurveyOptions,
): Promise<void> {
  // Other steps of an intent may be under way while one waits: it is not among those that wait then.
  const intents = new Map(desk.shown().map((gate) => [gate.intent_id, gate.conversation_id]));
  for (const { value } of await client.list({ status: 'awaiting_approval' }, signal))
    if (value.conversation_id !== undefined) intents.set(value.intent_id, value.conversation_id);
  const survey = async (intentId: string, where: string) => {
    const waiting = await client.gates(intentId, signal);
    desk.lapse(intentId, waiting, 'it was answered at the executor');
    for (const gate of waiting) {
      if (isShowable(gate)) desk.open(intentId, gate, { conversationId: where, tell: tell(where) });
    }
  };
  await Promise.all(
    [...intents]
      .filter(([intentId, where]) => !isFollowed(intentId) && (conversationId ?? where) === where)
      .map(([intentId, where]) => survey(intentId, where)),
  );
}
