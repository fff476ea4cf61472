/**
 * What a chain tells, held against what can have happened (docs/receipts.md, "What must hold"): the pure fold that a verifier
 * makes over envelopes whose hashes and signatures hold.
 */
import { parseInstant } from '../../wire/instant.ts';
import { type CallNode, type Intent, intentSchema } from '../../wire/intent.ts';
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import type { BoundCall, ReceiptBodies, ReceiptEntry } from './bodies.ts';
import { Contradiction, holdToConsent } from './consent.ts';
import { areArgsOf, callKey, isSameIntent, type PlanOrder, planOrder } from './plan-order.ts';
import type { CallState, CallStory, Ending, Question, Story, StoryRule } from './story.ts';

/** What still may come after an end. */
const AFTER_END: ReadonlySet<ReceiptKind> = new Set(['gate.refused', 'journal.broken']);
const AFTER_UNKNOWN: ReadonlySet<ReceiptKind> = new Set(['call.reconciled', 'call.read_back']);
const ENDINGS: ReadonlySet<ReceiptKind> = new Set([
  'intent.completed',
  'intent.failed',
  'intent.cancelled',
  'intent.unknown',
]);
/** What may come between a broken journal and the end that follows from it. */
const AFTER_BREAK: ReadonlySet<ReceiptKind> = new Set([
  'gate.refused',
  'journal.broken',
  'intent.failed',
  'intent.unknown',
]);

const isOpen = ({ status }: CallStory) => status === 'started' || status === 'unknown';

type Told<Kind extends ReceiptKind> = { body: ReceiptBodies[Kind]; seq: number };
type Teller = { readonly [Kind in ReceiptKind]: (told: Told<Kind>) => void };

/** Takes in a chain's envelopes one after the other. */
export class StoryReader {
  readonly #intentId: string;
  readonly #calls = new Map<string, CallState>();
  readonly #waits = new Map<string, 'started' | 'finished'>();
  #accepted: ReceiptBodies['intent.accepted'] | undefined;
  #compiled: ReceiptBodies['intent.compiled'] | undefined;
  #clarify: string | undefined;
  #order: PlanOrder | undefined;
  #deadline: number | undefined;
  #refused = 0;
  #broken = false;
  /** A broken journal waits for the end that follows from it. */
  #mustEnd = false;
  /** Something was reconciled since the last end. */
  #reconciled = false;
  #ending: Ending | undefined;
  #lastKind: ReceiptKind | undefined;

  /** @param intentId what the receipt says that it is about */
  constructor(intentId: string) {
    this.#intentId = intentId;
  }

  /**
   * @param seq the envelope's number
   * @returns what cannot have happened; `undefined` when it fits what came before
   */
  take(entry: ReceiptEntry, seq: number): { rule: StoryRule; message: string } | undefined {
    try {
      this.#fitsHere(entry.kind, seq);
      const tell = this.#tellers[entry.kind] as (told: { body: unknown; seq: number }) => void;
      tell({ body: entry.body, seq });
    } catch (thrown) {
      if (thrown instanceof Contradiction) return { rule: thrown.rule, message: thrown.message };
      throw thrown;
    }
    this.#lastKind = entry.kind;
    return undefined;
  }

