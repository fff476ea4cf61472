/** Approval questions inside a conversation: shown, answered and signed at this terminal. */
import type { NeoClient } from '../../agents/neo/client.ts';
import type { WaitingGate } from '../../executor/client.ts';
import { fullyEscaped, oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { gateSchema } from '../../wire/executor.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import { signedAnswer } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { askPerson } from '../screens/gate-prompt.ts';

export type GateEvent = TurnEventData<'gate'>;

/** The question of an event; `undefined` when it cannot be displayed unchanged. */
function gateOf(event: GateEvent): WaitingGate | undefined {
  const parsed = gateSchema.safeParse(event);
  return parsed.success ? parsed.data : undefined;
}

const howElse = (intentId: string) =>
  `answer it with: reveille intent approve ${intentId}, or: reveille intent deny ${intentId}`;

/**
 * Asks the user and sends a signed answer.
 *
 * @param withdrawn aborts when another approver answered first
 * @returns a sentence about the outcome, and whether this answer counts: the first answer wins, and a later one names
 *   the first approver. The sentence is empty when the question was withdrawn.
 */
export async function answerInline(
  context: CliContext,
  client: NeoClient,
  event: GateEvent,
  withdrawn?: AbortSignal,
): Promise<{ readonly words: string; readonly isTaken: boolean }> {
  const outcome = (words: string, isTaken = false) => ({ words, isTaken });
  const { intent_id: intentId } = event;
  const gate = gateOf(event);
  if (!gate)
    return outcome(
      `a step of intent ${intentId} waits for your approval and cannot be shown here; ${howElse(intentId)}`,
    );
  const choice = await askPerson(context, intentId, gate, { withdrawn });
  if (withdrawn?.aborted) return outcome('');
  if (choice === 'neither') return outcome(`not answered; the question still waits: ${howElse(intentId)}`);
  const approved = choice === 'yes';
  try {
    const answer = await signedAnswer(context, { intentId, gate, approved });
    await client.answerGate(intentId, gate.node_id, answer);
    const who = `signed by ${answer.approver.slice(0, 16)}…`;
    return outcome(`${approved ? 'Approved' : 'Denied'} ${fullyEscaped(gate.node_id)}, ${who}`, true);
  } catch (error) {
    if (error instanceof ReveilleError) return outcome(`your answer was not accepted: ${error.message}`);
    throw error;
  }
}

/** A sentence about a question that was answered elsewhere or has expired. */
export function decidedWords({ node_id, state, by, reason }: GateEvent): string {
  const question = `the question about ${fullyEscaped(node_id)}`;
  if (state === 'lapsed') return `${question} no longer waits${reason === undefined ? '' : `: ${oneLine(reason)}`}`;
  return `${question} was ${state} elsewhere${by === undefined ? '' : ` by ${oneLine(by)}`}; the first answer counts`;
}

/** A line about a question when no approver can be prompted. */
export const gateRemark = ({ intent_id }: GateEvent) => `the agent waits for your approval; ${howElse(intent_id)}`;
