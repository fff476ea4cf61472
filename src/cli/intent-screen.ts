/** Intents and questions as a person reads them. Pure: the reader's clock, zone and terminal are handed in. */

import { laidOpen, oneLine } from '../text-kit/hidden-characters.ts';
import type { IntentStatus } from '../wire/executor.ts';
import type { PlanNode } from '../wire/intent.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { encodeJson, sliceAt } from '../wire/json.ts';
import { columns } from './columns.ts';
import type { Told, WaitingGate } from './executor-access.ts';
import { localTime, shortTime } from './local-time.ts';
import { facts, type Look, shortIds } from './render.ts';

/** Each line of a text in which nothing is hidden but the ends of lines. */
const openLines = (text: string) => text.split('\n').map((line) => laidOpen(line));

/** JSON over several lines; `text` is such that all its numbers are exact. */
function prettyLines(value: unknown): string[] {
  return openLines(JSON.stringify(value, null, 2));
}

/** The whole question, and the very call that would be made. Nothing of it is cut. */
export function renderGate(intentId: string, gate: WaitingGate, look: Look): string[] {
  const { question, call, node_id } = gate;
  const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`.trimEnd());
  return [
    `Intent ${look.paint('bold', intentId)}, step ${look.paint('bold', laidOpen(node_id))} waits for your approval`,
    '',
    // Not wrapped: the end of a line that quotes others would stand there as one of the executor's own.
    ...indented(openLines(question)),
    '',
    look.paint('dim', 'Exactly this call is made:'),
    `  ${look.paint('bold', laidOpen(call.tool))}`,
    ...indented(prettyLines(call.args)),
    look.paint('dim', `  call_sha256 ${call.call_sha256}`),
  ];
}

const COLOURS: { readonly [Status in IntentStatus]?: 'green' | 'yellow' | 'red' } = {
  completed: 'green',
  awaiting_approval: 'yellow',
  failed: 'red',
  unknown: 'red',
};

/** `awaiting approval`, in its colour. */
export function statusWords(view: Pick<IntentView, 'status'>, look: Look): string {
  const colour = COLOURS[view.status];
  const words = view.status.replaceAll('_', ' ');
  return colour === undefined ? words : look.paint(colour, words);
}

const whatOf = ({ prose, intent }: IntentView) => oneLine(laidOpen(prose ?? intent?.verb ?? 'an intent given as JSON'));

/** What `intent list` shows. */
export function renderIntents(intents: readonly IntentView[], look: Look): string[] {
  if (intents.length === 0) return ['No intents.'];
  const ids = shortIds(intents.map((view) => view.intent_id));
  const rows = intents.map((view) => [
    ids.get(view.intent_id)!,
    view.status.replaceAll('_', ' '),
    shortTime(Date.parse(view.created_at), look),
    whatOf(view),
  ]);
  const [heading, ...lines] = columns([['ID', 'STATUS', 'SINCE', 'TASK'], ...rows], look.width);
  return [look.paint('dim', heading!), ...lines];
}

/** The steps of a plan, indented as they stand in one another. */
function planLines(node: PlanNode, states: ReadonlyMap<string, string>, depth: number): string[] {
  const indent = '  '.repeat(depth + 1);
  const state = states.get(node.id);
  const line = (what: string) => `${indent}${laidOpen(node.id)}  ${what}${state === undefined ? '' : `: ${state}`}`;
  if (node.kind === 'call') return [line(`${laidOpen(node.tool)} ${laidOpen(encodeJson(node.args))}`)];
  if (node.kind === 'wait') return [line(`wait ${node.seconds} s`)];
  return [line(node.kind), ...node.nodes.flatMap((inner) => planLines(inner, states, depth + 1))];
}

/** What `intent show` says. */
export function renderIntent(
  { value: view, text }: Told<IntentView>,
  gates: readonly WaitingGate[],
  look: Look,
): string[] {
  const states = new Map(
    view.nodes.map(({ node_id, state, detail }) => [
      node_id,
      `${state.replaceAll('_', ' ')}${detail === undefined ? '' : ` (${laidOpen(detail)})`}`,
    ]),
  );
  const result = sliceAt(text.text, ['result']);
  const open = (given: string | undefined) => (given === undefined ? undefined : laidOpen(given));
  return [
    `Intent ${look.paint('bold', view.intent_id)}`,
    ...facts(
      [
        ['status', statusWords(view, look)],
        ['waits for', view.queued_behind === undefined ? undefined : `intent ${view.queued_behind}`],
        ['parked', view.parked ? 'yes: an alarm tells the agent what came of it' : undefined],
        ['since', localTime(Date.parse(view.created_at), look)],
        ['from', view.origin === 'chronos' ? 'a turn that an alarm began' : 'a person'],
        ['conversation', view.conversation_id],
        ['task', open(view.prose)],
        ['verb', open(view.intent?.verb)],
        ['deadline', view.intent?.deadline],
        ['needs to know', open(view.clarify)],
        ['error', view.error && laidOpen(`${view.error.code ?? 'error'}: ${view.error.message}`)],
        ['result', result === undefined ? undefined : laidOpen(result)],
      ],
      look,
    ),
    ...(view.intent === undefined ? [] : ['', look.paint('dim', 'Plan'), ...planLines(view.intent.plan, states, 0)]),
    ...gates.flatMap((gate) => ['', ...renderGate(view.intent_id, gate, look)]),
    ...(gates.length === 0 ? [] : ['', `Answer with: reveille intent approve ${view.intent_id}, or deny`]),
  ];
}
