/** Intents and questions as text. Pure: clock, zone and terminal are parameters. */

import type { Reply, WaitingGate } from '../../executor/client.ts';
import { localTime, shortTime } from '../../kit/clock/local-time.ts';
import { fullyEscaped, oneLine } from '../../kit/text/hidden-characters.ts';
import { shortIds } from '../../kit/text/short-ids.ts';
import { quoted, quotedJson, REMARK } from '../../kit/text/visible.ts';
import type { IntentStatus } from '../../wire/executor.ts';
import type { PlanNode } from '../../wire/intent.ts';
import { answerSummary, type IntentView } from '../../wire/intent-view.ts';
import { encodeJson, sliceAt } from '../../wire/json.ts';
import { fit, table, wrap } from './columns.ts';
import { markedBlock, renderGate, screenLines } from './gate-screen.ts';
import { facts, type Reader } from './render.ts';

const COLOURS: { readonly [Status in IntentStatus]?: 'green' | 'yellow' | 'red' } = {
  completed: 'green',
  awaiting_approval: 'yellow',
  failed: 'red',
  denied: 'red',
  unknown: 'red',
};

/** `awaiting approval`, in its colour, and the intent that it waits behind. */
export function statusWords(
  { status, queued_behind: behind }: Pick<IntentView, 'status' | 'queued_behind'>,
  look: Reader,
): string {
  const colour = COLOURS[status];
  const words = status.replaceAll('_', ' ');
  const coloured = colour === undefined ? words : look.paint(colour, words);
  return behind === undefined ? coloured : `${coloured}, waits behind intent ${behind}`;
}

function firstCall(node: PlanNode): Extract<PlanNode, { kind: 'call' }> | undefined {
  if (node.kind === 'call') return node;
  if (node.kind === 'wait') return undefined;
  for (const inner of node.nodes) {
    const call = firstCall(inner);
    if (call) return call;
  }
  return undefined;
}

/** `intent show` prints the whole. */
const DETAIL_LINES = 3;

/** The arguments of the call, and the reason of a failure; a few lines each. */
function detailsOf({ intent, error }: IntentView, look: Reader): string[] {
  const call = intent && firstCall(intent.plan);
  const given = Object.entries((call?.args ?? {}) as Record<string, unknown>);
  const words = given.map(([name, value]) => `${name} ${typeof value === 'string' ? value : encodeJson(value)}`);
  const lines = (text: string) => {
    const wrapped = wrap(oneLine(fullyEscaped(text.slice(0, 400).toWellFormed())), look.width - 5);
    const kept =
      wrapped.length > DETAIL_LINES
        ? [...wrapped.slice(0, DETAIL_LINES - 1), `${wrapped[DETAIL_LINES - 1]} …`]
        : wrapped;
    return kept.map((line) => `    ${fit(line, look.width - 5)}`);
  };
  return [
    ...(call === undefined ? [] : lines([call.tool, ...words].join(', ')).map((line) => look.paint('dim', line))),
    ...(error === undefined ? [] : lines(error.message).map((line) => look.paint('red', line))),
  ];
}

const whatOf = ({ prose, intent }: IntentView) =>
  oneLine(fullyEscaped(prose ?? intent?.verb ?? 'an intent given as JSON'));

/** The output of `intent list`. */
export function renderIntents(intents: readonly IntentView[], look: Reader): string[] {
  if (intents.length === 0) return ['No intents.'];
  const behind = intents.flatMap(({ queued_behind }) => (queued_behind === undefined ? [] : [queued_behind]));
  const ids = shortIds([...intents.map((view) => view.intent_id), ...behind]);
  const statusOf = ({ status, queued_behind }: IntentView) =>
    `${status.replaceAll('_', ' ')}${queued_behind === undefined ? '' : `, behind ${ids.get(queued_behind)}`}`;
  const rows = intents.map((view) => [
    ids.get(view.intent_id)!,
    statusOf(view),
    shortTime(Date.parse(view.created_at), look),
    whatOf(view),
  ]);
  const [heading, ...lines] = table(['ID', 'STATUS', 'SINCE', 'TASK'], rows, look);
  return [heading!, ...lines.flatMap((line, at) => [line, ...detailsOf(intents[at]!, look)])];
}

