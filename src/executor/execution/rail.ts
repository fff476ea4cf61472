/** The rail: accepts intents, executes them and answers requests about them (see `../rail.ts`). */
import { orAborted, wait } from '../../kit/clock/clock.ts';
import { continueTrace, inSpan, recordedTrace } from '../../kit/trace/trace.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { ExecutorRail } from '../rail.ts';
import { type ChainState, intentOf, isFinal, statusOf } from '../receipt/chain-state.ts';
import { judgeAnswer } from './answer.ts';
import { draft } from './drafting.ts';
import { endingOf } from './ending.ts';
import { executePlan } from './plan-execution.ts';
import { reconcileUnknown } from './reconcile.ts';
import { IntentFailure, IntentRun, type RailParts, RunStopped } from './run.ts';
import { UserQueues } from './user-queues.ts';
import { gateViews, intentView, stateView } from './view.ts';

export function createRail(parts: RailParts): ExecutorRail {
  const { journal, toolbox, policy, compiler, clock, log, canWake = true } = parts;
  const shutdown = new AbortController();
  let isStarted = false;
  /** The traces in which open intents were submitted. Lost with this process, which costs only the connection. */
  const traces = new Map<string, string>();
  journal.onChange(({ row, state }) => {
    if (isFinal(state)) traces.delete(row.id);
  });
  const inTraceOf = (intentId: string, name: string, work: () => Promise<void>) =>
    continueTrace(traces.get(intentId), name, () => ({ attributes: { 'reveille.intent.id': intentId } }), work);

  /** Throws {@link RunStopped} when the run is stopped meanwhile. */
  const toolsReady = (run: IntentRun) => orAborted(toolbox.ready?.() ?? Promise.resolve(), run.stopSignal);

  async function execute(run: IntentRun): Promise<void> {
    await toolsReady(run);
    let stop: IntentFailure | undefined;
    try {
      await executePlan(run, run.intent().plan);
    } catch (thrown) {
      if (!(thrown instanceof IntentFailure)) throw thrown;
      stop = thrown;
    }
    const ending = (before: ChainState) => [endingOf(before, stop, { at: formatInstant(clock.now()), toolbox })];
    const state = await inSpan(
      'receipt',
      () => ({}),
      async (span) => {
        const ended = await run.record(ending);
        span?.setAttribute('reveille.intent.status', statusOf(ended));
        return ended;
      },
    );
    log.info({ intent: run.intentId, status: statusOf(state) }, 'an intent has ended');
  }

  const queues = new UserQueues(
    {
      runOf: (intentId) => new IntentRun(parts, intentId, shutdown.signal),
      draft: (run) =>
        inTraceOf(run.intentId, 'draft intent', async () => {
          await toolsReady(run);
          await draft(run);
        }),
      execute: (run) => inTraceOf(run.intentId, 'execute intent', () => execute(run)),
    },
    parts,
  );

  const queuedBehind = (state: ChainState) => {
    const { user } = state.accepted.principal;
    return isFinal(state) ? undefined : queues.queuedBehind(user, state.accepted.intent_id);
  };
  const stateOf = (user: string, intentId: string) => {
    const loaded = journal.load(user, intentId);
    return stateView(loaded, queuedBehind(loaded.state));
  };
  const viewOf = (user: string, intentId: string) => {
    const loaded = journal.load(user, intentId);
    return intentView(loaded, queuedBehind(loaded.state));
  };

  /** @throws ReveilleError `conflict` when the intent can no longer be cancelled */
  function refuseCancel(state: ChainState): void {
    if (isFinal(state)) {
      const cause =
        state.clarify && !state.ending ? 'the executor has asked for clarification' : `it is ${statusOf(state)}`;
      throw new ReveilleError('conflict', `the intent has ended and cannot be cancelled (${cause})`);
    }
    if (!state.escalateStarted) return;
    const message =
      'an escalate-class call has started, so the intent cannot be cancelled any more; it continues to its end';
    throw new ReveilleError('conflict', message);
  }

  return {
    async submit(user, request) {
      // A malformed plan is refused and not recorded. Problems that depend on the present tools are recorded.
      if (request.intent !== undefined) readIntent(request.intent.text);
      const hashes = { manifestSha256: toolbox.manifestSha256, policySha256: policy.sha256 };
      const unable = request.prose === undefined ? undefined : compiler.unable;
      const refusal = unable === undefined ? undefined : new ReveilleError('unavailable', unable, { retryable: false });
      const { intentId, isNew } = await journal.accept(user, request, hashes, refusal);
      const trace = recordedTrace();
      if (isNew && trace !== undefined) traces.set(intentId, trace);
      if (isNew) queues.add(user, intentId);
      return { intentId };
    },

    state: stateOf,

    view: viewOf,
    list: (user, { limit, status }) => journal.list(user, limit, status).map((intentId) => viewOf(user, intentId)),

    gates: (user, intentId) => gateViews(journal.load(user, intentId).state),

    async answer(user, intentId, nodeId, answer) {
      const { state, row } = journal.loadAny(intentId);
      if (!hasNode(state, nodeId)) {
        journal.load(user, intentId);
        throw new ReveilleError('not_found', 'the intent has no such node; GET /intents/{id} shows its plan');
      }
      let refusal: ReveilleError | undefined;
      const { broken } = await journal.change(intentId, (before) => {
        const approver = journal.roster.activeApprover(before.accepted.principal.user, answer.approver);
        const judged = judgeAnswer(before, { nodeId, by: user, answer, now: clock.now(), approver });
        refusal = judged.refusal;
        if (refusal === undefined && answer.passkey)
          journal.roster.recordUse(row.user, answer.approver, answer.passkey);
        return judged.entries;
      });
      if (row.user !== user) journal.load(user, intentId);
      if (broken)
        throw new ReveilleError(
          'conflict',
          'the journal of this intent was tampered with; the intent has ended, and the answer does not count',
        );
      if (refusal) throw refusal;
      // Enqueue an intent that a changed row kept out of the queue at the start.
      if (isStarted) queues.add(user, intentId);
    },

    async park(user, intentId, conversationId) {
      const loaded = journal.load(user, intentId);
      if (!canWake) return { status: statusOf(loaded.state), parked: false };
      const { state } = await journal.change(intentId, (before) => {
        if (isFinal(before) || before.parkedIn === conversationId) return [];
        if (before.parkedIn !== undefined) {
          const message = `the intent is already parked in the conversation ${before.parkedIn}, which is woken when it ends`;
          throw new ReveilleError('conflict', message);
        }
        const at = formatInstant(clock.now());
        return [{ kind: 'intent.parked', body: { at, conversation_id: conversationId } }];
      });
      return { status: statusOf(state), parked: state.parkedIn !== undefined && !isFinal(state) };
    },

    async cancel(user, intentId, why) {
      const { state } = journal.load(user, intentId);
      if (statusOf(state) === 'cancelled') return stateOf(user, intentId);
      try {
        await journal.change(intentId, (before) => {
          refuseCancel(before);
          // Inside the transaction: a call has started before this point, or it does not start any more.
          queues.suspend(intentId);
          return [];
        });
        await queues.idle(intentId);
        await journal.change(intentId, (before) => {
          refuseCancel(before);
          const at = formatInstant(clock.now());
          const reason = why === undefined ? `${user} cancelled it` : `it was cancelled for ${user}: ${why}`;
          return [{ kind: 'intent.cancelled', body: { at, by: user, reason } }];
        });
      } finally {
        queues.resume(user, intentId);
      }
      return stateOf(user, intentId);
    },

    async reconcile(user, intentId) {
      const { state } = journal.load(user, intentId);
      if (statusOf(state) === 'unknown') {
        const run = new IntentRun(parts, intentId, shutdown.signal);
        await toolsReady(run);
        await reconcileUnknown(run);
      }
      return stateOf(user, intentId);
    },

    receipt: (user, intentId) => journal.receipt(user, intentId),

    start() {
      isStarted = true;
      for (const { id, user } of journal.open()) queues.add(user, id);
    },

    async close(drainMs) {
      const drained = new AbortController();
      const closed = queues.close().then(() => drained.abort());
      if (drainMs > 0) await wait(clock, drainMs, drained.signal);
      // The next process reconciles the calls that are still in progress.
      shutdown.abort(new RunStopped());
      await Promise.race([closed, settled()]);
    },
  };
}

/** Lets aborted work settle. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

function hasNode(state: ChainState, nodeId: string): boolean {
  const plan = intentOf(state)?.plan;
  const has = (node: NonNullable<typeof plan>): boolean =>
    node.id === nodeId || ('nodes' in node && node.nodes.some(has));
  return plan !== undefined && has(plan);
}
