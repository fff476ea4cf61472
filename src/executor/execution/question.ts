/**
 * The text of a question about a call, the same for every terminal. Answers are bound to its digest, so its wording is
 * part of the protocol. Pure.
 */
import { clip } from '../../kit/text/excerpt.ts';
import { lookalikes } from '../../kit/text/hidden-characters.ts';
import { argumentLines, brief, quoted, quotedJson, wholeLines, wholeText } from '../../kit/text/visible.ts';
import type { CallNode } from '../../wire/intent.ts';
import type { EffectRole, SideEffectClass } from '../../wire/manifest.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { callNodes } from '../intent/plan.ts';
import { partsOf, valueAt } from '../intent/pointer.ts';
import { type Decimal, formatDecimal, plus, readDecimal, ZERO } from '../policy/decimal.ts';
import type { Spend } from '../policy/policy.ts';
import type { ReceiptBodies } from '../receipt/bodies.ts';
import { type ChainState, intentOf, recordOf } from '../receipt/chain-state.ts';
import type { RailTool } from '../tools/toolbox.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const DESCRIPTION_CHARACTERS = 300;
const DRY_RUN_CHARACTERS = 2000;
const TASK_CHARACTERS = 2000;

export type QuestionFacts = {
  readonly state: ChainState;
  readonly node: CallNode;
  readonly tool: RailTool;
  readonly decided: ReceiptBodies['call.decided'];
  /** The dry run, if there is one. */
  readonly tried: ReceiptBodies['call.tried'] | undefined;
  readonly spends: readonly Spend[];
  readonly now: number;
  readonly expiresAt: string;
};

/** The recorded spending in a currency within the last 24 hours. */
function spentOf(spends: readonly Spend[], currency: string, now: number): Decimal {
  return spends
    .filter((spend) => spend.currency === currency && spend.at > now - DAY_MS)
    .reduce((sum, { value }) => plus(sum, readDecimal(value) ?? ZERO), ZERO);
}

function amountLines({ decided, tool }: QuestionFacts): string[] {
  const { amount } = decided;
  if (amount) return ['Amount:', ...wholeText(`${amount.value}${amount.currency === '' ? '' : ` ${amount.currency}`}`)];
  return tool.rail?.amount === undefined
    ? ['Amount: the manifest does not say where it stands.']
    : ['Amount: it CANNOT BE READ where the manifest says that it stands.'];
}

function recipientLines({ tool, node }: QuestionFacts): string[] {
  const pointer = tool.rail?.recipient;
  if (pointer === undefined) return ['Recipient: the manifest does not say where it stands.'];
  const recipient = valueAt(node.args, pointer);
  return recipient === undefined
    ? ['Recipient: there is NONE where the manifest says that it stands.']
    : ['Recipient:', ...wholeText(JSON.stringify(recipient))];
}

const CLASS_TEXT: Readonly<Record<SideEffectClass, string>> = {
  read: 'reads',
  write: 'changes something',
  network: 'reaches out to others',
  shell: 'runs commands',
};

function effectLine({ tool }: QuestionFacts): string {
  const { surface, sideEffectClass } = tool;
  const declared =
    sideEffectClass === undefined
      ? 'NOT SAID by the manifest'
      : `it ${CLASS_TEXT[sideEffectClass]}, by the manifest (${sideEffectClass})`;
  return surface === 'escalate' ? `Effect: ${declared}; it may not be possible to undo it.` : `Effect: ${declared}.`;
}

const ROLE_TITLES: Readonly<Record<EffectRole, string>> = {
  amount: 'Amount, whole:',
  payer: 'Payer, whole:',
  recipient: 'Recipient, whole:',
  command: 'Command, whole:',
  code: 'Program, whole:',
  url: 'Address, whole:',
  path: 'Path, whole:',
  content: 'Content, whole:',
  name: 'Name, whole:',
};

/**
 * The arguments that determine the effect of the call, in full. Where the manifest does not name them, or none is
 * present, it is every argument.
 */
