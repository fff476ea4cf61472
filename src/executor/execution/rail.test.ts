import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import type { IntentStatus } from '../../wire/executor.ts';
import { RawJson } from '../../wire/json.ts';
import { refused } from './testing/bank.ts';
import { call, createWorkbench, DAY_MS, planOf, transfer } from './testing/workbench.ts';

test('a transfer waits for its approval, is made once, read back, and proved by its receipt', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(call('look', 'balance', { of: 'bob' }), transfer('pay')));
  const gate = await bench.gate(id, 'pay');
  assert.equal(bench.status(id), 'awaiting_approval');
  assert.deepEqual(gate.call.args, { to: 'bob', amount: '10.00', currency: 'EUR', key: `${id}.pay` });
  assert.equal(bench.bank.transfers.size, 0);
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  assert.deepEqual([...bench.bank.transfers.keys()], [`${id}.pay`]);
  assert.deepEqual(bench.kinds(id), [
    ...['intent.accepted', 'intent.compiled', 'call.decided', 'call.started', 'call.finished'],
    ...['call.decided', 'call.tried', 'gate.asked', 'gate.answered', 'call.started', 'call.finished'],
    ...['call.read_back', 'intent.completed'],
  ]);
  assert.deepEqual(bench.rail.state('alice', id).result, {
    nodes: {
      look: { status: 'succeeded', result: { of: 'bob', balance: '100.00' } },
      pay: { status: 'succeeded', references: { '/id': 't-1' }, result: { id: 't-1', to: 'bob' } },
    },
  });
  bench.verified(id);
});

test('a malformed plan is refused with its position and not recorded; one that the tools do not accept is recorded', async (t) => {
  const bench = createWorkbench(t);
  const twice = planOf(transfer('a'), transfer('a'));
  await assert.rejects(bench.submit(twice), { code: 'invalid_request', message: /plan\.nodes\[1\]\.id/ });
  await assert.rejects(
    bench.submit(
      new RawJson('{"verb":"pay","plan":{"id":"a","kind":"call","tool":"bank/wire","args":{"amount":1e400}}}'),
    ),
    {
      code: 'invalid_request',
    },
  );
  assert.deepEqual(bench.rail.list('alice', { limit: 10 }), []);
  const unknown = await bench.submit(planOf(call('a', 'nothing', {})));
  const wrong = await bench.submit(planOf(call('a', 'wire', { to: 'bob', amount: 7 })));
  const keyed = await bench.submit(planOf({ ...transfer('a'), args: { ...transfer('a').args, key: 'mine' } }));
  for (const [id, words] of [
    [unknown, /there is no tool bank\/nothing/],
    [wrong, /plan\.args.*amount/],
    [keyed, /must not set "key"/],
  ] as const) {
    await bench.reaches(id, 'failed');
    const { error } = bench.rail.state('alice', id);
    assert.equal(error?.code, 'invalid_plan');
    assert.match(error.message, words);
    bench.verified(id);
  }
  assert.deepEqual(bench.bank.calls, []);
});

test('the same key and task give the same intent, another task is a conflict that names what differs', async (t) => {
  const bench = createWorkbench(t);
  const plan = planOf(transfer('pay'));
  const [one, same] = await Promise.all([1, 2].map(() => bench.submit(plan, { idempotency_key: 'k' })));
  assert.equal(one, same);
  await assert.rejects(bench.submit(planOf(transfer('pay', '11.00')), { idempotency_key: 'k' }), {
    code: 'conflict',
    message: /another intent/,
  });
  await assert.rejects(bench.rail.submit('alice', { prose: 'pay bob', idempotency_key: 'k' }), {
    code: 'conflict',
    message: /an intent instead of prose/,
  });
  assert.notEqual(await bench.submit(plan, { idempotency_key: 'k' }, 'bob'), one);
  assert.notEqual(await bench.submit(plan), await bench.submit(plan));
});

test('a denied call is not made, nor anything after it', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('one'), transfer('two')));
  await bench.approve(id, 'one');
  await bench.gate(id, 'two');
  await bench.rail.answer('alice', id, 'two', await bench.answerTo(id, 'two', { approved: false, answer: 'too dear' }));
  await bench.reaches(id, 'denied');
  const { error } = bench.rail.state('alice', id);
  assert.equal(error?.code, 'denied');
  assert.match(error.message, /alice denied.*too dear.*Completed before: bank\/transfer \(node one\)/);
  assert.equal(bench.bank.transfers.size, 1);
  assert.deepEqual(
    bench.rail.view('alice', id).nodes.map(({ state }) => state),
    ['done', 'denied'],
  );
  bench.verified(id);
});

