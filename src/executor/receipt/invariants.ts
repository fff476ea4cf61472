/**
 * The invariants of a chain (test/contract/receipt-vectors/README.md, "Rules of story"). Each envelope is checked against the state of the
 * envelopes before it and then added. Pure.
 */
import { SIGNED_AHEAD_MS } from '../../wire/approver.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { type CallNode, type Intent, intentSchema, type WaitNode } from '../../wire/intent.ts';
import { type ReceiptKind, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { isReferenceInPlan, referencePositions, refText, withValues } from '../intent/reference.ts';
import { resultValues } from '../intent/result-values.ts';
import { signatureProblem } from './answer-signature.ts';
import type { BoundCall, PlanReference, ReceiptBodies, ReceiptEntry, ResolvedValue } from './bodies.ts';
import {
  type AnyChainState,
  apply,
  approverOf,
  callStateOf,
  EMPTY_STATE,
  type Gate,
  isEnd,
  type NodeRecord,
  recordOf,
} from './chain-state.ts';
import { areArgsOf, callKey, isSameIntent, type PlanOrder, planOrder } from './plan-order.ts';
import { readValues } from './receipt-text.ts';

/** The rules, by their names in test/contract/receipt-vectors/README.md. */
export type InvariantRule =
  | ('begin' | 'intent' | 'task' | 'compiled' | 'node' | 'plan' | 'order' | 'decision' | 'question' | 'answer')
  | 'reference'
  | ('approver' | 'consent' | 'once' | 'started' | 'deadline' | 'wait' | 'end' | 'outcome' | 'journal');

/** Thrown by a check and caught in {@link CheckedChain.add}. */
class InvariantViolation extends Error {
  readonly rule: InvariantRule;

  constructor(rule: InvariantRule, message: string) {
    super(message);
    this.rule = rule;
  }
}

function refuse(rule: InvariantRule, message: string): never {
  throw new InvariantViolation(rule, message);
}

type CheckContext = {
  /** The receipt's own intent id. */
  readonly intentId: string;
  readonly state: AnyChainState;
  /** Of the compiled plan. */
  readonly order: PlanOrder | undefined;
  /** The envelope's number. */
  readonly seq: number;
};

// Positions that depend only on the kind of an envelope: the first envelope, and envelopes after an end.

const AFTER_END: ReadonlySet<ReceiptKind> = new Set(['gate.refused', 'journal.broken']);
const AFTER_UNKNOWN: ReadonlySet<ReceiptKind> = new Set(['call.reconciled', 'call.read_back']);
/** Kinds that may follow journal.broken before the resulting end. */
const AFTER_BREAK: ReadonlySet<ReceiptKind> = new Set([
  'gate.refused',
  'journal.broken',
  'intent.failed',
  'intent.unknown',
]);

function checkPosition(kind: ReceiptKind, { seq, state: { mustEnd, ending, reconciledSinceEnd } }: CheckContext): void {
  if (seq === 1 && kind !== 'intent.accepted' && kind !== 'journal.broken')
    refuse('begin', `a receipt must begin with intent.accepted (got ${kind})`);
  if (seq > 1 && kind === 'intent.accepted') refuse('begin', 'intent.accepted must occur once, as the first envelope');
  if (mustEnd) {
    if (AFTER_BREAK.has(kind)) return;
    refuse('journal', `the intent ends after journal.broken; ${kind} cannot follow`);
  }
  if (ending === undefined || AFTER_END.has(kind)) return;
  if (ending.kind === 'intent.unknown' && (AFTER_UNKNOWN.has(kind) || (isEnd(kind) && reconciledSinceEnd))) return;
  refuse('end', `the intent had ended (${ending.kind}); ${kind} cannot follow`);
}

// The plan: its calls and their predecessors.

/** The record of a call; the plan must have the node. */
function callOf({ state, order }: CheckContext, nodeId: string): NodeRecord {
  // A call that is reconciled after journal.broken may have been planned and started in envelopes that do not count.
  if (!state.nodes.has(nodeId) && !state.broken && order?.leaves.get(nodeId)?.kind !== 'call')
    refuse('node', `the compiled plan has no call "${nodeId}"`);
  return recordOf(state, nodeId);
}

function isDone({ state, order }: CheckContext, nodeId: string): boolean {
  const record = recordOf(state, nodeId);
  if (order?.leaves.get(nodeId)?.kind === 'wait') return record.waited === true;
  return callStateOf(record) === 'succeeded';
}

/** The references of the compiled plan occur in the plan, once each, and refer to earlier calls. */
function checkReferences(references: readonly PlanReference[], { leaves, predecessors }: PlanOrder): void {
  const seen = new Set<string>();
  const positions = new Map<string, ReadonlyMap<string, string>>();
  const positionsOf = (node: CallNode) => {
    const known = positions.get(node.id) ?? referencePositions(node);
    positions.set(node.id, known);
    return known;
  };
  for (const reference of references) {
    const { node_id, place, from } = reference;
    const shown = `the reference at "${node_id}" ${place}`;
    const node = leaves.get(node_id);
    if (node?.kind !== 'call' || !isReferenceInPlan(positionsOf(node), reference))
      refuse('reference', `${shown} is not in the plan`);
    if (leaves.get(from)?.kind !== 'call' || !predecessors.get(node_id)?.includes(from))
      refuse('reference', `${shown} refers to "${from}", which is not a call that a sequence puts before it`);
    if (seen.size === seen.add(canonicalJson([node_id, place])).size) refuse('reference', `${shown} is listed twice`);
  }
}

/** The values of a call's references, resolved again from the recorded results. */
function valuesFor({ state }: CheckContext, nodeId: string): readonly ResolvedValue[] {
  const references = state.compiled?.references ?? [];
  const own = references.filter(({ node_id }) => node_id === nodeId);
  return own.map(({ place, from, pointer }) => {
    const { finished } = recordOf(state, from);
    const source = finished?.status === 'succeeded' ? finished.result_text : undefined;
    const ref = refText({ from, pointer });
    const found = resultValues(references, from, source).get(pointer)!;
    if ('missing' in found) refuse('reference', `"${nodeId}" has a value at ${place} for ${ref}, but ${found.missing}`);
    return { place, ref, json: found.json };
  });
}

function checkResolved(context: CheckContext, nodeId: string, resolved: readonly ResolvedValue[] = []): void {
  const values = valuesFor(context, nodeId);
  const isSame = values.every(({ place, ref, json }, index) => {
    const actual = resolved[index];
    return actual?.place === place && actual.ref === ref && actual.json === json;
  });
  if (!isSame || values.length !== resolved.length)
    refuse('reference', `the reference values of "${nodeId}" differ from those in the recorded results`);
}

function checkPlan(context: CheckContext, nodeId: string, { tool, args }: BoundCall): void {
  const { intentId, order } = context;
  const node = order?.leaves.get(nodeId) as CallNode;
  const values = valuesFor(context, nodeId);
  if (tool !== node.tool) refuse('plan', `the plan calls ${node.tool} at "${nodeId}" (got ${tool})`);
  const planned = withValues(node.args, values);
  if (!areArgsOf({ ...node, args: planned }, args, callKey(intentId, nodeId)))
    refuse('plan', `the arguments at "${nodeId}" differ from those of the plan`);
}

function checkOrder(context: CheckContext, nodeId: string, named: string): void {
  const missing = context.order?.predecessors.get(nodeId)?.find((id) => !isDone(context, id));
  if (missing !== undefined) refuse('order', `${named} started before its predecessor "${missing}" had succeeded`);
}

function isSubmitted(source: string, intent: Intent, intentId: string): boolean {
  const [read, ...more] = readValues(source);
  if (read === undefined || 'unreadable' in read || more.length > 0) return false;
  // Compare the parsed value, not the schema's output, which drops members named __proto__.
  const submitted = read.value as Intent;
  return intentSchema.safeParse(submitted).success && isSameIntent(submitted, intent, intentId);
}

// Consent: questions, answers, and whether a start was allowed.

/** The last question, unless a start has used its answer. */
const questionOf = ({ gate }: NodeRecord): Gate | undefined => (gate?.used ? undefined : gate);

function checkQuestion(record: NodeRecord, { node_id: nodeId, call_sha256 }: ReceiptBodies['gate.asked']): void {
  const { decided, isJudged } = record;
  if (decided?.effect !== 'ask' || !isJudged)
    refuse('question', `a question was asked at "${nodeId}", but the policy had not required one`);
  if (decided.call.call_sha256 !== call_sha256)
    refuse('question', `the question at "${nodeId}" is not about the call that the policy judged`);
}

function openQuestion(record: NodeRecord, nodeId: string, callSha256: string, what: string): Gate {
  const question = questionOf(record);
  if (!question) refuse('answer', `${what} at "${nodeId}", but no question had been asked`);
  if (question.answered) refuse('answer', `${what} at "${nodeId}", but the question was already answered`);
  if (question.expired) refuse('answer', `${what} at "${nodeId}", but the question had expired`);
  if (question.asked.call_sha256 !== callSha256)
    refuse('answer', `${what} at "${nodeId}" is not about the call of the question`);
  return question;
}

/**
 * Throws unless a key has signed this answer to this question. Under the rules from before signed answers the signature
 * may be absent, but not wrong.
 */
function checkSignature(question: Gate, body: ReceiptBodies['gate.answered'], intentId: string, rules: number): void {
  const { node_id: nodeId, at, displayed_sha256, approver, expires_at, signature, passkey } = body;
  const signed = [displayed_sha256, approver, expires_at, signature ?? passkey];
  if (rules < SIGNED_APPROVALS && signed.every((member) => member === undefined)) return;
  const wrong = (what: string): never => refuse('approver', `the answer at "${nodeId}" ${what}`);
  if (displayed_sha256 === undefined || approver === undefined || expires_at === undefined)
    throw wrong('must have approver, displayed_sha256 and expires_at');
  if (displayed_sha256 !== question.asked.displayed_sha256) wrong('is not about the question that was shown');
  const [given, until] = [parseInstant(at)!, parseInstant(expires_at)!];
  if (given >= until) wrong(`was accepted at ${at}, but it expired at ${expires_at}`);
  if (until > given + SIGNED_AHEAD_MS) wrong(`expires at ${expires_at}, more than 24 hours after ${at}`);
  const statement = { ...body, displayed_sha256, expires_at, intent_id: intentId };
  const problem = signatureProblem(statement, { approver, signature, passkey });
  if (problem !== undefined) wrong(problem);
}

function checkAnswer(context: CheckContext, body: ReceiptBodies['gate.answered']): void {
  const { node_id: nodeId, by, at, approved, call_sha256 } = body;
  const question = openQuestion(callOf(context, nodeId), nodeId, call_sha256, 'an answer');
  const { accepted } = context.state;
  const user = accepted?.principal.user;
  if (by !== user) refuse('answer', `the answer at "${nodeId}" is by ${by}, but the intent belongs to ${user}`);
  const { expires_at } = question.asked;
  if (approved && parseInstant(at)! > parseInstant(expires_at)!)
    refuse('answer', `the approval at "${nodeId}" came after ${expires_at}, when the question expired`);
  checkSignature(question, body, context.intentId, accepted?.rules ?? 1);
}

/** Throws when a start lacks the consent that it needs. */
function checkConsent(record: NodeRecord, nodeId: string, call: BoundCall, surface: 'natural' | 'escalate'): void {
  const { decided, isJudged } = record;
  if (!decided || !isJudged) refuse('decision', `"${nodeId}" was started without a decision of the policy`);
  if (decided.call.call_sha256 !== call.call_sha256 || decided.call.definition_sha256 !== call.definition_sha256)
    refuse('decision', `the started call at "${nodeId}" is not the one that the policy judged`);
  if (decided.surface !== surface)
    refuse('decision', `"${nodeId}" was judged as ${decided.surface} and started as ${surface}`);
  if (decided.effect === 'deny') refuse('decision', `"${nodeId}" was started although the policy denied it`);
  if (decided.effect === 'allow') return;
  const question = questionOf(record);
  if (!question?.answered?.approved || question.expired)
    refuse('consent', `"${nodeId}" was started without an approval`);
  if (question.asked.call_sha256 !== call.call_sha256 || question.definitionSha256 !== call.definition_sha256)
    refuse('consent', `the started call at "${nodeId}" is not the one that was approved`);
}

// Calls and the end: their possible outcomes.

function checkStart(
  context: CheckContext,
  { node_id: nodeId, call, surface, at, idempotency_key }: ReceiptBodies['call.started'],
): void {
  const record = callOf(context, nodeId);
  checkPlan(context, nodeId, call);
  checkOrder(context, nodeId, `"${nodeId}"`);
  const deadline = context.state.compiled?.intent.deadline;
  if (deadline !== undefined && parseInstant(at)! > parseInstant(deadline)!)
    refuse('deadline', `"${nodeId}" started at ${at}, after the intent's deadline`);
  const callState = callStateOf(record);
  const isOnce = surface === 'escalate' || record.escalated;
  if (callState === 'succeeded' || (isOnce && callState !== undefined && callState !== 'not_run'))
    refuse('once', `"${nodeId}" was started again after the state ${callState}`);
  if (idempotency_key !== undefined && idempotency_key !== callKey(context.intentId, nodeId))
    refuse('plan', `the idempotency key at "${nodeId}" is not the one that the executor gives it`);
  checkConsent(record, nodeId, call, surface);
}

/** The call was started and its outcome is not known. */
const isUnsettled = (record: NodeRecord) => ['started', 'unknown'].includes(callStateOf(record) ?? '');

/** Throws when a call was not started, or its recorded state does not fit. */
function checkStarted(
  context: CheckContext,
  nodeId: string,
  kind: string,
  fits: (record: NodeRecord) => boolean,
): void {
  const record = callOf(context, nodeId);
  // Start and outcome may be in envelopes that do not count.
  if (context.state.broken) return;
  const callState = callStateOf(record);
  if (callState === undefined) refuse('started', `${kind} at "${nodeId}", which was never started`);
  if (!fits(record)) refuse('started', `${kind} at "${nodeId}", which already has the state ${callState}`);
}

/**
 * Throws when an end claims more than the envelopes prove.
 *
 * @param nodes of `intent.unknown`: the calls with an unknown outcome
 */
function checkEnd(context: CheckContext, kind: ReceiptKind, nodes: readonly string[] = []): void {
  const { state, order } = context;
  if (kind === 'intent.completed') {
    const missing = order ? [...order.leaves.keys()].find((id) => !isDone(context, id)) : 'plan';
    if (missing !== undefined) refuse('outcome', `intent.completed claims completion, but "${missing}" was not done`);
    return;
  }
  const open = [...state.nodes].filter(([, record]) => isUnsettled(record));
  if (kind === 'intent.unknown') {
    if (open.length === 0 && !state.broken)
      refuse('outcome', 'intent.unknown claims an unknown outcome, but the outcome of every call is known');
    const missing = open.find(([nodeId, { escalated }]) => escalated && !nodes.includes(nodeId));
    if (missing) refuse('outcome', `"${missing[0]}" has no known outcome, and intent.unknown does not name it`);
    return;
  }
  const hidden = open.find(([, { escalated }]) => escalated);
  if (hidden) refuse('outcome', `${kind} does not mention that the outcome of "${hidden[0]}" is unknown`);
}

type Checks = { readonly [Kind in ReceiptKind]: (context: CheckContext, body: ReceiptBodies[Kind]) => void };

const isCompiledAlready = ({ compiled, clarify }: AnyChainState) => compiled !== undefined || clarify !== undefined;

const CHECKS: Checks = {
  'intent.accepted': ({ intentId }, { intent_id, prose, intent }) => {
    if (intent_id !== intentId)
      refuse('intent', `the receipt is about the intent ${intentId}, but its first envelope is about ${intent_id}`);
    if ((prose === undefined) === (intent === undefined))
      refuse('task', 'an intent is submitted as prose or as JSON: exactly one of the two');
  },
  'intent.compiled': ({ state, intentId }, { intent, references = [] }) => {
    if (isCompiledAlready(state))
      refuse('compiled', 'an intent must be compiled at most once, and not after intent.clarify');
    const order = planOrder(intent.plan);
    const { duplicateId } = order;
    if (duplicateId !== undefined) refuse('compiled', `two nodes of the plan have the id "${duplicateId}"`);
    const source = state.accepted?.intent;
    if (source !== undefined && !isSubmitted(source, intent, intentId))
      refuse('compiled', 'the compiled intent is not the one that was submitted');
    checkReferences(references, order);
  },
  'intent.clarify': ({ state }) => {
    if (isCompiledAlready(state))
      refuse('compiled', 'intent.clarify must occur at most once, and not after intent.compiled');
  },
  'intent.parked': () => {},
  'call.decided': (context, { node_id: nodeId, call, resolved }) => {
    callOf(context, nodeId);
    checkResolved(context, nodeId, resolved);
    checkPlan(context, nodeId, call);
  },
  'call.tried': (context, { node_id }) => void callOf(context, node_id),
  'gate.asked': (context, body) => checkQuestion(callOf(context, body.node_id), body),
  'gate.answered': checkAnswer,
  'gate.refused': () => {},
  'gate.expired': (context, { node_id: nodeId, call_sha256 }) =>
    void openQuestion(callOf(context, nodeId), nodeId, call_sha256, 'an expiry'),
  'call.started': checkStart,
  'call.finished': (context, { node_id }) =>
    checkStarted(context, node_id, 'call.finished', (record) => callStateOf(record) === 'started'),
  'call.reconciled': (context, { node_id }) => checkStarted(context, node_id, 'call.reconciled', isUnsettled),
  'call.read_back': (context, { node_id }) => checkStarted(context, node_id, 'call.read_back', () => true),
  'wait.started': (context, { node_id: nodeId, until }) => {
    if (context.order?.leaves.get(nodeId)?.kind !== 'wait') refuse('node', `the compiled plan has no wait "${nodeId}"`);
    if (recordOf(context.state, nodeId).waitUntil !== undefined)
      refuse('wait', `the wait "${nodeId}" started a second time`);
    checkOrder(context, nodeId, `the wait "${nodeId}"`);
    const planned = (context.order.leaves.get(nodeId) as WaitNode).until;
    if (planned !== undefined && parseInstant(planned) !== parseInstant(until))
      refuse('wait', `the plan waits at "${nodeId}" until ${planned} (got ${until})`);
  },
  'wait.finished': ({ state }, { node_id: nodeId }) => {
    const { waitUntil, waited } = recordOf(state, nodeId);
    if (waitUntil === undefined || waited) refuse('wait', `the wait "${nodeId}" ended, but it was not in progress`);
  },
  'journal.broken': ({ seq }, { good_seq }) => {
    if (good_seq !== seq - 1)
      refuse('journal', `journal.broken claims ${good_seq} valid envelopes, but ${seq - 1} precede it`);
  },
  'intent.completed': (context) => checkEnd(context, 'intent.completed'),
  'intent.failed': (context) => checkEnd(context, 'intent.failed'),
  'intent.cancelled': (context) => checkEnd(context, 'intent.cancelled'),
  'intent.unknown': (context, { nodes }) => checkEnd(context, 'intent.unknown', nodes),
};

/** Adds a chain's envelopes one after the other while they are valid. */
export class CheckedChain {
  readonly #intentId: string;
  #state: AnyChainState = EMPTY_STATE;
  #order: PlanOrder | undefined;

  /** @param intentId the receipt's own intent id */
  constructor(intentId: string) {
    this.#intentId = intentId;
  }

  /** The state after the valid envelopes. */
  get state(): AnyChainState {
    return this.#state;
  }

  /**
   * @param seq the envelope's number
   * @returns the invariant that it violates, in which case it is not added; `undefined` when it fits
   */
  add(entry: ReceiptEntry, seq: number): { rule: InvariantRule; message: string } | undefined {
    const context = { intentId: this.#intentId, state: this.#state, order: this.#order, seq };
    try {
      checkPosition(entry.kind, context);
      const check = CHECKS[entry.kind] as (context: CheckContext, body: unknown) => void;
      check(context, entry.body);
    } catch (thrown) {
      if (thrown instanceof InvariantViolation) return { rule: thrown.rule, message: thrown.message };
      throw thrown;
    }
    this.#state = apply(this.#state, entry);
    if (entry.kind === 'intent.compiled') this.#order = planOrder(entry.body.intent.plan);
    return undefined;
  }

  /** The approver of the last start of a call; `undefined` when no key approved it. */
  startApprover(nodeId: string): string | undefined {
    return approverOf(recordOf(this.#state, nodeId));
  }
}
