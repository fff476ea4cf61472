/** What whoever is to be notified gets to know of a question that waits. Pure. */
import type { z } from 'zod';
import type { gateSchema } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson } from '../../wire/json.ts';
import type { IntentView } from '../rail.ts';

export type WaitingGate = z.output<typeof gateSchema>;

export const NOTICE_TYPE = 'reveille.gate.asked';

/** The envelope that says that the question was asked; the last one, for it can be asked anew. */
function askedOf({ envelopes }: IntentReceipt, nodeId: string): Readonly<Record<string, unknown>> | undefined {
  return envelopes.findLast(({ kind, body }) => kind === 'gate.asked' && body.node_id === nodeId)?.body;
}

/**
 * One JSON object, the same on every attempt.
 *
 * @param user whose intent it is
 */
export function noticeText(user: string, view: IntentView, gate: WaitingGate, receipt: IntentReceipt): string {
  const asked = askedOf(receipt, gate.node_id);
  const { intent_id, conversation_id, origin, parked } = view;
  return encodeJson({
    type: NOTICE_TYPE,
    timestamp: asked?.at,
    data: {
      ...{ user_id: user, intent_id, node_id: gate.node_id, conversation_id, origin, parked },
      ...{ question: gate.question, options: gate.options, call: gate.call, expires_at: asked?.expires_at },
      answer_with: `reveille intent approve ${intent_id} ${gate.node_id}`,
    },
  });
}