test('an intent denied before the status existed is listed as denied', async (t) => {
  const bench = createWorkbench(t);
  const denied = await bench.submit(planOf(transfer('pay')));
  await bench.gate(denied, 'pay');
  await bench.rail.answer('alice', denied, 'pay', await bench.answerTo(denied, 'pay', { approved: false }));
  await bench.reaches(denied, 'denied');
  const failed = await bench.submit(planOf(call('pay', 'nothing', {})));
  await bench.reaches(failed, 'failed');
  await bench.stop();
  const db = new DatabaseSync(join(bench.folder, 'journal.db'));
  db.exec(`UPDATE intents SET status = 'failed'; DELETE FROM schema_migrations WHERE version > 1;
    DROP TABLE approvers; DROP TABLE approver_resets; DROP TABLE submitters;
    DROP INDEX intents_changed; ALTER TABLE intents DROP COLUMN changed_at`);
  db.close();
  bench.start();
  const listed = (status: IntentStatus) =>
    bench.rail.list('alice', { status, limit: 10 }).map(({ intent_id }) => intent_id);
  assert.deepEqual([listed('denied'), listed('failed')], [[denied], [failed]]);
  bench.verified(denied);
});

test('refused answers get a reason and are recorded, up to a limit', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(
    planOf({ id: 'both', kind: 'parallel', nodes: [transfer('a'), transfer('b', '2.00')] }),
  );
  const a = await bench.gate(id, 'a');
  const b = await bench.gate(id, 'b');
  const approve = (node: string, gate: typeof a, user = 'alice') =>
    bench.rail.answer(user, id, node, bench.approver.answer(id, gate));
  await assert.rejects(approve('a', b), { code: 'conflict', message: /call_sha256 must be/ });
  await assert.rejects(approve('a', { ...a, displayed_sha256: b.displayed_sha256 }), {
    code: 'conflict',
    message: /displayed_sha256 must be/,
  });
  await assert.rejects(approve('a', a, 'mallory'), { code: 'not_found' });
  await assert.rejects(approve('nowhere', a), { code: 'not_found' });
  await assert.rejects(approve('both', a), { code: 'conflict', message: /no question/ });
  assert.equal(bench.bank.transfers.size, 0);
  await approve('a', a);
  await assert.rejects(approve('a', a), { code: 'conflict', message: /already approved by/ });
  await approve('b', b);
  await bench.reaches(id, 'completed');
  for (let n = 0; n < 50; n++) await assert.rejects(approve('a', a), { code: 'conflict' });
  const refusals = bench.kinds(id).filter((kind) => kind === 'gate.refused');
  assert.equal(refusals.length, 32);
  assert.equal(bench.bank.transfers.size, 2);
  bench.verified(id);
});

test('a question without an answer expires, also while no executor runs', async (t) => {
  const bench = createWorkbench(t);
  const first = await bench.submit(planOf(transfer('pay')));
  await bench.gate(first, 'pay');
  await bench.clock.advance(DAY_MS);
  await bench.reaches(first, 'failed');
  assert.equal(bench.rail.state('alice', first).error?.code, 'approval_expired');
  const second = await bench.submit(planOf(transfer('pay')));
  const late = await bench.answerTo(second, 'pay');
  await bench.stop();
  bench.clock.jump(DAY_MS + 1);
  bench.start();
  await bench.reaches(second, 'failed');
  assert.equal(bench.rail.view('alice', second).nodes[0]?.state, 'expired');
  await assert.rejects(bench.rail.answer('alice', second, 'pay', late), {
    code: 'conflict',
    message: /expired/,
  });
  assert.equal(bench.bank.transfers.size, 0);
  bench.verified(first);
  bench.verified(second);
});

test('when the definition changes after the approval, the approval does not count and the question is asked again', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  const first = await bench.answerTo(id, 'pay');
  bench.bank.describe('Moves money, and keeps half of it.');
  await bench.rail.answer('alice', id, 'pay', first);
  await eventually('it is asked again', () => bench.kinds(id).filter((kind) => kind === 'gate.asked').length === 2);
  assert.equal(bench.bank.transfers.size, 0);
  // The call and its digest are the same; only the digest of the question differs.
  assert.equal((await bench.gate(id, 'pay')).call.call_sha256, first.call_sha256);
  await assert.rejects(bench.rail.answer('alice', id, 'pay', first), {
    code: 'conflict',
    message: /displayed_sha256 must be/,
  });
  assert.equal(bench.bank.transfers.size, 0);
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  assert.equal(bench.bank.transfers.size, 1);
  bench.verified(id);
});

test('the policy decides again when a call starts: two calls cannot exceed a limit together', async (t) => {
  const bench = createWorkbench(t);
  bench.decide = ({ spends, surface }) => {
    if (surface === 'natural') return { effect: 'allow', rule: 'reads', reason: 'reads are free' };
    return spends.length > 0
      ? { effect: 'deny', rule: 'daily', reason: 'the day is used up' }
      : { effect: 'ask', rule: 'ask', reason: 'ask' };
  };
  const id = await bench.submit(planOf({ id: 'both', kind: 'parallel', nodes: [transfer('a'), transfer('b')] }));
  await bench.gate(id, 'b');
  await bench.approve(id, 'a');
  await eventually('the first is made', () => bench.bank.transfers.size === 1);
  await bench.approve(id, 'b');
  await bench.reaches(id, 'denied');
  assert.equal(bench.rail.state('alice', id).error?.code, 'denied_by_policy');
  assert.equal(bench.bank.transfers.size, 1);
  bench.verified(id);
});

