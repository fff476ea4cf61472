/** The questions that wait for one person. */
import type { ExecutorClient, Told, WaitingGate } from '../executor/client.ts';
import { calendarTime, type Here } from '../kit/clock/local-time.ts';
import { laidOpen } from '../kit/text/hidden-characters.ts';
import { answeredWords, type IntentView } from '../wire/intent-view.ts';
import type { Desk } from './desk.ts';
import type { SharedReads } from './shared-reads.ts';
import { there } from './request-context.ts';

/** A question, the intent that it belongs to, and the source text of the call, whose numbers have all their digits. */
export type WaitingQuestion = { readonly intent: IntentView; readonly gate: WaitingGate; readonly text: string };

export type Waiting = {
  /** What waits, oldest intent first; nothing where there is no executor. Rejects when it cannot be asked. */
  look(): Promise<readonly WaitingQuestion[]>;
  /** The same, asked for anew. */
  lookAgain(): Promise<readonly WaitingQuestion[]>;
};

const MOST = 50;

async function ask(intents: ExecutorClient): Promise<WaitingQuestion[]> {
  const found = await intents.list({ status: 'awaiting_approval', limit: MOST });
  const gates = await Promise.all(
    found.reverse().map(async ({ value: intent }) => {
      const waiting: Told<WaitingGate>[] = await intents.gates(intent.intent_id);
      return waiting.map(({ value: gate, text }) => ({ intent, gate, text: text.text }));
    }),
  );
  return gates.flat();
}

export function waitingOf(backend: Desk, reads: SharedReads): Waiting {
  const { intents } = backend;
  if ('missing' in intents) return { look: async () => [], lookAgain: async () => [] };
  const [key, all] = [`${backend.user} waiting`, () => ask(intents.there)];
  return { look: () => reads.read(key, all), lookAgain: () => reads.renew(key, all) };
}

/** Who was first, as a sentence, where a step's question has been answered or waits no more; `undefined` where it waits. */
export async function firstAnswer(
  backend: Desk,
  here: Here,
  { intentId, nodeId }: { intentId: string; nodeId: string },
): Promise<string | undefined> {
  const { value } = await there(backend.intents).view(intentId);
  const node = value.nodes.find(({ node_id }) => node_id === nodeId);
  if (!node || node.state === 'awaiting_approval') return undefined;
  const { answered, state, detail } = node;
  const what = answered
    ? `was already ${laidOpen(answeredWords({ ...answered, at: calendarTime(Date.parse(answered.at), here) }))}`
    : `is ${state.replaceAll('_', ' ')}${detail === undefined ? '' : ` (${detail})`}`;
  return `This question does not wait any more: its step ${what}. The first answer counts.`;
}
