/** The rail: takes intents in, walks them, and answers for them (see `../rail.ts`). */
import { orAborted, wait } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { ExecutorRail, IntentEvent } from '../rail.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, intentOf, isOver, statusOf } from '../receipt/chain-state.ts';
import { judgeAnswer } from './answer.ts';
import { Course, Halted, type RailParts, Stopped } from './course.ts';
import { draft } from './drafting.ts';
import { endingOf } from './ending.ts';
import { Lanes } from './lanes.ts';
import { walkPlan } from './plan-walk.ts';
import { isRead, reconcileUnknown } from './reconcile.ts';
import { gateViews, intentView, stateView } from './view.ts';

const EVENT_OF: { readonly [Kind in ReceiptEntry['kind']]?: IntentEvent['type'] } = {
  'gate.asked': 'gate.invoked',
  'intent.completed': 'intent.attest',
  'intent.failed': 'intent.fail',
  'intent.unknown': 'intent.fail',
  'intent.clarify': 'intent.fail',
  'intent.cancelled': 'intent.cancel',
};

export function createRail(parts: RailParts): ExecutorRail {
  const { journal, toolbox, policy, compiler, clock, log, canWake = true } = parts;
  const over = new AbortController();
  let isStarted = false;
  const listeners = new Map<string, Set<(event: IntentEvent) => void>>();

  async function toolsReady(course: Course): Promise<void> {
    try {
      await orAborted(toolbox.ready?.() ?? Promise.resolve(), course.halted);
    } catch (thrown) {
      if (course.halted.aborted) throw new Halted();
      throw thrown;
    }
  }

  const isReadTool = (name: string) => isRead(toolbox.find(name));

  async function walk(course: Course): Promise<void> {
    await toolsReady(course);
    let stop: Stopped | undefined;
    try {
      await walkPlan(course, course.intent().plan);
    } catch (thrown) {
      if (!(thrown instanceof Stopped)) throw thrown;
      stop = thrown;
    }
    const state = await course.record((before) => [
      endingOf(before, stop, { at: formatInstant(clock.now()), isRead: isReadTool }),
    ]);
    log.info({ intent: course.intentId, status: statusOf(state) }, 'an intent came to its end');
  }

  const lanes = new Lanes(
    {
      courseOf: (intentId) => new Course(parts, intentId, over.signal),
      async draft(course) {
        await toolsReady(course);
        await draft(course);
      },
      walk,
    },
    parts,
  );

  const unsubscribe = journal.onChange((intentId, entries) => {
    const following = listeners.get(intentId);
    if (!following) return;
    for (const { kind, body } of entries) {
      const type = EVENT_OF[kind];
      if (type === undefined) continue;
      const event = { type, intentId, ...('node_id' in body && { nodeId: body.node_id }) };
      for (const listener of [...following]) listener(event);
    }
  });

  const queuedBehind = (state: ChainState) => {
    const { user } = state.accepted.principal;
    return isOver(state) ? undefined : lanes.before(user, state.accepted.intent_id);
  };
  const stateOf = (user: string, intentId: string) => {
    const held = journal.load(user, intentId);
    return stateView(held, queuedBehind(held.state));
  };

  /** @throws ReveilleError `conflict` when there is nothing to call off any more */
  function refuseCancel(state: ChainState): void {
    if (isOver(state)) {
      const how =
        state.clarify && !state.ending
          ? 'it waits for nothing: the executor has asked back'
          : `it is ${statusOf(state)}`;
      throw new ReveilleError('conflict', `the intent is over and cannot be cancelled (${how})`);
    }
    if (!state.escalateStarted) return;
    const message =
      'a call that moves or commits something has started, so the intent cannot be cancelled any more; it goes on to its end';
    throw new ReveilleError('conflict', message);
  }

  return {
    async submit(user, request) {
      // A malformed plan is the sender's mistake and leaves no trace; what depends on the tools there are is recorded.
      if (request.intent !== undefined) readIntent(request.intent.text);
      const hashes = { manifestSha256: toolbox.manifestSha256, policySha256: policy.sha256 };
      const { unable } = compiler;
      const refusal =
        request.prose !== undefined && unable !== undefined
          ? new ReveilleError('unavailable', unable, { retryable: false })
          : undefined;
      const { intentId, isNew } = await journal.accept(user, request, hashes, refusal);
      if (isNew) lanes.add(user, intentId);
      return { intentId };
    },

    state: stateOf,

    view(user, intentId) {
      const held = journal.load(user, intentId);
      return intentView(held, queuedBehind(held.state));
    },

    list: (user, { limit, status }) =>
      journal.list(user, limit, status).map((intentId) => {
        const held = journal.load(user, intentId);
        return intentView(held, queuedBehind(held.state));
      }),

    gates: (user, intentId) => gateViews(journal.load(user, intentId).state),

    async answer(user, intentId, nodeId, answer) {
      const { state, row } = journal.held(intentId);
      const notFound = new ReveilleError('not_found', 'the intent has no such node; GET /intents/{id} shows its plan');
      if (row.user === user && !hasNode(state, nodeId)) throw notFound;
      if (row.user !== user && !hasNode(state, nodeId)) return void journal.load(user, intentId);
      let refusal: ReveilleError | undefined;
      const { broken } = await journal.change(intentId, (before) => {
        const approver = journal.roster.standing(before.accepted.principal.user, answer.approver);
        const judged = judgeAnswer(before, { nodeId, by: user, answer, now: clock.now(), approver });
        refusal = judged.refusal;
        if (refusal === undefined && answer.passkey) journal.roster.used(row.user, answer.approver, answer.passkey);
        return judged.entries;
      });
      if (row.user !== user) journal.load(user, intentId);
      if (broken)
        throw new ReveilleError(
          'conflict',
          'the journal of this intent was changed; it has ended, and the answer does not count',
        );
      if (refusal) throw refusal;
      // One that a changed row kept from being taken up is, now that somebody waits for it.
      if (isStarted) lanes.add(user, intentId);
    },

    async park(user, intentId, conversationId) {
      const held = journal.load(user, intentId);
      if (!canWake) return { status: statusOf(held.state), parked: false };
      const { state } = await journal.change(intentId, (before) => {
        if (isOver(before) || before.parkedIn === conversationId) return [];
        if (before.parkedIn !== undefined) {
          const message = `the intent is parked in the conversation ${before.parkedIn} already, which is woken when it is over`;
          throw new ReveilleError('conflict', message);
        }
        const at = formatInstant(clock.now());
        return [{ kind: 'intent.parked', body: { at, conversation_id: conversationId } }];
      });
      return { status: statusOf(state), parked: state.parkedIn !== undefined && !isOver(state) };
    },

    async cancel(user, intentId, why) {
      const { state } = journal.load(user, intentId);
      if (statusOf(state) === 'cancelled') return stateOf(user, intentId);
      try {
        await journal.change(intentId, (before) => {
          refuseCancel(before);
          // Inside the transaction: a call either has started before, or does not start any more.
          lanes.hold(intentId);
          return [];
        });
        await lanes.idle(intentId);
        await journal.change(intentId, (before) => {
          refuseCancel(before);
          const at = formatInstant(clock.now());
          const reason = why === undefined ? `${user} called it off` : `it was called off for ${user}: ${why}`;
          return [{ kind: 'intent.cancelled', body: { at, by: user, reason } }];
        });
      } finally {
        lanes.release(user, intentId);
      }
      return stateOf(user, intentId);
    },

    async reconcile(user, intentId) {
      const { state } = journal.load(user, intentId);
      if (statusOf(state) === 'unknown') {
        const course = new Course(parts, intentId, over.signal);
        await toolsReady(course);
        await reconcileUnknown(course, isReadTool);
      }
      return stateOf(user, intentId);
    },

    receipt: (user, intentId) => journal.receipt(user, intentId),

    subscribe(user, intentId, listener) {
      journal.load(user, intentId);
      const following = listeners.get(intentId) ?? new Set();
      listeners.set(intentId, following.add(listener));
      return () => {
        following.delete(listener);
        if (following.size === 0 && listeners.get(intentId) === following) listeners.delete(intentId);
      };
    },

    start() {
      isStarted = true;
      for (const { id, user } of journal.open()) lanes.add(user, id);
    },

    async close(drainMs) {
      const drained = new AbortController();
      const closed = lanes.close().then(() => drained.abort());
      if (drainMs > 0) await wait(clock, drainMs, drained.signal);
      // What is still under way is found out about by the next process.
      over.abort(new Halted());
      await Promise.race([closed, settled()]);
      unsubscribe();
    },
  };
}

/** A moment for what has just been aborted. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

function hasNode(state: ChainState, nodeId: string): boolean {
  const plan = intentOf(state)?.plan;
  const has = (node: NonNullable<typeof plan>): boolean =>
    node.id === nodeId || ('nodes' in node && node.nodes.some(has));
  return plan !== undefined && has(plan);
}
