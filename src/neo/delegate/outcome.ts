/** What the model is told of a task that was handed over. Nothing is called done that was not. Pure. */
import { type ToolAnswer, textAnswer } from '../tools/surface.ts';
import type { IntentState } from './executor-client.ts';

/** The states that an intent does not leave. */
export function isOver({ status }: IntentState): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled' || status === 'unknown';
}

/** Whether the executor goes no further until it is told more. */
export function asksBack({ status, clarify }: IntentState): boolean {
  return status === 'drafting' && clarify !== undefined && clarify !== '';
}

/** A result's source text as a model reads it: a plain string without its quotes. */
function shown(result: string): string {
  return result.startsWith('"') ? (JSON.parse(result) as string) : result;
}

const DENIED = 'Nobody was there to approve it, so it was denied; ask again when the user is present.';

/**
 * @param unattended whether a gate was denied because nobody was listening
 */
export function renderOutcome(intentId: string, state: IntentState, unattended: boolean): ToolAnswer {
  const { status, result, error, clarify } = state;
  const lines: string[] = [];
  switch (status) {
    case 'completed':
      lines.push(`Intent ${intentId} was completed.`);
      break;
    case 'failed':
      lines.push(`Intent ${intentId} failed: ${error?.message ?? 'the executor gave no reason'}`);
      break;
    case 'cancelled':
      lines.push(
        `Intent ${intentId} was cancelled${error ? `: ${error.message}` : ''}. Not all of it was carried out.`,
      );
      break;
    case 'unknown':
      lines.push(
        `It is not known whether intent ${intentId} was carried out${error ? `: ${error.message}` : ''}.`,
        'Do not hand the task over again; tell the user, who can look into it.',
      );
      break;
    default:
      lines.push(
        `Nothing was done: the executor has a question about intent ${intentId}: ${clarify}`,
        'Hand the task over again with the answer in its description, or ask the user.',
      );
  }
  if (unattended && status !== 'completed') lines.push(DENIED);
  if (result !== undefined) lines.push('Result:', shown(result));
  return textAnswer(lines.join('\n'), status !== 'completed');
}

/** When the time for waiting is over and the intent is not. */
export function renderPending(
  intentId: string,
  waitedMs: number,
  { status, questions }: { status: string; questions: readonly string[] },
): ToolAnswer {
  const lines = [
    `Intent ${intentId} is still pending after ${Math.round(waitedMs / 60_000)} minutes (${status}). It is neither done nor cancelled and may still be carried out.`,
    ...questions.map((question) => `It waits for an answer to: ${question}`),
    'Do not hand the task over again: that would be a second intent. Tell the user that it is pending, and its id.',
  ];
  return textAnswer(lines.join('\n'));
}
