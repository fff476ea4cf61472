/** Questions of the executor inside a conversation: shown, answered and signed where the person sits. */
import type { WaitingGate } from '../../executor/client.ts';
import { laidOpen } from '../../kit/text/hidden-characters.ts';
import type { NeoClient } from '../../neo/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { gateSchema } from '../../wire/executor.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import { signedAnswer } from '../approver/signed-answer.ts';
import type { CliContext } from '../context.ts';
import { askPerson } from '../screens/gate-prompt.ts';

export type GateEvent = TurnEventData<'gate'>;

/** The question of an event; `undefined` for one that cannot be shown as it is. */
function gateOf(event: GateEvent): WaitingGate | undefined {
  const parsed = gateSchema.safeParse(event);
  return parsed.success ? parsed.data : undefined;
}

const howElse = (intentId: string) =>
  `answer it with: reveille intent approve ${intentId}, or: reveille intent deny ${intentId}`;

/**
 * Asks the person, and passes a signed answer on.
 *
 * @returns a sentence about what became of it; the first answer counts, and who comes later is told so
 */
export async function answerInline(context: CliContext, client: NeoClient, event: GateEvent): Promise<string> {
  const { intent_id: intentId } = event;
  const gate = gateOf(event);
  if (!gate)
    return `a step of intent ${intentId} waits for your approval and cannot be shown here; ${howElse(intentId)}`;
  const said = await askPerson(context, intentId, gate);
  if (said === 'neither') return `not answered; the question still waits: ${howElse(intentId)}`;
  const approved = said === 'yes';
  try {
    const answer = await signedAnswer(context, { intentId, gate, approved });
    await client.answerGate(intentId, gate.node_id, answer);
    return `${approved ? 'Approved' : 'Denied'} ${laidOpen(gate.node_id)}, signed by ${answer.approver.slice(0, 16)}…`;
  } catch (error) {
    if (error instanceof ReveilleError) return `your answer was not taken: ${error.message}`;
    throw error;
  }
}

/** One line about a question, where nobody can be asked. */
export const gateRemark = ({ intent_id }: GateEvent) => `the agent waits for your approval; ${howElse(intent_id)}`;