function wholeEffect({ tool, node, decided }: QuestionFacts): string[] {
  const { effect, amount, recipient, currency } = tool.rail ?? {};
  const hasAmount = amount !== undefined && decided.amount !== undefined;
  const hasRecipient = recipient !== undefined && valueAt(node.args, recipient) !== undefined;
  const lines = (effect ?? []).flatMap(({ role, at }) => {
    const value = valueAt(node.args, at);
    const isAbove = (hasAmount && (at === amount || at === currency)) || (hasRecipient && at === recipient);
    return value === undefined || isAbove ? [] : [ROLE_TITLES[role], ...wholeLines(value, partsOf(at).at(-1))];
  });
  const isKnown = lines.length > 0 || (effect ? hasAmount || hasRecipient : hasAmount && hasRecipient);
  return isKnown ? lines : [EVERY_ARGUMENT, ...wholeLines(node.args)];
}

const EVERY_ARGUMENT = 'Every argument, whole:';

/** The part of a question before its first empty line: the effect of the call, its arguments last. */
function headLines(facts: QuestionFacts): string[] {
  const { effect, amount, recipient } = facts.tool.rail ?? {};
  return [
    'May this tool be called?',
    ...brief(JSON.stringify(facts.node.tool)),
    effectLine(facts),
    ...(effect && amount === undefined ? [] : amountLines(facts)),
    ...(effect && recipient === undefined ? [] : recipientLines(facts)),
    ...wholeEffect(facts),
  ];
}

function spentLines({ decided, spends, now }: QuestionFacts): string[] {
  const { amount } = decided;
  if (!amount) return [];
  const spent = formatDecimal(spentOf(spends, amount.currency, now));
  const already = amount.currency === '' ? spent : `${spent} ${amount.currency}`;
  return ['Moved in the last 24 hours in this currency, with any tool:', ...brief(already)];
}

function trialLines({ tried, tool }: QuestionFacts): string[] {
  if (!tried) return [tool.rail?.dry_run ? 'Dry run: none was made.' : 'Dry run: this tool has none.'];
  const outcome = {
    succeeded: 'it went through',
    failed: 'it FAILED',
    not_run: 'it could NOT be made',
    unknown: 'it got no answer',
  }[tried.status];
  const output = tried.text === undefined || tried.text === '' ? [] : quoted(clip(tried.text, DRY_RUN_CHARACTERS));
  const shown = output.length === 0 ? [] : ['In its own words:', ...output];
  return [
    `Dry run: ${outcome}. This was called:`,
    ...quotedJson(JSON.stringify(tried.tool)),
    ...argumentLines(tried.args),
    ...shown,
  ];
}

function argumentsShown({ args }: CallNode): string[] {
  const alike = lookalikes(JSON.stringify(args));
  const careful =
    alike.length === 0
      ? []
      : [`Careful: some characters only look like others (${alike.join(', ')}); they are written as \\u{…} above.`];
  return ['Arguments, exactly as they will be sent:', ...argumentLines(args), ...careful];
}

const ORIGIN_TEXT: Readonly<Record<string, string>> = {
  schema: 'the tool offers no other value',
  conversation: 'the conversation that the task comes from',
  prose: 'the task',
  person: 'what a person said',
  alarm: "an alarm's message",
  tool: 'what a TOOL said in the conversation',
  read: 'what a TOOL said while the task was compiled',
  nowhere: 'NOWHERE that is known',
};

/** Values from results of earlier steps, which the approver has not seen yet. */
function foundLines({ state, decided }: QuestionFacts): string[] {
  const calls = callNodes(intentOf(state)!.plan);
  return (decided.resolved ?? []).map(({ place, ref, json }) => {
    const [from, pointer] = [ref.slice(0, ref.indexOf('#')), ref.slice(ref.indexOf('#') + 1)];
    const tool = calls.find(({ id }) => id === from)?.tool;
    const what = pointer === '' ? 'its whole result' : pointer;
    return `${place} = ${clip(json, 200)} from step ${from}: ${what} (what ${tool} gave back)`;
  });
}

