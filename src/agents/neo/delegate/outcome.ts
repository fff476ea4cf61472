/** The text for the model about a submitted task. Only confirmed work is reported as done. Pure. */
import type { IntentState, Reply, WaitingGate } from '../../../executor/client.ts';
import { clip } from '../../../kit/text/excerpt.ts';
import { oneLine } from '../../../kit/text/hidden-characters.ts';
import { isIntentFinal } from '../../../wire/executor.ts';
import { sliceAt } from '../../../wire/json.ts';
import { type ToolAnswer, textAnswer } from '../tools/surface.ts';

/** Whether waiting has no use: the intent has ended, or the executor needs more information first. */
export function isSettled(state: IntentState): boolean {
  const { status, clarify } = state;
  return isIntentFinal(state) || (status === 'drafting' && clarify !== undefined && clarify !== '');
}

/** A result's source text for a model: a plain string without its quotes. */
function shown(result: string): string {
  return result.startsWith('"') ? (JSON.parse(result) as string) : result;
}

const NO_APPROVER = 'No approver was there, so it was cancelled; ask again when the user is present.';

/** @param unattended whether it was cancelled because no approver was listening */
export function renderOutcome(intentId: string, { value, text }: Reply<IntentState>, unattended: boolean): ToolAnswer {
  const { status, error, clarify, receipt } = value;
  const result = sliceAt(text.text, ['result']);
  const lines: string[] = [];
  switch (status) {
    case 'completed':
      lines.push(`Intent ${intentId} was completed.`);
      break;
    case 'failed':
      lines.push(`Intent ${intentId} failed: ${error?.message ?? 'the executor gave no reason'}`);
      break;
    case 'denied':
      lines.push(
        `Intent ${intentId} was denied: ${error?.message ?? 'the executor gave no reason'}`,
        'That is a decision, not a fault: do not hand the task over again unless the user asks for it.',
      );
      break;
    case 'cancelled':
      lines.push(
        `Intent ${intentId} was cancelled${error ? `: ${error.message}` : ''}. Not all of it was carried out.`,
      );
      break;
    case 'unknown':
      lines.push(
        `It is not known whether intent ${intentId} was carried out${error ? `: ${error.message}` : ''}.`,
        'Do not hand the task over again; report it to the user, who can look into it.',
      );
      break;
    default:
      lines.push(
        `Nothing was done: the executor has a question about intent ${intentId}: ${clarify}`,
        'Hand the task over again with the answer in its description, or ask the user.',
      );
  }
  if (unattended && status !== 'completed') lines.push(NO_APPROVER);
  if (receipt !== undefined) {
    lines.push(
      `Receipt: sha256 ${receipt.sha256}, ${receipt.envelopes} envelopes; the user fetches it with GET ${receipt.path} from this agent, and checks it with "reveille receipt verify".`,
    );
  }
  if (result !== undefined) lines.push('Result:', shown(result));
  return textAnswer(lines.join('\n'), status !== 'completed');
}

export type Pending = {
  readonly status: string;
  /** The intent that must end first. */
  readonly queuedBehind: string | undefined;
  /** The waiting question of that intent, and how to answer it. */
  readonly blocked?: string | undefined;
  /** The questions of its open gates. */
  readonly questions: readonly string[];
  /** How long the turn waited; absent where no approver was there. */
  readonly waitedMs?: number | undefined;
  /** Whether the executor has promised to wake the agent. */
  readonly parked: boolean;
};

const CALL_CHARACTERS = 200;

/**
 * The waiting calls of an earlier intent, and the commands that answer them.
 *
 * @returns `undefined` where no call waits for an approval
 */
export function describeBlockedCalls(intentId: string, gates: readonly Reply<WaitingGate>[]): string | undefined {
  if (gates.length === 0) return undefined;
  const calls = gates.map(({ value: { call } }) => `${call.tool} ${clip(JSON.stringify(call.args), CALL_CHARACTERS)}`);
  const answer = (verb: string) =>
    gates
      .map(({ value }) => `reveille intent ${verb} ${intentId}${gates.length > 1 ? ` ${value.node_id}` : ''}`)
      .join('; ');
  return `${intentId} waits for an approval of ${calls.map(oneLine).join(' and of ')}. Approve: ${answer('approve')}. Deny: ${answer('deny')}`;
}

const DO_NOT_RESUBMIT = 'Do not hand the task over again: that would be a second intent.';
const PARKED =
  'It is parked: a person has been asked, and may answer much later. An alarm wakes you in this conversation when the intent has ended, and reports its outcome to you.';

/** For a turn that stops waiting while the intent has not ended. */
export function renderPending(intentId: string, pending: Pending): ToolAnswer {
  const { status, queuedBehind, blocked, questions, waitedMs, parked } = pending;
  const after = waitedMs === undefined ? '' : ` after ${Math.round(waitedMs / 60_000)} minutes`;
  const lines = [
    `Intent ${intentId} is still pending${after} (${status}). It is neither done nor cancelled and may still be carried out.`,
    ...(queuedBehind === undefined ? [] : [`It begins when intent ${queuedBehind} of the same user has ended.`]),
    ...(blocked === undefined ? [] : [`${blocked}.`]),
    ...questions.map((question) => `It waits for an answer to: ${question}`),
    ...(parked
      ? [PARKED, `${DO_NOT_RESUBMIT} End this turn now: say what waits and the id of the intent.`]
      : [`${DO_NOT_RESUBMIT} Report to the user that it is pending, and its id.`]),
  ];
  return textAnswer(lines.join('\n'));
}
