/** The waiting questions of one user. */
import type { ExecutorClient, Reply, WaitingGate } from '../executor/client.ts';
import { calendarTime, type LocalContext } from '../kit/clock/local-time.ts';
import { fullyEscaped } from '../kit/text/hidden-characters.ts';
import { answerSummary, type IntentView } from '../wire/intent-view.ts';
import type { ConsoleBackend } from './backend.ts';
import { there } from './request-context.ts';
import type { SharedReads } from './shared-reads.ts';

/** A question, its intent, and the source text of the call, in which numbers keep all digits. */
export type WaitingQuestion = { readonly intent: IntentView; readonly gate: WaitingGate; readonly text: string };

const MAX_INTENTS = 50;

async function readAll(intents: ExecutorClient): Promise<WaitingQuestion[]> {
  const found = await intents.list({ status: 'awaiting_approval', limit: MAX_INTENTS });
  const gates = await Promise.all(
    found.reverse().map(async ({ value: intent }) => {
      const waiting: Reply<WaitingGate>[] = await intents.gates(intent.intent_id);
      return waiting.map(({ value: gate, text }) => ({ intent, gate, text: text.text }));
    }),
  );
  return gates.flat();
}

/** The waiting questions, oldest intent first; empty without an executor. Rejects if the executor does not answer. */
export async function waitingOf(
  { user, intents }: Pick<ConsoleBackend, 'user' | 'intents'>,
  reads: SharedReads,
): Promise<readonly WaitingQuestion[]> {
  return 'missing' in intents ? [] : reads.read(`${user} waiting`, () => readAll(intents.there));
}

/** Why a question is closed, with its approver; `undefined` while it waits. */
export async function firstAnswer(
  backend: ConsoleBackend,
  here: LocalContext,
  { intentId, nodeId }: { intentId: string; nodeId: string },
): Promise<string | undefined> {
  const { value } = await there(backend.intents).view(intentId);
  const node = value.nodes.find(({ node_id }) => node_id === nodeId);
  if (!node || node.state === 'awaiting_approval') return undefined;
  const { answered, state, detail } = node;
  const what = answered
    ? `was already ${fullyEscaped(answerSummary({ ...answered, at: calendarTime(Date.parse(answered.at), here) }))}`
    : `is ${state.replaceAll('_', ' ')}${detail === undefined ? '' : ` (${detail})`}`;
  return `This question is no longer waiting: its step ${what}. The first answer counts.`;
}
