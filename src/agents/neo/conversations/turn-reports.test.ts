import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import type { NewTurn } from '../../../turns/turn.ts';
import { createRunner, MAX_ATTEMPTS } from '../runner.ts';
import { beginNext, pausedModel } from '../testing/workbench.ts';
import { type ConversationStore, openConversationStore } from './store.ts';

function workbench(t: TestContext, keeps = true) {
  const clock = new ManualClock();
  const dataDir = temporaryFolder(t);
  let notifications = 0;
  const open = () => {
    const onTurnReport = keeps ? { onTurnReport: () => void notifications++ } : {};
    const store = openConversationStore({ dataDir, clock, ...onTurnReport });
    t.after(() => store.close());
    return store;
  };
  return { clock, open, notifications: () => notifications };
}

const FIRE = '0197f5a0-0000-7000-8000-000000000001@1';

const wake = (change: Partial<NewTurn> = {}): NewTurn => ({
  id: 't1',
  conversationId: 'c1',
  origin: 'chronos',
  alarmId: 'a1',
  fireId: FIRE,
  userId: 'alice',
  message: 'go on',
  createdAt: 0,
  ...change,
});
const waiting = (store: ConversationStore) => store.outbox.waiting({ after: 0, limit: 100 });
const stages = (store: ConversationStore) =>
  waiting(store).map(({ userId, fireId, report }) => [userId, fireId, report.stage, report.outcome]);

test('a wake creates a report of its start and one of its end, which are kept until they are removed', async (t) => {
  const { clock, open, notifications } = workbench(t);
  const store = open();
  await store.accept(wake());
  assert.deepEqual(waiting(store), []);
  const turn = (await beginNext(store, 'c1'))!;
  assert.equal(notifications(), 1);
  await clock.advance(500);
  await store.finish(turn, { status: 'failed', error: 'no model', model: 'm' }, '');
  assert.equal(notifications(), 2);
  const [started, finished] = waiting(store);
  const about = { turnId: 't1', conversationId: 'c1', retryAt: null, reply: null, usage: null };
  const at = clock.now();
  assert.deepEqual(started!.report, { ...about, stage: 'turn_started', at: at - 500, outcome: null, error: null });
  assert.deepEqual(finished!.report, { ...about, stage: 'turn_finished', at, outcome: 'failed', error: 'no model' });
  await store.close();
  const again = open();
  assert.equal(waiting(again).length, 2);
  await again.outbox.remove([started!.id]);
  assert.deepEqual(stages(again), [['alice', FIRE, 'turn_finished', 'failed']]);
});

test('a repeated start of a turn is not reported; a turn that is given up is', async (t) => {
  const { open, clock } = workbench(t);
  let store = open();
  await store.accept(wake());
  await beginNext(store, 'c1');
  for (let n = 1; n <= MAX_ATTEMPTS; n++) {
    await store.outbox.remove(waiting(store).map(({ id }) => id));
    await store.close();
    store = open();
    const again = store;
    const model = pausedModel();
    createRunner({ store, model, clock, log: silentLogger }).start();
    await eventually('it is decided', () => model.held.length > 0 || again.turnById('t1')!.status === 'interrupted');
    if (n < MAX_ATTEMPTS) assert.deepEqual(stages(store), []);
  }
  assert.deepEqual(stages(store), [['alice', FIRE, 'turn_finished', 'failed']]);
  assert.match(waiting(store)[0]!.report.error ?? '', /was stopped 3 times/);
});

test("nothing is reported for a person's message, for a wake without a user, or without a recipient", async (t) => {
  const { open } = workbench(t);
  const store = open();
  const { userId: _, ...withoutUser } = wake();
  for (const turn of [
    withoutUser,
    { id: 't2', conversationId: 'c2', origin: 'user', message: 'hi', createdAt: 0 } as const,
  ]) {
    await store.accept(turn);
    const begun = (await beginNext(store, turn.conversationId))!;
    await store.finish(begun, { status: 'done', reply: 'hi', model: 'm' }, '');
  }
  assert.deepEqual(waiting(store), []);

  const withoutListener = workbench(t, false).open();
  await withoutListener.accept(wake());
  await withoutListener.finish(
    (await beginNext(withoutListener, 'c1'))!,
    { status: 'done', reply: 'hi', model: 'm' },
    '',
  );
  assert.deepEqual(waiting(withoutListener), []);
});
