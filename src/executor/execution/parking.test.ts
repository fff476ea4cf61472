import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWorkbench, planOf, transfer } from './testing/workbench.ts';

test('an intent from an alarm notifies, is parked, and wakes its agent at its end: each once, over restarts', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')), { origin: 'chronos', conversation_id: 'c' });
  const { question } = await bench.gate(id, 'pay');
  assert.match(question, /an ALARM or another AGENT began, with no user present/);
  const due = () => bench.journal.outbox.due(bench.clock.now(), 10);
  const notify = `notify-${id}-pay-1`;
  assert.deepEqual(
    due().map(({ id: message, kind, nodeId }) => [message, kind, nodeId]),
    [[notify, 'notify', 'pay']],
  );
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(await bench.rail.park('alice', id, 'c'), { status: 'awaiting_approval', parked: true });
  }
  await assert.rejects(bench.rail.park('alice', id, 'other'), { code: 'conflict' });
  await assert.rejects(bench.rail.park('bob', id, 'c'), { code: 'not_found' });
  assert.equal(bench.rail.state('alice', id).parked, true);
  bench.journal.outbox.later(notify, bench.clock.now() + 500, 'no answer');
  assert.equal(bench.journal.outbox.nextDue(), bench.clock.now() + 500);
  await bench.stop();
  bench.start();
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  assert.deepEqual(
    due().map(({ id: message, kind, conversationId }) => [message, kind, conversationId]),
    [[`wake-${id}`, 'wake', 'c']],
  );
  bench.journal.outbox.done(`wake-${id}`);
  assert.equal(bench.journal.outbox.nextDue(), undefined);
  assert.deepEqual(await bench.rail.park('alice', id, 'c'), { status: 'completed', parked: false });
  bench.verified(id);
});

test('parking sends notifications about pending questions; an intent from a person does not', async (t) => {
  const bench = createWorkbench(t);
  let notifications = 0;
  bench.journal.outbox.onNew(() => {
    notifications++;
  });
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  assert.equal(bench.journal.outbox.nextDue(), undefined);
  await bench.rail.park('alice', id, 'c');
  assert.equal(notifications, 1);
  assert.deepEqual(
    bench.journal.outbox.due(bench.clock.now(), 10).map(({ kind }) => kind),
    ['notify'],
  );
  await bench.rail.answer('alice', id, 'pay', await bench.answerTo(id, 'pay', { approved: false }));
  await bench.reaches(id, 'denied');
  assert.deepEqual(
    bench.journal.outbox.due(bench.clock.now(), 10).map(({ kind }) => kind),
    ['wake'],
  );
});
