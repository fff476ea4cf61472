/** What a person is shown before a call is made. Lines of others are quoted, so that none can pass for one of ours. Pure. */

import { lookalikes } from '../../text-kit/hidden-characters.ts';
import { inline, quoted, quotedJson } from '../../text-kit/visible.ts';
import type { CallNode } from '../../wire/intent.ts';
import { callNodes } from '../intent/plan.ts';
import { type IntentFold, intentOf } from '../journal/fold.ts';
import { type Decimal, formatDecimal, plus, readDecimal, ZERO } from '../policy/decimal.ts';
import type { Spend } from '../policy/policy.ts';
import type { ReceiptBodies } from '../receipt/bodies.ts';
import type { RailTool } from '../tools/toolbox.ts';
import { clip } from './clip.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const DESCRIPTION_CHARACTERS = 300;
const DRY_RUN_CHARACTERS = 2000;
const TASK_CHARACTERS = 2000;

export type QuestionFacts = {
  readonly state: IntentFold;
  readonly node: CallNode;
  readonly tool: RailTool;
  readonly decided: ReceiptBodies['call.decided'];
  /** The dry run, where there is one. */
  readonly tried: ReceiptBodies['call.tried'] | undefined;
  readonly spends: readonly Spend[];
  readonly now: number;
  readonly expiresAt: string;
};

/** What is on record as moved in a currency within the last 24 hours. */
function spentOf(spends: readonly Spend[], currency: string, now: number): Decimal {
  return spends
    .filter((spend) => spend.currency === currency && spend.at > now - DAY_MS)
    .reduce((sum, { value }) => plus(sum, readDecimal(value) ?? ZERO), ZERO);
}

function costLines({ decided, tool, spends, now }: QuestionFacts): string[] {
  const { amount } = decided;
  if (!amount) {
    return tool.rail?.amount === undefined
      ? ['Amount: the manifest does not say where it stands; read the arguments.']
      : ['Amount: it CANNOT BE READ where the manifest says that it stands; read the arguments.'];
  }
  const unit = amount.currency === '' ? '' : ` ${inline(amount.currency)}`;
  const spent = formatDecimal(spentOf(spends, amount.currency, now));
  return [`Amount: ${amount.value}${unit}. In the last 24 hours ${spent}${unit} were moved, with any tool.`];
}

function trialLines({ tried, tool }: QuestionFacts): string[] {
  if (!tried) return [tool.rail?.dry_run ? 'Dry run: none was made.' : 'Dry run: this tool has none.'];
  const outcome = {
    succeeded: 'went through',
    failed: 'FAILED',
    not_run: 'could NOT be made',
    unknown: 'got no answer',
  }[tried.status];
  const words = tried.text === undefined || tried.text === '' ? [] : quoted(clip(tried.text, DRY_RUN_CHARACTERS));
  const arguments_ = quotedJson(JSON.stringify(tried.args));
  const said = words.length === 0 ? [] : ['In its own words:', ...words];
  return [`Dry run: ${inline(tried.tool)} ${outcome}. It was called with:`, ...arguments_, ...said];
}

function argumentLines({ args }: CallNode): string[] {
  const text = JSON.stringify(args, null, 2);
  const alike = lookalikes(text);
  const careful =
    alike.length === 0
      ? []
      : [`Careful: some characters only look like others (${alike.join(', ')}); they are written as \\u{…} above.`];
  return ['Arguments, exactly as they will be sent:', ...quotedJson(text), ...careful];
}

const ORIGIN_WORDS: Readonly<Record<string, string>> = {
  schema: 'the tool offers no other value',
  prose: 'the task',
  person: 'what a person said',
  alarm: "an alarm's message",
  tool: 'what a TOOL said in the conversation',
  read: 'what a TOOL said while the task was compiled',
  nowhere: 'NOWHERE that is known',
};

function sourceLines({ state, node }: QuestionFacts): string[] {
  const sources = (state.compiled?.provenance ?? []).filter(({ node_id }) => node_id === node.id);
  if (sources.length === 0) return [];
  const lines = sources.map(({ place, value, from, tool }) => {
    const where = `${ORIGIN_WORDS[from] ?? from}${tool === undefined ? '' : ` (${tool})`}`;
    return `${place} = ${JSON.stringify(clip(value, 200))}: from ${where}`;
  });
  return ['Where the values come from:', ...lines.flatMap(quotedJson)];
}

function taskLines({ accepted }: IntentFold): string[] {
  if (accepted.prose === undefined) return ['The task was handed over as a plan in JSON.'];
  return ['The task, as it was handed over:', ...quoted(clip(accepted.prose, TASK_CHARACTERS))];
}

function askerLine({ accepted, parkedIn }: IntentFold): string {
  const { user, conversation_id, origin } = accepted.principal;
  const where = conversation_id === undefined ? '' : `, in the conversation ${inline(conversation_id)}`;
  const who =
    origin === 'chronos' ? 'in a turn that an ALARM began, with nobody there' : 'in a turn that a person began';
  const parked = parkedIn === undefined ? '' : '; the agent has ended its turn and is woken when this is over';
  return `Asked for by the agent of ${inline(user)}${where}, ${who}${parked}.`;
}

function placeLine({ state, node }: QuestionFacts): string {
  const intent = intentOf(state)!;
  const calls = callNodes(intent.plan);
  const step = calls.findIndex(({ id }) => id === node.id) + 1;
  const deadline = intent.deadline === undefined ? '' : ` No call begins after ${intent.deadline}.`;
  return `Call ${step} of ${calls.length} in the plan (node ${node.id}).${deadline}`;
}

/** The question, whole. Instants are in UTC. */
export function questionOf(facts: QuestionFacts): string {
  const { node, tool, decided, expiresAt } = facts;
  const { description } = tool.definition;
  const about =
    description === undefined || description === ''
      ? ['Its server says nothing of it.']
      : ['Its server says of it:', ...quoted(clip(description, DESCRIPTION_CHARACTERS))];
  return [
    `May ${inline(node.tool)} be called?`,
    '',
    `Tool: ${inline(tool.uri)}`,
    ...about,
    ...argumentLines(node),
    ...sourceLines(facts),
    ...costLines(facts),
    ...trialLines(facts),
    `Policy: asks, by the rule ${inline(decided.rule)}.`,
    ...quoted(decided.reason),
    askerLine(facts.state),
    ...taskLines(facts.state),
    placeLine(facts),
    `Without an answer it is not called: the question expires at ${expiresAt}.`,
    `Call: ${decided.call.call_sha256}`,
  ].join('\n');
}
