import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import type { CallReport, RailTool } from '../tools/toolbox.ts';
import { call, createWorkbench, planOf, transfer } from './testing/workbench.ts';

const lost = (message = 'the connection broke'): Promise<CallReport> => Promise.resolve({ status: 'unknown', message });
const never = () => new Promise<CallReport>(() => {});

test('a transfer whose answer is lost is not repeated; its status confirms it, and the plan continues', async (t) => {
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

test('a status that denies the transfer fails the intent, and nothing is repeated', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.misbehave = (tool) => (tool === 'bank/transfer' ? lost() : undefined);
  const id = await bench.submit(planOf(transfer('pay'), transfer('more')));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'failed');
  assert.equal(bench.rail.state('alice', id).error?.code, 'not_run');
  assert.equal(bench.bank.transfers.size, 0);
  bench.verified(id);
});

test('without a status the outcome is unknown, the remedy is shown, and reconciling settles it', async (t) => {
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

test('an interrupted read is made again, a write without a declaration is not', async (t) => {
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

/** Changes the class of a tool from now on. */
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

test('a started transfer is not repeated, although its tool is declared a read after the restart', async (t) => {
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

test('a started read is not made again once its tool needs consent, even after an approval', async (t) => {
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

test('an open question waits for its answer, although the call would be allowed now', async (t) => {
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

test('an approval during the shutdown of the executor counts; no question is asked twice', async (t) => {
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

test('cancelling an intent does not wait for a hanging read', async (t) => {
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

test('a missing tool ends the intent before its call, and the reason lists the tools', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  bench.bank.absent.add('bank/transfer');
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'failed');
  assert.equal(bench.rail.state('alice', id).error?.code, 'unknown_tool');
  bench.verified(id);
});

test('a request to a silent model is retried, then the intent fails; a clarification ends the draft', async (t) => {
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