function sourceLines(facts: QuestionFacts): string[] {
  const { state, node } = facts;
  const sources = (state.compiled?.provenance ?? []).filter(({ node_id }) => node_id === node.id);
  const found = foundLines(facts);
  if (sources.length + found.length === 0) return [];
  const lines = sources.map(({ place, value, from, tool }) => {
    const where = `${ORIGIN_TEXT[from] ?? from}${tool === undefined ? '' : ` (${tool})`}`;
    return `${place} = ${JSON.stringify(clip(value, 200))}: from ${where}`;
  });
  return ['Where the values come from:', ...[...found, ...lines].flatMap(quotedJson)];
}

function taskLines({ accepted }: ChainState): string[] {
  if (accepted.prose === undefined) return ['The task was handed over as a plan in JSON.'];
  return ['The task, as it was handed over:', ...quoted(clip(accepted.prose, TASK_CHARACTERS))];
}

function requesterLines({ accepted, parkedIn }: ChainState): string[] {
  const { user, conversation_id, origin } = accepted.principal;
  const began = origin === 'chronos' ? 'an ALARM or another AGENT began, with no user present' : 'a person began';
  const parked = parkedIn === undefined ? '' : '; the agent has ended its turn and is woken when this intent has ended';
  const handedOver =
    conversation_id === undefined && origin !== 'chronos'
      ? `Handed over in the name of this user, outside of any conversation${parked}:`
      : `Asked for by the agent of this user${conversation_id === undefined ? '' : ' and conversation'}, in a turn that ${began}${parked}:`;
  return [
    handedOver,
    ...quotedJson(JSON.stringify(user)),
    ...(conversation_id === undefined ? [] : quotedJson(JSON.stringify(conversation_id))),
  ];
}

function positionLines({ state, node }: QuestionFacts): string[] {
  const intent = intentOf(state)!;
  const calls = callNodes(intent.plan);
  const step = calls.findIndex(({ id }) => id === node.id) + 1;
  const deadline = intent.deadline === undefined ? '' : ` No call begins after ${intent.deadline}.`;
  return [`Call ${step} of ${calls.length} in the plan.${deadline} Its node:`, ...quotedJson(JSON.stringify(node.id))];
}

/**
 * Makes the text of each question unique, and so its digest. An answer to an earlier question, from before the tool's
 * definition changed, does not fit this one even if the rest reads the same.
 */
function askingLine({ state, node, decided, now }: QuestionFacts): string {
  const times = (recordOf(state, node.id).gate?.times ?? 0) + 1;
  const again = times === 1 ? '' : `, for the ${times}. time`;
  return `Asked at ${formatInstant(now)}${again}, of the tool as it is defined now (${decided.call.definition_sha256}).`;
}

/**
 * The full question: the effect of the call, an empty line, then all details. Instants are in UTC. Foreign text occurs
 * only in lines that begin with the mark of {@link quoted}.
 */
export function questionOf(facts: QuestionFacts): string {
  const { node, tool, decided, expiresAt } = facts;
  const { description } = tool.definition;
  const about =
    description === undefined || description === ''
      ? ['Its server says nothing of it.']
      : ['Its server says of it:', ...quoted(clip(description, DESCRIPTION_CHARACTERS))];
  return [
    ...headLines(facts),
    '',
    ...argumentsShown(node),
    'Tool:',
    ...quotedJson(JSON.stringify(tool.uri)),
    ...about,
    ...sourceLines(facts),
    ...spentLines(facts),
    ...trialLines(facts),
    'Policy: asks, by this rule, for this reason:',
    ...quotedJson(JSON.stringify(decided.rule)),
    ...quoted(decided.reason),
    ...requesterLines(facts.state),
    ...taskLines(facts.state),
    ...positionLines(facts),
    askingLine(facts),
    `Without an answer it is not called: the question expires at ${expiresAt}.`,
    `Call: ${decided.call.call_sha256}`,
  ].join('\n');
}
