import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { rounds } from '../../../test/support/random/random.ts';
import { settle } from '../../kit/clock/testing/manual-clock.ts';
import { type AskedGate, testApprover } from '../../kit/identity/testing/approver.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import type { ReceiptEnvelope } from '../../wire/intent-receipt.ts';
import type { CallReport } from '../tools/toolbox.ts';
import { createWorkbench, DAY_MS, planOf, transfer, type Workbench } from './testing/workbench.ts';

/** Events of an executor; a number selects one of the existing intents. */
type Step =
  | { readonly do: 'submit'; readonly parallel: boolean; readonly who: 'alice' | 'bob'; readonly night: boolean }
  | {
      readonly do: 'approve' | 'deny' | 'replay' | 'mistake' | 'forge' | 'intrude' | 'cancel' | 'park';
      readonly which: number;
    }
  | { readonly do: 'wait'; readonly hours: number }
  | { readonly do: 'restart' | 'redefine' }
  | { readonly do: 'bank'; readonly mood: 'well' | 'silent' | 'deaf' };

const which = fc.nat(7);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      parallel: fc.boolean(),
      who: fc.constantFrom('alice' as const, 'bob' as const),
      night: fc.boolean(),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('approve' as const), which }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'deny' as const,
        'replay' as const,
        'mistake' as const,
        'forge' as const,
        'intrude' as const,
        'cancel' as const,
        'park' as const,
      ),
      which,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'redefine' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('bank' as const),
      mood: fc.constantFrom('well' as const, 'silent' as const, 'deaf' as const),
    }),
  },
);

/** A key that is not an approver. */
const STRANGER = testApprover();

/** Time steps of a few seconds. */
const RUNS = rounds(12, 30);

type Known = { readonly id: string; readonly user: string; shown: AskedGate[] };

/** An answer that may be refused; any other error is a bug. */
async function attempt(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (thrown) {
    const { code } = thrown as { code?: string };
    assert.ok(code === 'conflict' || code === 'not_found' || code === 'forbidden', String(thrown));
  }
}

/** Time passes as on a sleeping laptop: stored instants are checked when it wakes. */
function passes(bench: Workbench, ms: number): Promise<void> {
  bench.clock.jump(ms);
  return bench.clock.advance(20_000);
}

async function take(bench: Workbench, intents: Known[], one: Step): Promise<void> {
  const chosen = 'which' in one ? intents[one.which % Math.max(intents.length, 1)] : undefined;
  if ('which' in one && !chosen) return;
  const { id, user } = chosen ?? { id: '', user: '' };
  const gates = chosen ? bench.rail.gates(user, id) : [];
  chosen?.shown.push(...gates);
  const [gate] = gates;
  const answer = (asked: AskedGate, said: Partial<GateAnswer> = {}, by = user) =>
    attempt(bench.rail.answer(by, id, asked.node_id, bench.approver.answer(id, asked, said)));
  switch (one.do) {
    case 'submit': {
      const nodes = [transfer('a'), transfer('b', '2.00')];
      const plan = one.parallel ? planOf({ id: 'p', kind: 'parallel', nodes }) : planOf(...nodes);
      const origin = one.night ? 'chronos' : 'person';
      intents.push({ id: await bench.submit(plan, { origin }, one.who), user: one.who, shown: [] });
      return;
    }
    case 'approve':
      return gate && answer(gate);
    case 'deny':
      return gate && answer(gate, { approved: false });
    case 'replay':
      for (const asked of chosen!.shown) {
        if (gates.every(({ displayed_sha256 }) => displayed_sha256 !== asked.displayed_sha256)) await answer(asked);
      }
      return;
    case 'mistake':
      return gate && answer(gate, { call_sha256: 'f'.repeat(64) });
    case 'forge':
      return gate && answer(gate, { approver: STRANGER.approver });
    case 'intrude':
      return gate && answer(gate, {}, 'mallory');
    case 'cancel':
      return attempt(bench.rail.cancel(user, id));
    case 'park':
      return attempt(bench.rail.park(user, id, 'c'));
    case 'wait':
      return passes(bench, one.hours * 60 * 60 * 1000);
    case 'restart':
      await bench.stop();
      return bench.start();
    case 'redefine':
      return bench.bank.describe(`Moves money, version ${bench.bank.calls.length}.`);
    case 'bank': {
      const lost: CallReport = { status: 'unknown', message: 'no answer' };
      bench.bank.misbehave = (tool, _, carryOut) => {
        if (tool !== 'bank/transfer' || one.mood === 'well') return undefined;
        if (one.mood === 'silent') carryOut();
        return Promise.resolve(lost);
      };
    }
  }
}

/** The invariants of an intent after any events. */
function judge(bench: Workbench, { id, user }: Known): void {
  const { envelopes } = bench.verified(id, user);
  const of = (kind: string, node: string) =>
    envelopes.filter((envelope: ReceiptEnvelope) => envelope.kind === kind && envelope.body.node_id === node);
  const status = bench.status(id, user);
  assert.ok(['completed', 'failed', 'denied', 'cancelled', 'unknown'].includes(status), `it is ${status}`);
  for (const node of ['a', 'b']) {
    const key = `${id}.${node}`;
    const made = bench.bank.transfers.has(key);
    const calls = bench.bank.calls.filter(({ tool, args }) => tool === 'bank/transfer' && args.key === key).length;
    assert.ok(calls <= 1, `${node} was called ${calls} times`);
    assert.equal(of('call.started', node).length, calls);
    if (calls === 1)
      assert.ok(of('gate.answered', node).some(({ body }) => body.approved === true && body.by === user));
    const { state } = bench.rail.view(user, id).nodes.find(({ node_id }) => node_id === node)!;
    assert.equal(state === 'done', made, `${node} is ${state}`);
    if (status === 'completed') assert.ok(made);
    if (status === 'cancelled') assert.equal(calls, 0);
  }
}

test('with any order of answers, cancellations, lost answers and restarts, nothing moves without an approval, or twice', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const bench = createWorkbench(t);
      const intents: Known[] = [];
      for (const one of steps) {
        await take(bench, intents, one);
        await settle(20);
      }
      // Pending questions expire, one intent of a user after the other.
      for (let n = 0; n <= intents.length; n++) await passes(bench, DAY_MS);
      for (const { id, user } of intents) await bench.reaches(id, bench.status(id, user), user);
      for (const intent of intents) judge(bench, intent);
      await bench.stop();
    }),
    { numRuns: RUNS },
  );
});