  story(): Story {
    return {
      accepted: this.#accepted,
      compiled: this.#compiled,
      clarify: this.#clarify,
      calls: [...this.#calls.values()],
      refusedAnswers: this.#refused,
      broken: this.#broken,
      ending: this.#mustEnd ? undefined : this.#ending,
      lastKind: this.#lastKind,
    };
  }

  #fitsHere(kind: ReceiptKind, seq: number): void {
    if (seq === 1 && kind !== 'intent.accepted' && kind !== 'journal.broken')
      throw new Contradiction('begin', `a receipt begins with intent.accepted, this one with ${kind}`);
    if (seq > 1 && kind === 'intent.accepted')
      throw new Contradiction('begin', 'intent.accepted stands here a second time, or not at the beginning');
    if (this.#mustEnd) {
      if (AFTER_BREAK.has(kind)) return;
      throw new Contradiction('journal', `after journal.broken the intent ends; ${kind} cannot follow`);
    }
    const ending = this.#ending?.kind;
    if (ending === undefined || AFTER_END.has(kind)) return;
    if (ending === 'intent.unknown' && (AFTER_UNKNOWN.has(kind) || (ENDINGS.has(kind) && this.#reconciled))) return;
    throw new Contradiction('end', `the intent had come to its end (${ending}); ${kind} cannot follow`);
  }

  /** The call's state; the plan must have the node. */
  #callOf(nodeId: string): CallState {
    const known = this.#calls.get(nodeId);
    if (known) return known;
    // What is reconciled after a broken journal may have been planned and begun in envelopes that do not count.
    if (!this.#broken && this.#order?.leaves.get(nodeId)?.kind !== 'call')
      throw new Contradiction('node', `the compiled plan has no call "${nodeId}"`);
    const made: CallState = {
      nodeId,
      call: undefined,
      surface: undefined,
      decision: undefined,
      answer: undefined,
      expired: false,
      startedAt: undefined,
      status: undefined,
      reason: undefined,
      references: undefined,
      question: undefined,
      fresh: false,
    };
    this.#calls.set(nodeId, made);
    return made;
  }

  #holdToPlan(nodeId: string, { tool, args }: BoundCall): void {
    const node = this.#order?.leaves.get(nodeId) as CallNode;
    if (tool !== node.tool)
      throw new Contradiction('plan', `the plan calls ${node.tool} at "${nodeId}", here it is ${tool}`);
    if (!areArgsOf(node, args, callKey(this.#intentId, nodeId)))
      throw new Contradiction('plan', `the arguments at "${nodeId}" are not those of the plan`);
  }

  #holdToOrder(nodeId: string, at: string): void {
    const missing = this.#order?.before.get(nodeId)?.find((id) => !this.#isDone(id));
    if (missing !== undefined)
      throw new Contradiction(
        'order',
        `"${nodeId}" began before "${missing}", which the plan puts before it, was done`,
      );
    if (this.#deadline !== undefined && parseInstant(at)! > this.#deadline)
      throw new Contradiction('deadline', `"${nodeId}" began at ${at}, after the intent's deadline`);
  }

  #isDone(nodeId: string): boolean {
    return this.#calls.get(nodeId)?.status === 'succeeded' || this.#waits.get(nodeId) === 'finished';
  }

  #openQuestion(nodeId: string, callSha256: string, what: string): Question {
    const { question } = this.#callOf(nodeId);
    if (!question) throw new Contradiction('answer', `${what} at "${nodeId}", where nothing had been asked`);
    if (question.answer) throw new Contradiction('answer', `${what} at "${nodeId}", where an answer counted already`);
    if (question.expired) throw new Contradiction('answer', `${what} at "${nodeId}", where the question had expired`);
    if (question.callSha256 !== callSha256)
      throw new Contradiction('answer', `${what} at "${nodeId}" is about another call than the question`);
    return question;
  }

  /** A call that was started; throws when it was not, or when it is settled. */
  #begun(nodeId: string, kind: string, fits: (state: CallState) => boolean): CallState {
    const state = this.#callOf(nodeId);
    if (state.status === undefined && !this.#broken)
      throw new Contradiction('started', `${kind} at "${nodeId}", which was never started`);
    if (state.status !== undefined && !fits(state))
      throw new Contradiction('started', `${kind} at "${nodeId}", which was known to have ${state.status} already`);
    return state;
  }

  #end(ending: Ending, nodes: readonly string[] = []): void {
    const open = [...this.#calls.values()].filter((call) => isOpen(call));
    const { kind } = ending;
    if (kind === 'intent.completed') {
      const missing = this.#order ? [...this.#order.leaves.keys()].find((id) => !this.#isDone(id)) : 'plan';
      if (missing !== undefined)
        throw new Contradiction('outcome', `the intent is said to be completed, but "${missing}" was not done`);
    } else if (kind === 'intent.unknown') {
      if (open.length === 0 && !this.#broken)
        throw new Contradiction('outcome', 'the outcome is said to be unknown, but that of every call is known');
      const unnamed = open.find(({ surface, nodeId }) => surface === 'escalate' && !nodes.includes(nodeId));
      if (unnamed)
        throw new Contradiction(
          'outcome',
          `"${unnamed.nodeId}" has no known outcome, and intent.unknown does not name it`,
        );
    } else {
      const lost = open.find(({ surface }) => surface === 'escalate');
      if (lost)
        throw new Contradiction('outcome', `${kind} leaves out that nobody knows what became of "${lost.nodeId}"`);
    }
    this.#ending = ending;
    this.#mustEnd = false;
    this.#reconciled = false;
  }

  readonly #tellers: Teller = {
    'intent.accepted': ({ body }) => {
      if (body.intent_id !== this.#intentId)
        throw new Contradiction(
          'intent',
          `the receipt is about ${this.#intentId}, its first envelope about ${body.intent_id}`,
        );
      if ((body.prose === undefined) === (body.intent === undefined))
        throw new Contradiction('task', 'an intent is submitted as prose or as JSON: exactly one of the two');
      this.#accepted = body;
    },
    'intent.compiled': ({ body }) => {
      if (this.#compiled || this.#clarify !== undefined)
        throw new Contradiction('compiled', 'an intent is compiled once, and not after a question of clarification');
      const order = planOrder(body.intent.plan);
      if (order.twice !== undefined)
        throw new Contradiction('compiled', `two nodes of the plan have the id "${order.twice}"`);
      if (this.#accepted?.intent !== undefined && !this.#isSubmitted(this.#accepted.intent, body.intent))
        throw new Contradiction('compiled', 'the compiled intent is not the one that was submitted');
      this.#order = order;
      this.#deadline = body.intent.deadline === undefined ? undefined : parseInstant(body.intent.deadline);
      this.#compiled = body;
    },
    'intent.clarify': ({ body }) => {
      if (this.#compiled || this.#clarify !== undefined)
        throw new Contradiction(
          'compiled',
          'a question of clarification comes once, and not after the intent was compiled',
        );
      this.#clarify = body.question;
    },
    'intent.parked': () => {},
    'call.decided': ({ body }) => {
      const state = this.#callOf(body.node_id);
      this.#holdToPlan(body.node_id, body.call);
      state.decision = body;
      state.fresh = true;
      state.call = body.call;
      state.surface ??= body.surface;
    },
    'call.tried': ({ body }) => void this.#callOf(body.node_id),
    'gate.asked': ({ body }) => {
      const state = this.#callOf(body.node_id);
      const { decision } = state;
      if (decision?.effect !== 'ask' || !state.fresh)
        throw new Contradiction('question', `a person was asked at "${body.node_id}", where the policy did not say so`);
      if (decision.call.call_sha256 !== body.call_sha256)
        throw new Contradiction(
          'question',
          `the question at "${body.node_id}" is about another call than the policy judged`,
        );
      state.answer = undefined;
      state.expired = false;
      state.question = {
        callSha256: body.call_sha256,
        definitionSha256: decision.call.definition_sha256,
        expiresAt: body.expires_at,
        answer: undefined,
        expired: false,
      };
    },
    'gate.answered': ({ body }) => {
      const { node_id: nodeId, by, at, approved } = body;
      const question = this.#openQuestion(nodeId, body.call_sha256, 'an answer');
      const user = this.#accepted?.principal.user;
      if (by !== user)
        throw new Contradiction('answer', `the answer at "${nodeId}" is by ${by}; the intent is ${user}'s`);
      if (approved && parseInstant(at)! > parseInstant(question.expiresAt)!)
        throw new Contradiction(
          'answer',
          `the approval at "${nodeId}" came after ${question.expiresAt}, when the question expired`,
        );
      question.answer = { by, at, approved };
      this.#callOf(nodeId).answer = question.answer;
    },
    'gate.refused': () => {
      this.#refused++;
    },
    'gate.expired': ({ body }) => {
      this.#openQuestion(body.node_id, body.call_sha256, 'an expiry').expired = true;
      this.#callOf(body.node_id).expired = true;
    },
    'call.started': ({ body }) => {
      const { node_id: nodeId, call, surface, at } = body;
      const state = this.#callOf(nodeId);
      this.#holdToPlan(nodeId, call);
      this.#holdToOrder(nodeId, at);
      const before = state.status;
      if (before === 'succeeded' || (surface === 'escalate' && before !== undefined && before !== 'not_run'))
        throw new Contradiction('once', `"${nodeId}" was started again; before it had ${before}`);
      if (body.idempotency_key !== undefined && body.idempotency_key !== callKey(this.#intentId, nodeId))
        throw new Contradiction('plan', `the idempotency key at "${nodeId}" is not the one that the executor gives it`);
      holdToConsent(state, call, surface);
      state.call = call;
      state.surface = surface;
      state.startedAt = at;
      state.status = 'started';
      if (surface === 'natural') return;
      // One consent, one call.
      state.fresh = false;
      state.question = undefined;
    },
    'call.finished': ({ body }) => {
      const state = this.#begun(body.node_id, 'call.finished', ({ status }) => status === 'started');
      state.status = body.status;
      state.reason = body.reason;
      state.references = body.references;
    },
    'call.reconciled': ({ body }) => {
      const state = this.#begun(body.node_id, 'call.reconciled', isOpen);
      state.status = body.status;
      state.reason = body.reason;
      this.#reconciled = true;
    },
    'call.read_back': ({ body }) => void this.#begun(body.node_id, 'call.read_back', () => true),
    'wait.started': ({ body }) => {
      const { node_id: nodeId } = body;
      if (this.#order?.leaves.get(nodeId)?.kind !== 'wait')
        throw new Contradiction('node', `the compiled plan has no wait "${nodeId}"`);
      if (this.#waits.has(nodeId)) throw new Contradiction('wait', `the wait "${nodeId}" began a second time`);
      const missing = this.#order.before.get(nodeId)?.find((id) => !this.#isDone(id));
      if (missing !== undefined)
        throw new Contradiction(
          'order',
          `the wait "${nodeId}" began before "${missing}", which the plan puts before it, was done`,
        );
      this.#waits.set(nodeId, 'started');
    },
    'wait.finished': ({ body }) => {
      if (this.#waits.get(body.node_id) !== 'started')
        throw new Contradiction('wait', `the wait "${body.node_id}" ended, but was not under way`);
      this.#waits.set(body.node_id, 'finished');
    },
    'journal.broken': ({ body, seq }) => {
      if (body.good_seq !== seq - 1)
        throw new Contradiction(
          'journal',
          `journal.broken speaks of ${body.good_seq} good envelopes; ${seq - 1} stand before it`,
        );
      this.#broken = true;
      this.#mustEnd = true;
    },
    'intent.completed': ({ body }) => this.#end({ kind: 'intent.completed', at: body.at, reason: undefined }),
    'intent.failed': ({ body }) => this.#end({ kind: 'intent.failed', at: body.at, reason: body.reason }),
    'intent.cancelled': ({ body }) => this.#end({ kind: 'intent.cancelled', at: body.at, reason: body.reason }),
    'intent.unknown': ({ body }) => this.#end({ kind: 'intent.unknown', at: body.at, reason: body.reason }, body.nodes),
  };

  #isSubmitted(source: string, intent: Intent): boolean {
    try {
      const submitted = intentSchema.safeParse(JSON.parse(source));
      return submitted.success && isSameIntent(submitted.data, intent, this.#intentId);
    } catch (thrown) {
      if (thrown instanceof SyntaxError) return false;
      throw thrown;
    }
  }
}
