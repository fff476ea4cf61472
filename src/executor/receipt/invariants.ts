/**
 * What must hold of a chain (docs/receipts.md, "What must hold"): each envelope is held against the state that the ones
 * before it come to, and only then taken in. Pure.
 */
import { SIGNED_AHEAD_MS } from '../../wire/approver.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { type CallNode, type Intent, intentSchema, type WaitNode } from '../../wire/intent.ts';
import { type ReceiptKind, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import {
  isReferenceInPlan,
  type PlanReference,
  type ResolvedValue,
  referencePositions,
  refText,
  withValues,
} from '../intent/reference.ts';
import { resultValues } from '../intent/result-values.ts';
import { signatureProblem } from './answer-signature.ts';
import type { BoundCall, ReceiptBodies, ReceiptEntry } from './bodies.ts';
import {
  type AnyChainState,
  apply,
  approverOf,
  EMPTY_STATE,
  type Gate,
  isEnd,
  type NodeRecord,
  recordOf,
  standingOf,
} from './chain-state.ts';
import { areArgsOf, callKey, isSameIntent, type PlanOrder, planOrder } from './plan-order.ts';
import { readValues } from './receipt-text.ts';

/** The rules, by their names in docs/receipts.md. */
export type InvariantRule =
  | ('begin' | 'intent' | 'task' | 'compiled' | 'node' | 'plan' | 'order' | 'decision' | 'question' | 'answer')
  | 'reference'
  | ('approver' | 'consent' | 'once' | 'started' | 'deadline' | 'wait' | 'end' | 'outcome' | 'journal');

/** Thrown by a check and caught where the envelope is taken in. */
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

/** What an envelope is held against. */
type CheckContext = {
  /** What the receipt says that it is about. */
  readonly intentId: string;
  readonly state: AnyChainState;
  /** Of the compiled plan. */
  readonly order: PlanOrder | undefined;
  /** The envelope's number. */
  readonly seq: number;
};

// Where an envelope may stand by its kind alone: how a chain begins, and what may come after an end.

const AFTER_END: ReadonlySet<ReceiptKind> = new Set(['gate.refused', 'journal.broken']);
const AFTER_UNKNOWN: ReadonlySet<ReceiptKind> = new Set(['call.reconciled', 'call.read_back']);
/** What may come between a broken journal and the end that follows from it. */
const AFTER_BREAK: ReadonlySet<ReceiptKind> = new Set([
  'gate.refused',
  'journal.broken',
  'intent.failed',
  'intent.unknown',
]);

function checkPosition(kind: ReceiptKind, { seq, state: { mustEnd, ending, reconciledSinceEnd } }: CheckContext): void {
  if (seq === 1 && kind !== 'intent.accepted' && kind !== 'journal.broken')
    refuse('begin', `a receipt begins with intent.accepted, this one with ${kind}`);
  if (seq > 1 && kind === 'intent.accepted')
    refuse('begin', 'intent.accepted stands here a second time, or not at the beginning');
  if (mustEnd) {
    if (AFTER_BREAK.has(kind)) return;
    refuse('journal', `after journal.broken the intent ends; ${kind} cannot follow`);
  }
  if (ending === undefined || AFTER_END.has(kind)) return;
  if (ending.kind === 'intent.unknown' && (AFTER_UNKNOWN.has(kind) || (isEnd(kind) && reconciledSinceEnd))) return;
  refuse('end', `the intent had come to its end (${ending.kind}); ${kind} cannot follow`);
}

// The plan: which calls there are, and what must be done before each.

/** The record of a call; the plan must have the node. */
function callOf({ state, order }: CheckContext, nodeId: string): NodeRecord {
  // What is reconciled after a broken journal may have been planned and begun in envelopes that do not count.
  if (!state.nodes.has(nodeId) && !state.broken && order?.leaves.get(nodeId)?.kind !== 'call')
    refuse('node', `the compiled plan has no call "${nodeId}"`);
  return recordOf(state, nodeId);
}

function isDone({ state, order }: CheckContext, nodeId: string): boolean {
  const record = recordOf(state, nodeId);
  if (order?.leaves.get(nodeId)?.kind === 'wait') return record.waited === true;
  return standingOf(record) === 'succeeded';
}

/** The references of the compiled plan, where each may stand, and only there. */
function checkReferences(references: readonly PlanReference[], { leaves, before }: PlanOrder): void {
  const seen = new Set<string>();
  const places = new Map<string, ReadonlyMap<string, string>>();
  const placesOf = (node: CallNode) => {
    const before = places.get(node.id) ?? referencePositions(node);
    places.set(node.id, before);
    return before;
  };
  for (const reference of references) {
    const { node_id, place, from } = reference;
    const shown = `the reference at "${node_id}" ${place}`;
    const node = leaves.get(node_id);
    if (node?.kind !== 'call' || !isReferenceInPlan(placesOf(node), reference))
      refuse('reference', `${shown} is not in the plan`);
    if (leaves.get(from)?.kind !== 'call' || !before.get(node_id)?.includes(from))
      refuse('reference', `${shown} is to "${from}", which is no call that a sequence puts before`);
    if (seen.size === seen.add(canonicalJson([node_id, place])).size) refuse('reference', `${shown} is there twice`);
  }
}

/** What stands in the place of the references of a call, taken again from the results on record. */
function valuesFor({ state }: CheckContext, nodeId: string): readonly ResolvedValue[] {
  const references = state.compiled?.references ?? [];
  const own = references.filter(({ node_id }) => node_id === nodeId);
  return own.map(({ place, from, pointer }) => {
    const { finished } = recordOf(state, from);
    const source = finished?.status === 'succeeded' ? finished.result_text : undefined;
    const ref = refText({ from, pointer });
    const found = resultValues(references, from, source).get(pointer)!;
    if ('missing' in found) refuse('reference', `"${nodeId}" has at ${place} what ${ref} finds, and ${found.missing}`);
    return { place, ref, json: found.json };
  });
}

function checkResolved(before: CheckContext, nodeId: string, resolved: readonly ResolvedValue[] = []): void {
  const values = valuesFor(before, nodeId);
  const isSame = values.every(({ place, ref, json }, index) => {
    const told = resolved[index];
    return told?.place === place && told.ref === ref && told.json === json;
  });
  if (!isSame || values.length !== resolved.length)
    refuse('reference', `what "${nodeId}" says that its references found is not what they find in the results`);
}

function checkPlan(before: CheckContext, nodeId: string, { tool, args }: BoundCall): void {
  const { intentId, order } = before;
  const node = order?.leaves.get(nodeId) as CallNode;
  const values = valuesFor(before, nodeId);
  if (tool !== node.tool) refuse('plan', `the plan calls ${node.tool} at "${nodeId}", here it is ${tool}`);
  const planned = withValues(node.args, values);
  if (!areArgsOf({ ...node, args: planned }, args, callKey(intentId, nodeId)))
    refuse('plan', `the arguments at "${nodeId}" are not those of the plan`);
}

function checkOrder(before: CheckContext, nodeId: string, named: string): void {
  const missing = before.order?.before.get(nodeId)?.find((id) => !isDone(before, id));
  if (missing !== undefined)
    refuse('order', `${named} began before "${missing}", which the plan puts before it, was done`);
}

function isSubmitted(source: string, intent: Intent, intentId: string): boolean {
  const [read, ...more] = readValues(source);
  if (read === undefined || 'unreadable' in read || more.length > 0) return false;
  // What was read is compared, not what the schema makes of it: that leaves out members of the name __proto__.
  const submitted = read.value as Intent;
  return intentSchema.safeParse(submitted).success && isSameIntent(submitted, intent, intentId);
}

// Consent: what a person is asked, what counts as an answer, and whether a start had been allowed.

/** The last question, unless a start has used up what was answered. */
const questionOf = ({ gate }: NodeRecord): Gate | undefined => (gate?.used ? undefined : gate);

function checkQuestion(record: NodeRecord, { node_id: nodeId, call_sha256 }: ReceiptBodies['gate.asked']): void {
  const { decided, isJudged } = record;
  if (decided?.effect !== 'ask' || !isJudged)
    refuse('question', `a person was asked at "${nodeId}", where the policy did not say so`);
  if (decided.call.call_sha256 !== call_sha256)
    refuse('question', `the question at "${nodeId}" is about another call than the policy judged`);
}

function openQuestion(record: NodeRecord, nodeId: string, callSha256: string, what: string): Gate {
  const question = questionOf(record);
  if (!question) refuse('answer', `${what} at "${nodeId}", where nothing had been asked`);
  if (question.answered) refuse('answer', `${what} at "${nodeId}", where an answer counted already`);
  if (question.expired) refuse('answer', `${what} at "${nodeId}", where the question had expired`);
  if (question.asked.call_sha256 !== callSha256)
    refuse('answer', `${what} at "${nodeId}" is about another call than the question`);
  return question;
}

/**
 * Throws unless a key has signed this answer to this question. By the rules of before answers were signed that may be
 * left out, but not done wrongly.
 */
function checkSignature(question: Gate, body: ReceiptBodies['gate.answered'], intentId: string, rules: number): void {
  const { node_id: nodeId, at, displayed_sha256, approver, expires_at, signature, passkey } = body;
  const signed = [displayed_sha256, approver, expires_at, signature ?? passkey];
  if (rules < SIGNED_APPROVALS && signed.every((member) => member === undefined)) return;
  const wrong = (what: string): never => refuse('approver', `the answer at "${nodeId}" ${what}`);
  if (displayed_sha256 === undefined || approver === undefined || expires_at === undefined)
    throw wrong('does not say whose key signed it, or what and until when');
  if (displayed_sha256 !== question.asked.displayed_sha256)
    wrong('is about another question than the one that was shown');
  const [given, until] = [parseInstant(at)!, parseInstant(expires_at)!];
  if (given >= until) wrong(`was taken at ${at}; it counted only before ${expires_at}`);
  if (until > given + SIGNED_AHEAD_MS) wrong(`was to count until ${expires_at}, more than 24 hours after ${at}`);
  const statement = { ...body, displayed_sha256, expires_at, intent_id: intentId };
  const problem = signatureProblem(statement, { approver, signature, passkey });
  if (problem !== undefined) wrong(problem);
}

function checkAnswer(before: CheckContext, body: ReceiptBodies['gate.answered']): void {
  const { node_id: nodeId, by, at, approved, call_sha256 } = body;
  const question = openQuestion(callOf(before, nodeId), nodeId, call_sha256, 'an answer');
  const { accepted } = before.state;
  const user = accepted?.principal.user;
  if (by !== user) refuse('answer', `the answer at "${nodeId}" is by ${by}; the intent is ${user}'s`);
  const { expires_at } = question.asked;
  if (approved && parseInstant(at)! > parseInstant(expires_at)!)
    refuse('answer', `the approval at "${nodeId}" came after ${expires_at}, when the question expired`);
  checkSignature(question, body, before.intentId, accepted?.rules ?? 1);
}

/** Throws where a start has not the consent that it needs. */
function checkConsent(record: NodeRecord, nodeId: string, call: BoundCall, surface: 'natural' | 'escalate'): void {
  const { decided, isJudged } = record;
  if (!decided || !isJudged) refuse('decision', `"${nodeId}" was started and the policy had not been asked about it`);
  if (decided.call.call_sha256 !== call.call_sha256 || decided.call.definition_sha256 !== call.definition_sha256)
    refuse('decision', `what was started at "${nodeId}" is not the call that the policy judged`);
  if (decided.surface !== surface)
    refuse('decision', `"${nodeId}" was judged as ${decided.surface} and started as ${surface}`);
  if (decided.effect === 'deny') refuse('decision', `"${nodeId}" was started although the policy denied it`);
  if (decided.effect === 'allow') return;
  const question = questionOf(record);
  if (!question?.answered?.approved || question.expired)
    refuse('consent', `"${nodeId}" was started although nobody had approved it`);
  if (question.asked.call_sha256 !== call.call_sha256 || question.definitionSha256 !== call.definition_sha256)
    refuse('consent', `what was started at "${nodeId}" is not what was approved`);
}

// Calls and the end: what can have come of them.

function checkStart(
  before: CheckContext,
  { node_id: nodeId, call, surface, at, idempotency_key }: ReceiptBodies['call.started'],
): void {
  const record = callOf(before, nodeId);
  checkPlan(before, nodeId, call);
  checkOrder(before, nodeId, `"${nodeId}"`);
  const deadline = before.state.compiled?.intent.deadline;
  if (deadline !== undefined && parseInstant(at)! > parseInstant(deadline)!)
    refuse('deadline', `"${nodeId}" began at ${at}, after the intent's deadline`);
  const standing = standingOf(record);
  const isOnce = surface === 'escalate' || record.escalated;
  if (standing === 'succeeded' || (isOnce && standing !== undefined && standing !== 'not_run'))
    refuse('once', `"${nodeId}" was started again; before it had ${standing}`);
  if (idempotency_key !== undefined && idempotency_key !== callKey(before.intentId, nodeId))
    refuse('plan', `the idempotency key at "${nodeId}" is not the one that the executor gives it`);
  checkConsent(record, nodeId, call, surface);
}

/** Nobody can say yet what became of a call that was started. */
const isUnsettled = (record: NodeRecord) => ['started', 'unknown'].includes(standingOf(record) ?? '');

/** Throws where a call was not started, or where what is known of it does not fit. */
function checkStarted(before: CheckContext, nodeId: string, kind: string, fits: (record: NodeRecord) => boolean): void {
  const record = callOf(before, nodeId);
  // The start may stand among what does not count, and so may what came of it.
  if (before.state.broken) return;
  const standing = standingOf(record);
  if (standing === undefined) refuse('started', `${kind} at "${nodeId}", which was never started`);
  if (!fits(record)) refuse('started', `${kind} at "${nodeId}", which was known to have ${standing} already`);
}

/**
 * Throws where an end says more than can be known.
 *
 * @param nodes of `intent.unknown`: the calls of which nobody can say what became of them
 */
function checkEnd(before: CheckContext, kind: ReceiptKind, nodes: readonly string[] = []): void {
  const { state, order } = before;
  if (kind === 'intent.completed') {
    const missing = order ? [...order.leaves.keys()].find((id) => !isDone(before, id)) : 'plan';
    if (missing !== undefined) refuse('outcome', `the intent is said to be completed, but "${missing}" was not done`);
    return;
  }
  const open = [...state.nodes].filter(([, record]) => isUnsettled(record));
  if (kind === 'intent.unknown') {
    if (open.length === 0 && !state.broken)
      refuse('outcome', 'the outcome is said to be unknown, but that of every call is known');
    const unnamed = open.find(([nodeId, { escalated }]) => escalated && !nodes.includes(nodeId));
    if (unnamed) refuse('outcome', `"${unnamed[0]}" has no known outcome, and intent.unknown does not name it`);
    return;
  }
  const lost = open.find(([, { escalated }]) => escalated);
  if (lost) refuse('outcome', `${kind} leaves out that nobody knows what became of "${lost[0]}"`);
}

type Checks = { readonly [Kind in ReceiptKind]: (before: CheckContext, body: ReceiptBodies[Kind]) => void };

const isCompiledAlready = ({ compiled, clarify }: AnyChainState) => compiled !== undefined || clarify !== undefined;

const CHECKS: Checks = {
  'intent.accepted': ({ intentId }, { intent_id, prose, intent }) => {
    if (intent_id !== intentId)
      refuse('intent', `the receipt is about ${intentId}, its first envelope about ${intent_id}`);
    if ((prose === undefined) === (intent === undefined))
      refuse('task', 'an intent is submitted as prose or as JSON: exactly one of the two');
  },
  'intent.compiled': ({ state, intentId }, { intent, references = [] }) => {
    if (isCompiledAlready(state))
      refuse('compiled', 'an intent is compiled once, and not after a question of clarification');
    const order = planOrder(intent.plan);
    const { twice } = order;
    if (twice !== undefined) refuse('compiled', `two nodes of the plan have the id "${twice}"`);
    const source = state.accepted?.intent;
    if (source !== undefined && !isSubmitted(source, intent, intentId))
      refuse('compiled', 'the compiled intent is not the one that was submitted');
    checkReferences(references, order);
  },
  'intent.clarify': ({ state }) => {
    if (isCompiledAlready(state))
      refuse('compiled', 'a question of clarification comes once, and not after the intent was compiled');
  },
  'intent.parked': () => {},
  'call.decided': (before, { node_id: nodeId, call, resolved }) => {
    callOf(before, nodeId);
    checkResolved(before, nodeId, resolved);
    checkPlan(before, nodeId, call);
  },
  'call.tried': (before, { node_id }) => void callOf(before, node_id),
  'gate.asked': (before, body) => checkQuestion(callOf(before, body.node_id), body),
  'gate.answered': checkAnswer,
  'gate.refused': () => {},
  'gate.expired': (before, { node_id: nodeId, call_sha256 }) =>
    void openQuestion(callOf(before, nodeId), nodeId, call_sha256, 'an expiry'),
  'call.started': checkStart,
  'call.finished': (before, { node_id }) =>
    checkStarted(before, node_id, 'call.finished', (record) => standingOf(record) === 'started'),
  'call.reconciled': (before, { node_id }) => checkStarted(before, node_id, 'call.reconciled', isUnsettled),
  'call.read_back': (before, { node_id }) => checkStarted(before, node_id, 'call.read_back', () => true),
  'wait.started': (before, { node_id: nodeId, until }) => {
    if (before.order?.leaves.get(nodeId)?.kind !== 'wait') refuse('node', `the compiled plan has no wait "${nodeId}"`);
    if (recordOf(before.state, nodeId).waitUntil !== undefined)
      refuse('wait', `the wait "${nodeId}" began a second time`);
    checkOrder(before, nodeId, `the wait "${nodeId}"`);
    const planned = (before.order.leaves.get(nodeId) as WaitNode).until;
    if (planned !== undefined && parseInstant(planned) !== parseInstant(until))
      refuse('wait', `the plan waits at "${nodeId}" until ${planned}, here it is ${until}`);
  },
  'wait.finished': ({ state }, { node_id: nodeId }) => {
    const { waitUntil, waited } = recordOf(state, nodeId);
    if (waitUntil === undefined || waited) refuse('wait', `the wait "${nodeId}" ended, but was not under way`);
  },
  'journal.broken': ({ seq }, { good_seq }) => {
    if (good_seq !== seq - 1)
      refuse('journal', `journal.broken speaks of ${good_seq} good envelopes; ${seq - 1} stand before it`);
  },
  'intent.completed': (before) => checkEnd(before, 'intent.completed'),
  'intent.failed': (before) => checkEnd(before, 'intent.failed'),
  'intent.cancelled': (before) => checkEnd(before, 'intent.cancelled'),
  'intent.unknown': (before, { nodes }) => checkEnd(before, 'intent.unknown', nodes),
};

/** Takes in a chain's envelopes one after the other, as long as they hold. */
export class CheckedChain {
  readonly #intentId: string;
  #state: AnyChainState = EMPTY_STATE;
  #order: PlanOrder | undefined;

  /** @param intentId what the receipt says that it is about */
  constructor(intentId: string) {
    this.#intentId = intentId;
  }

  /** What the envelopes come to that hold. */
  get state(): AnyChainState {
    return this.#state;
  }

  /**
   * @param seq the envelope's number
   * @returns the invariant that it violates, and then it is not taken in; `undefined` when it fits what came before
   */
  add(entry: ReceiptEntry, seq: number): { rule: InvariantRule; message: string } | undefined {
    const before = { intentId: this.#intentId, state: this.#state, order: this.#order, seq };
    try {
      checkPosition(entry.kind, before);
      const check = CHECKS[entry.kind] as (before: CheckContext, body: unknown) => void;
      check(before, entry.body);
    } catch (thrown) {
      if (thrown instanceof InvariantViolation) return { rule: thrown.rule, message: thrown.message };
      throw thrown;
    }
    this.#state = apply(this.#state, entry);
    if (entry.kind === 'intent.compiled') this.#order = planOrder(entry.body.intent.plan);
    return undefined;
  }

  /**
   * The approver whose answer the last start of a call rests on; `undefined` for one that nobody's key has approved.
   */
  startApprover(nodeId: string): string | undefined {
    return approverOf(recordOf(this.#state, nodeId));
  }
}
