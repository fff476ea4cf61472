import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import type { CallReport, RailTool } from '../tools/toolbox.ts';
import { call, createWorkbench, planOf, transfer } from './testing/workbench.ts';

const lost = (message = 'the connection broke'): Promise<CallReport> => Promise.resolve({ status: 'unknown', message });
const never = () => new Promise<CallReport>(() => {});

test('the answer of a transfer gets lost: it is not repeated, its status says that it was made, and the plan goes on', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool, _, carryOut) => {
    if (tool !== 'bank/transfer') return undefined;
    carryOut();
    return lost();
  };
  const id = await bench.submit(planOf(transfer('pay'), call('look', 'balance', { of: 'bob' })));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  assert.equal(bench.bank.calls.filter(({ tool }) => tool === 'bank/transfer').length, 1);
  assert.ok(bench.kinds(id).includes('call.reconciled'));
  bench.verified(id);
});

test('its status says that it was not made: the intent failed, and nothing is repeated', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool) => (tool === 'bank/transfer' ? lost() : undefined);
  const id = await bench.submit(planOf(transfer('pay'), transfer('more')));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'failed');
  assert.equal(bench.rail.state('alice', id).error?.code, 'not_run');
  assert.equal(bench.bank.transfers.size, 0);
  bench.verified(id);
});

test('where the status cannot be had the outcome is unknown, the way out is shown, and asking again settles it', async (t) => {
  const bench = createWorkbench(t);
  let statusWorks = false;
  bench.bank.misbehave = (tool, _, carryOut) => {
    if (tool === 'bank/transfer') {
      carryOut();
      return lost();
    }
    return tool === 'bank/status' && !statusWorks ? lost('the bank is closed') : undefined;
  };
  const id = await bench.submit(planOf(transfer('pay'), transfer('more')));
  await bench.approve(id, 'pay');
  await eventually('it is asked', () => bench.bank.calls.some(({ tool }) => tool === 'bank/status'));
  await bench.clock.advance(5000);
  await bench.reaches(id, 'unknown');
  const message = bench.rail.state('alice', id).error?.message ?? '';
  assert.match(message, /bank\/transfer \(node pay\) with \{"amount":"10.00"/);
  assert.ok(message.includes(`reveille intent reconcile ${id}`));
  assert.equal((await bench.rail.reconcile('alice', id)).status, 'unknown');
  bench.verified(id);
  statusWorks = true;
  const after = await bench.rail.reconcile('alice', id);
  assert.equal(after.status, 'failed');
  assert.match(
    after.error?.message ?? '',
    /bank\/transfer \(node more\) was not carried out.*Completed before: bank\/transfer \(node pay\)/,
  );
  assert.equal((await bench.rail.reconcile('alice', id)).status, 'failed');
  assert.equal(bench.bank.transfers.size, 1);
  bench.verified(id);
});

test('an executor that ends in the middle of a transfer does not make it again', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool, _, carryOut) => {
    if (tool === 'bank/transfer') carryOut();
    return tool === 'bank/transfer' || tool === 'bank/wire' ? never() : undefined;
  };
  const asked = await bench.submit(planOf(transfer('pay')));
  const blind = await bench.submit(planOf(call('pay', 'wire', { to: 'bob', amount: '5' })), {}, 'bob');
  await bench.approve(asked, 'pay');
  await bench.approve(blind, 'pay', 'bob');
  await eventually('both are made', () => bench.bank.calls.filter(({ tool }) => tool !== 'bank/simulate').length === 2);
  await bench.stop();
  bench.bank.misbehave = undefined;
  bench.start();
  await bench.reaches(asked, 'completed');
  await bench.reaches(blind, 'unknown', 'bob');
  await assert.rejects(bench.rail.reconcile('bob', blind), { code: 'conflict', message: /rail\.status/ });
  assert.equal(bench.bank.calls.filter(({ tool }) => tool === 'bank/transfer' || tool === 'bank/wire').length, 2);
  bench.verified(asked);
  bench.verified(blind, 'bob');
});

test('a read that was interrupted is made again, a write that nobody vouches for is not', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = () => never();
  const read = await bench.submit(planOf(call('look', 'balance', { of: 'bob' })));
  const write = await bench.submit(planOf(call('note', 'note', { text: 'x' })), {}, 'bob');
  await eventually('both are made', () => bench.bank.calls.length === 2);
  await bench.stop();
  bench.bank.misbehave = undefined;
  bench.start();
  await bench.reaches(read, 'completed');
  await bench.reaches(write, 'unknown', 'bob');
  assert.equal(bench.bank.calls.length, 3);
  bench.verified(read);
  bench.verified(write, 'bob');
});

/** From now on the bank says of a tool that it is of another class. */
function reclassify(
  { bank }: ReturnType<typeof createWorkbench>,
  name: string,
  as: Pick<RailTool, 'surface' | 'sideEffectClass'>,
) {
  const { find } = bank.toolbox;
  bank.toolbox.find = (wanted) => {
    const tool = find(wanted);
    return tool && wanted === name ? { ...tool, ...as } : tool;
  };
}