test('one intent of a user executes at a time; intents of other users do not wait', async (t) => {
  const bench = createWorkbench(t);
  const first = await bench.submit(planOf(transfer('pay')));
  const second = await bench.submit(planOf(transfer('pay')));
  const other = await bench.submit(planOf(transfer('pay')), {}, 'bob');
  await bench.gate(first, 'pay');
  await bench.gate(other, 'pay', 'bob');
  await bench.reaches(second, 'planned');
  assert.equal(bench.rail.state('alice', second).queued_behind, first);
  assert.deepEqual(bench.rail.gates('alice', second), []);
  await bench.rail.cancel('alice', first);
  await bench.approve(second, 'pay');
  await bench.reaches(second, 'completed');
  bench.verified(first);
});

test('an intent can be cancelled until its first escalate-class call has started', async (t) => {
  const bench = createWorkbench(t);
  const queued = planOf(transfer('pay'));
  const first = await bench.submit(planOf(transfer('one'), transfer('two')));
  const behind = await bench.submit(queued);
  assert.equal((await bench.rail.cancel('alice', behind)).status, 'cancelled');
  assert.equal((await bench.rail.cancel('alice', behind)).status, 'cancelled');
  await bench.approve(first, 'one');
  await bench.gate(first, 'two');
  await assert.rejects(bench.rail.cancel('alice', first), {
    code: 'conflict',
    message: /cannot be cancelled any more/,
  });
  await assert.rejects(bench.rail.cancel('mallory', first), { code: 'not_found' });
  await bench.approve(first, 'two');
  await bench.reaches(first, 'completed');
  await assert.rejects(bench.rail.cancel('alice', first), { code: 'conflict' });
  for (const id of [first, behind]) bench.verified(id);
});

test('nothing begins after the deadline', async (t) => {
  const bench = createWorkbench(t);
  const deadline = new Date(bench.clock.now() + 60_000).toISOString();
  const plan = {
    id: 'all',
    kind: 'sequence',
    nodes: [{ id: 'w', kind: 'wait', seconds: 120 }, call('n', 'note', { text: 'x' })],
  };
  const id = await bench.submit(new RawJson(JSON.stringify({ verb: 'pay', deadline, plan })));
  await eventually('it waits', () => bench.kinds(id).includes('wait.started'));
  await bench.stop();
  bench.clock.jump(60_000);
  bench.start();
  await bench.reaches(id, 'executing');
  assert.deepEqual(bench.bank.calls, []);
  await bench.clock.advance(75_000);
  await bench.reaches(id, 'failed');
  assert.equal(bench.rail.state('alice', id).error?.code, 'deadline_passed');
  assert.equal(bench.kinds(id).filter((kind) => kind === 'wait.started').length, 1);
  assert.deepEqual(bench.bank.calls, []);
  bench.verified(id);
});

test('a failed call ends the intent, and parallel calls in progress complete', async (t) => {
  const bench = createWorkbench(t);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  bench.bank.misbehave = (tool, args, carryOut) => {
    if (tool !== 'bank/note') return undefined;
    if (args.text === 'slow') return held.then(carryOut);
    return Promise.resolve(refused('the bank is closed'));
  };
  const nodes = [call('slow', 'note', { text: 'slow' }), call('bad', 'note', { text: 'bad' }), transfer('pay')];
  const id = await bench.submit(planOf({ id: 'beside', kind: 'parallel', nodes }));
  await eventually('one has failed', () => bench.kinds(id).includes('call.finished'));
  assert.equal(bench.status(id) === 'failed', false);
  release();
  await bench.reaches(id, 'failed');
  const { error } = bench.rail.state('alice', id);
  assert.equal(error?.code, 'tool_failed');
  assert.match(error.message, /the bank is closed.*Completed before: bank\/note \(node slow\)/);
  assert.deepEqual(
    bench.rail.view('alice', id).nodes.map(({ state }) => state),
    ['done', 'failed', 'skipped'],
  );
  assert.equal(bench.bank.transfers.size, 0);
  bench.verified(id);
});

test('open intents and their conversations are limited per user; other users are not affected', async (t) => {
  const bench = createWorkbench(t, { openIntents: 3, contextBytes: 1000 });
  const words = (length: number) => ({ context: [{ from: 'person' as const, text: 'x'.repeat(length) }] });
  const hold = Promise.withResolvers<never>();
  t.after(() => hold.reject(new Error('over')));
  hold.promise.catch(() => {});
  bench.compile = () => hold.promise;
  const submit = (more: object, user = 'alice') => bench.rail.submit(user, { prose: 'pay bob', ...more });
  await submit(words(800));
  await assert.rejects(submit(words(300)), {
    code: 'rate_limited',
    message: /EXECUTOR_MAX_CONTEXT_MIB/,
    retryAfterSeconds: 60,
  });
  await submit(words(900), 'bob');
  await submit({ idempotency_key: 'k' });
  await submit({});
  await assert.rejects(submit({}), {
    code: 'rate_limited',
    message: /EXECUTOR_MAX_OPEN_INTENTS/,
    retryAfterSeconds: 60,
  });
  await submit({ idempotency_key: 'k' });
});
