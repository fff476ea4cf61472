/**
 * What a chain tells, held against what can have happened (docs/receipts.md, "What must hold"): the pure fold that a verifier
 * makes over envelopes whose hashes and signatures hold.
 */

import { type CallNode, type Intent, intentSchema } from '../../wire/intent.ts';
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import type { BoundCall, ReceiptBodies, ReceiptEntry } from './bodies.ts';
import { expireQuestion, holdToConsent, putQuestion, takeAnswer } from './consent.ts';
import { Contradiction } from './contradiction.ts';
import { holdToOutcome, isUnsettled } from './outcome.ts';
import { Place } from './place.ts';
import { areArgsOf, callKey, isSameIntent, type PlanOrder, planOrder } from './plan-order.ts';
import { readValues } from './receipt-text.ts';
import type { CallState, Ending, Story, StoryRule } from './story.ts';

type Told<Kind extends ReceiptKind> = { body: ReceiptBodies[Kind]; seq: number };
type Teller = { readonly [Kind in ReceiptKind]: (told: Told<Kind>) => void };

/** Takes in a chain's envelopes one after the other. */
export class StoryReader {
  readonly #intentId: string;
  readonly #place = new Place();
  readonly #calls = new Map<string, CallState>();
  readonly #waits = new Map<string, 'started' | 'finished'>();
  #accepted: ReceiptBodies['intent.accepted'] | undefined;
  #compiled: ReceiptBodies['intent.compiled'] | undefined;
  #clarify: string | undefined;
  #order: PlanOrder | undefined;
  #deadline: number | undefined;
  #refused = 0;
  #broken = false;
  #ending: Ending | undefined;
  #lastKind: ReceiptKind | undefined;
  /** What the last start rests on; `undefined` where the policy allowed it, or the answer names no key. */
  #startedBy: string | undefined;

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
      this.#place.hold(entry.kind, seq);
      const tell = this.#tellers[entry.kind] as (told: { body: unknown; seq: number }) => void;
      tell({ body: entry.body, seq });
    } catch (thrown) {
      if (thrown instanceof Contradiction) return { rule: thrown.rule, message: thrown.message };
      throw thrown;
    }
    this.#place.take(entry.kind);
    this.#lastKind = entry.kind;
    return undefined;
  }

  /** The approver whose answer the last `call.started` rests on; `undefined` for one that nobody's key has approved. */
  get startedBy(): string | undefined {
    return this.#startedBy;
  }

  story(): Story {
    return {
      accepted: this.#accepted,
      compiled: this.#compiled,
      clarify: this.#clarify,
      calls: [...this.#calls.values()],
      refusedAnswers: this.#refused,
      broken: this.#broken,
      ending: this.#place.hasEnded ? this.#ending : undefined,
      lastKind: this.#lastKind,
    };
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
      escalated: false,
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
    if (this.#order?.leaves.get(nodeId)?.kind === 'wait') return this.#waits.get(nodeId) === 'finished';
    return this.#calls.get(nodeId)?.status === 'succeeded';
  }

  /** A call that was started; throws when it was not, or when what is known of it does not fit. */
  #begun(nodeId: string, kind: string, fits: (state: CallState) => boolean): CallState {
    const state = this.#callOf(nodeId);
    // The start may stand among what does not count, and so may what came of it.
    if (this.#broken) return state;
    if (state.status === undefined)
      throw new Contradiction('started', `${kind} at "${nodeId}", which was never started`);
    if (!fits(state))
      throw new Contradiction('started', `${kind} at "${nodeId}", which was known to have ${state.status} already`);
    return state;
  }

  #end(ending: Ending, nodes: readonly string[] = []): void {
    const missing = this.#order ? [...this.#order.leaves.keys()].find((id) => !this.#isDone(id)) : 'plan';
    holdToOutcome(ending.kind, nodes, { calls: this.#calls.values(), missing, broken: this.#broken });
    this.#ending = ending;
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
    'gate.asked': ({ body }) => putQuestion(this.#callOf(body.node_id), body),
    'gate.answered': ({ body }) => {
      const [user, rules] = [this.#accepted?.principal.user, this.#accepted?.rules ?? 1];
      takeAnswer(this.#callOf(body.node_id), body, { intentId: this.#intentId, user, rules });
    },
    'gate.refused': () => {
      this.#refused++;
    },
    'gate.expired': ({ body }) => expireQuestion(this.#callOf(body.node_id), body),
    'call.started': ({ body }) => {
      const { node_id: nodeId, call, surface, at } = body;
      const state = this.#callOf(nodeId);
      this.#holdToPlan(nodeId, call);
      this.#holdToOrder(nodeId, at);
      const before = state.status;
      const isOnce = surface === 'escalate' || state.escalated;
      if (before === 'succeeded' || (isOnce && before !== undefined && before !== 'not_run'))
        throw new Contradiction('once', `"${nodeId}" was started again; before it had ${before}`);
      if (body.idempotency_key !== undefined && body.idempotency_key !== callKey(this.#intentId, nodeId))
        throw new Contradiction('plan', `the idempotency key at "${nodeId}" is not the one that the executor gives it`);
      holdToConsent(state, call, surface);
      this.#startedBy = state.decision?.effect === 'ask' ? state.question?.answer?.approver : undefined;
      state.call = call;
      state.surface = surface;
      state.startedAt = at;
      state.status = 'started';
      if (surface === 'natural') return;
      state.escalated = true;
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
      const state = this.#begun(body.node_id, 'call.reconciled', isUnsettled);
      state.status = body.status;
      state.reason = body.reason;
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
    },
    'intent.completed': ({ body }) => this.#end({ kind: 'intent.completed', at: body.at, reason: undefined }),
    'intent.failed': ({ body }) =>
      this.#end({ kind: 'intent.failed', at: body.at, reason: body.reason, code: body.code }),
    'intent.cancelled': ({ body }) => this.#end({ kind: 'intent.cancelled', at: body.at, reason: body.reason }),
    'intent.unknown': ({ body }) => this.#end({ kind: 'intent.unknown', at: body.at, reason: body.reason }, body.nodes),
  };

  #isSubmitted(source: string, intent: Intent): boolean {
    const [read, ...more] = readValues(source);
    if (read === undefined || 'unreadable' in read || more.length > 0) return false;
    // What was read is compared, not what the schema makes of it: that leaves out members of the name __proto__.
    const submitted = read.value as Intent;
    return intentSchema.safeParse(submitted).success && isSameIntent(submitted, intent, this.#intentId);
  }
}