test('what was begun as a transfer stays one, though its tool is said to be a read when the executor is back', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool) => (tool === 'bank/wire' ? never() : undefined);
  const begun = await bench.submit(planOf(call('pay', 'wire', { to: 'bob', amount: '5' })));
  await bench.approve(begun, 'pay');
  await eventually('it is made', () => bench.bank.calls.length === 1);
  await bench.stop();
  bench.bank.misbehave = undefined;
  reclassify(bench, 'bank/wire', { surface: 'natural', sideEffectClass: 'read' });
  bench.start();
  await bench.reaches(begun, 'unknown');
  assert.equal(bench.bank.calls.length, 1);
  assert.deepEqual(bench.kinds(begun).slice(-2), ['call.started', 'intent.unknown']);
  bench.verified(begun);
});

test('a read that was begun is not made again once its tool needs consent, though a person was asked and has approved', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = () => never();
  const id = await bench.submit(planOf(call('look', 'balance', { of: 'bob' })));
  await eventually('it is made', () => bench.bank.calls.length === 1);
  await bench.stop();
  bench.bank.misbehave = undefined;
  bench.decide = () => ({ effect: 'ask', rule: 'all', reason: 'everything is asked' });
  bench.start();
  await bench.gate(id, 'look');
  reclassify(bench, 'bank/balance', { surface: 'escalate', sideEffectClass: 'write' });
  await bench.approve(id, 'look');
  await bench.reaches(id, 'unknown');
  assert.equal(bench.bank.calls.length, 1);
  bench.verified(id);
});

test('what a person has been asked waits for the answer, though the call would be allowed by now', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  await bench.stop();
  bench.decide = () => ({ effect: 'allow', rule: 'all', reason: 'everything is allowed' });
  bench.start();
  await bench.clock.advance(60_000);
  assert.equal(bench.status(id), 'awaiting_approval');
  assert.ok(!bench.bank.calls.some(({ tool }) => tool === 'bank/transfer'));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  assert.equal(bench.kinds(id).filter((kind) => kind === 'gate.asked').length, 1);
  bench.verified(id);
});

test('an approval that was given while the executor went down still counts; nothing is asked twice', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf({ id: 'w', kind: 'wait', seconds: 60 }, transfer('pay')));
  await eventually('it waits', () => bench.kinds(id).includes('wait.started'));
  for (let n = 0; n < 3; n++) {
    await bench.stop();
    bench.start();
  }
  await bench.clock.advance(60_000);
  await bench.approve(id, 'pay');
  await bench.stop();
  bench.start();
  await bench.reaches(id, 'completed');
  const kinds = bench.kinds(id);
  assert.equal(kinds.filter((kind) => kind === 'gate.asked').length, 1);
  assert.equal(bench.bank.transfers.size, 1);
  bench.verified(id);
});

test('an intent that is called off while a read hangs does not wait for it', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.toolbox.call = async (_, __, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve({ status: 'unknown', message: 'aborted' }));
    });
  const id = await bench.submit(planOf(call('look', 'balance', { of: 'bob' }), transfer('pay')));
  await eventually('it reads', () => bench.kinds(id).includes('call.started'));
  assert.equal((await bench.rail.cancel('alice', id)).status, 'cancelled');
  bench.verified(id);
});

test('a tool that is gone ends the intent before its call, and says what there is', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  bench.bank.absent.add('bank/transfer');
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'failed');
  assert.equal(bench.rail.state('alice', id).error?.code, 'unknown_tool');
  bench.verified(id);
});

test('a model that does not answer is asked again, then the intent fails; a question of its own ends the draft', async (t) => {
  const bench = createWorkbench(t);
  const { ReveilleError } = await import('../../wire/errors.ts');
  let asked = 0;
  bench.compile = async ({ prose }) => {
    if (prose.includes('?')) return { outcome: 'clarify', question: 'How much?', compiler: 'm', reads: [] };
    asked++;
    throw new ReveilleError('unavailable', 'the model is away');
  };
  const { intentId: away } = await bench.rail.submit('alice', { prose: 'pay bob' });
  const { intentId: unclear } = await bench.rail.submit('alice', { prose: 'pay bob some?' });
  await eventually('it is asked', () => asked === 1);
  await bench.clock.advance(60_000);
  await bench.reaches(away, 'failed');
  assert.equal(bench.rail.state('alice', away).error?.code, 'model_unavailable');
  assert.equal(asked, 4);
  await eventually('it asks back', () => bench.rail.state('alice', unclear).clarify !== undefined);
  assert.deepEqual(bench.rail.state('alice', unclear), { status: 'drafting', clarify: 'How much?' });
  bench.verified(away);
  bench.verified(unclear);
});
