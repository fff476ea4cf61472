/** Questions of the executor inside a conversation: shown, answered and signed where the person sits. */
import type { WaitingGate } from '../../executor/client.ts';
import { laidOpen, oneLine } from '../../kit/text/hidden-characters.ts';
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
 * @param withdrawn aborts when somebody else was first
 * @returns a sentence about what became of it, and whether it was this answer that counts: the first does, and who
 *   comes later is told whose it was; no words where it was withdrawn
 */
export async function answerInline(
  context: CliContext,
  client: NeoClient,
  event: GateEvent,
  withdrawn?: AbortSignal,
): Promise<{ readonly words: string; readonly isTaken: boolean }> {
  const told = (words: string, isTaken = false) => ({ words, isTaken });
  const { intent_id: intentId } = event;
  const gate = gateOf(event);
  if (!gate)
    return told(`a step of intent ${intentId} waits for your approval and cannot be shown here; ${howElse(intentId)}`);
  const said = await askPerson(context, intentId, gate, { withdrawn });
  if (withdrawn?.aborted) return told('');
  if (said === 'neither') return told(`not answered; the question still waits: ${howElse(intentId)}`);
  const approved = said === 'yes';
  try {
    const answer = await signedAnswer(context, { intentId, gate, approved });
    await client.answerGate(intentId, gate.node_id, answer);
    const who = `signed by ${answer.approver.slice(0, 16)}…`;
    return told(`${approved ? 'Approved' : 'Denied'} ${laidOpen(gate.node_id)}, ${who}`, true);
  } catch (error) {
    if (error instanceof ReveilleError) return told(`your answer was not taken: ${error.message}`);
    throw error;
  }
}

/** What became of a question that somebody else answered, or that waits no more. */
export function decidedWords({ node_id, state, by, reason }: GateEvent): string {
  const question = `the question about ${laidOpen(node_id)}`;
  if (state === 'lapsed') return `${question} waits no more${reason === undefined ? '' : `: ${oneLine(reason)}`}`;
  return `${question} was ${state} elsewhere${by === undefined ? '' : ` by ${oneLine(by)}`}; the first answer counts`;
}

/** One line about a question, where nobody can be asked. */
export const gateRemark = ({ intent_id }: GateEvent) => `the agent waits for your approval; ${howElse(intent_id)}`;