/** Failures with text of the executor alone; other reasons may contain text of a tool, server or person. */
const OWN_CODES: ReadonlySet<string | undefined> = new Set(['unavailable']);

/** The reason of a failure. */
export function errorLines({ code, message }: NonNullable<IntentView['error']>, look: Reader): string[] {
  const text = `${code ?? 'error'}: ${message}`;
  const title = look.paint('dim', 'Error');
  if (OWN_CODES.has(code)) return [title, ...wrap(oneLine(text), look.width - 3).map((line) => `  ${line}`)];
  return markedBlock('Error', text, look);
}

const ARGUMENT_CHARACTERS = 400;

/** The steps of a plan, indented by nesting. Calls are marked as foreign text. */
function planLines(node: PlanNode, states: ReadonlyMap<string, NodeState>, look: Reader, depth = 1): string[] {
  const indent = '  '.repeat(depth);
  const { state, detail } = states.get(node.id) ?? {};
  const own = (what: string) =>
    `${indent}${fullyEscaped(node.id)}  ${what}${state === undefined ? '' : `: ${state.replaceAll('_', ' ')}`}`;
  const said = detail === undefined ? [] : screenLines(quoted(detail), look);
  if (node.kind === 'wait')
    return [own(node.until === undefined ? `wait ${node.seconds} s` : `wait until ${node.until}`), ...said];
  if (node.kind !== 'call')
    return [own(node.kind), ...node.nodes.flatMap((inner) => planLines(inner, states, look, depth + 1))];
  const call = `${node.tool} ${encodeJson(node.args)}`;
  const cut =
    call.length > ARGUMENT_CHARACTERS ? [`${REMARK}shortened; ${call.length} characters in all, see --full`] : [];
  const { answered } = states.get(node.id) ?? {};
  const who = answered && answerSummary({ ...answered, at: localTime(Date.parse(answered.at), look) });
  return [
    own('call'),
    ...screenLines([...quotedJson(call.slice(0, ARGUMENT_CHARACTERS).toWellFormed()), ...cut], look),
    ...(who === undefined ? [] : wrap(oneLine(fullyEscaped(who)), look.width - 4).map((line) => `${indent}  ${line}`)),
    ...said,
  ];
}

type NodeState = IntentView['nodes'][number];

/** The output of `intent show`. @param full does not shorten long texts in the questions */
export function renderIntent(
  { value: view, text }: Reply<IntentView>,
  gates: readonly WaitingGate[],
  look: Reader,
  full = false,
): string[] {
  const states = new Map(view.nodes.map((node) => [node.node_id, node]));
  const result = sliceAt(text.text, ['result']);
  const { error, prose, intent, clarify } = view;
  const blocks: [title: string, text: string | undefined][] = [
    ['Task', prose],
    ['It needs an answer first', clarify],
    ['Result', result],
  ];
  return [
    `Intent ${look.paint('bold', view.intent_id)}`,
    ...facts(
      [
        ['status', view.status.replaceAll('_', ' ')],
        ['waits for', view.queued_behind === undefined ? undefined : `intent ${view.queued_behind}`],
        ['parked', view.parked ? 'yes: an alarm reports the outcome to the agent' : undefined],
        ['since', localTime(Date.parse(view.created_at), look)],
        ['ended', view.ended_at && localTime(Date.parse(view.ended_at), look)],
        ['from', view.origin === 'chronos' ? 'a turn that an alarm or another agent started' : 'a person'],
        ['conversation', view.conversation_id && fullyEscaped(view.conversation_id)],
        ['verb', intent && fullyEscaped(intent.verb)],
        ['deadline', intent?.deadline],
      ],
      look,
    ),
    ...(error === undefined ? [] : ['', ...errorLines(error, look)]),
    ...blocks.flatMap(([title, said]) => (said === undefined ? [] : ['', ...markedBlock(title, said, look)])),
    ...(intent === undefined ? [] : ['', look.paint('dim', 'Plan'), ...planLines(intent.plan, states, look)]),
    ...gates.flatMap((gate) => ['', ...renderGate(view.intent_id, gate, look, full)]),
    ...(gates.length === 0 ? [] : ['', `Answer with: reveille intent approve ${view.intent_id}, or deny`]),
  ];
}
