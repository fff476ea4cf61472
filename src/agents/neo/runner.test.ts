import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type ConversationStore, openConversationStore } from './conversations/store.ts';
import type { NeoModel } from './model.ts';
import { createRunner, type RunnerOptions } from './runner.ts';
import { pausedModel } from './testing/workbench.ts';

function workbench(t: TestContext, options: Partial<RunnerOptions> = {}) {
  const clock = new ManualClock();
  const dataDir = temporaryFolder(t);
  const open = () => {
    const store = openConversationStore({ dataDir, clock });
    t.after(() => store.close());
    return store;
  };
  const store = open();
  const model = pausedModel();
  const make = (members: Partial<RunnerOptions> = {}) =>
    createRunner({ store, model, clock, log: silentLogger, ...options, ...members });
  const runner = make();
  runner.start();
  let given = 0;
  const add = async (conversationId: string, message = `m${given + 1}`) => {
    const { turn } = await store.accept({
      id: `t${++given}`,
      conversationId,
      origin: 'user',
      message,
      createdAt: clock.now(),
    });
    runner.accepted();
    return turn;
  };
  return { clock, store, open, make, model, runner, add };
}

const statuses = (store: ConversationStore, conversationId: string) =>
  store.turnsAfter(conversationId, 0, 100).turns.map(({ id, status }) => `${id} ${status}`);

/** Runs the event loop until the condition holds; the event comes from the disk, not from a clock. */
test('a conversation runs one turn at a time in the order of acceptance while others go on', async (t) => {
  const { store, model, runner, add } = workbench(t);
  await add('a', 'first');
  await add('a', 'second');
  await add('b', 'other');
  const first = await model.next();
  const other = await model.next();
  assert.match(first.request.messages.at(-1)!.content, /first/);
  assert.match(other.request.messages.at(-1)!.content, /other/);
  assert.deepEqual(statuses(store, 'a'), ['t1 running', 't2 queued']);
  assert.deepEqual(runner.state(), { busy: true, queued: 1 });
  first.answer('one');
  const second = await model.next();
  assert.deepEqual(statuses(store, 'a'), ['t1 done', 't2 running']);
  assert.equal(second.request.messages.length, 3, 'the first turn and its reply come before the second');
  assert.equal(second.request.messages[1]!.content, 'one');
  second.answer('two');
  other.answer('three');
  await eventually('the runner is idle', () => !runner.state().busy);
  assert.deepEqual([...statuses(store, 'a'), ...statuses(store, 'b')], ['t1 done', 't2 done', 't3 done']);
});

test('the number of running turns is limited, and conversations take turns', async (t) => {
  const { model, runner, add } = workbench(t, { concurrency: 2 });
  for (const conversation of ['a', 'a', 'b', 'c', 'd']) await add(conversation);
  const a = await model.next();
  const b = await model.next();
  assert.equal(model.held.length, 2);
  assert.deepEqual(runner.state(), { busy: true, queued: 3 });
  a.answer('x');
  const c = await model.next();
  assert.match(c.request.messages.at(-1)!.content, /m4/, 'the second turn of a waits behind c');
  b.answer('x');
  c.answer('x');
  (await model.next()).answer('x');
  (await model.next()).answer('x');
  await eventually('the runner is idle', () => !runner.state().busy);
});

test('a model error fails the turn with its message and the next turn runs', async (t) => {
  const { store, model, runner, add } = workbench(t);
  await add('a');
  await add('a');
  (await model.next()).fail(new ReveilleError('unauthorized', 'the model endpoint answered 401: no'));
  (await model.next()).fail(new TypeError('a bug with a secret in it'));
  await eventually('the runner is idle', () => !runner.state().busy);
  assert.deepEqual(
    store.turnsAfter('a', 0, 9).turns.map(({ status, error, model: name }) => [status, error, name]),
    [
      ['failed', 'the model endpoint answered 401: no', 'held'],
      ['failed', 'internal error; the log of the daemon has the details', 'held'],
    ],
  );
});

test('a retried request notifies its readers, and its earlier text is discarded', async (t) => {
  const { store, clock, model, runner, add } = workbench(t);
  await add('a');
  const first = await model.next();
  first.request.onText('half of');
  await clock.advance(50);
  first.fail(new ReveilleError('unavailable', "the model endpoint's answer broke off: terminated"));
  await clock.advance(1000);
  (await model.next()).answer('whole');
  await eventually('the runner is idle', () => !runner.state().busy);
  const events = store.eventsAfter(0, 99, {}).map(({ type, data }) => [type, JSON.parse(data)]);
  const status = events.find(([type]) => type === 'status')![1];
  assert.equal(status.text, "the model endpoint's answer broke off: terminated; asking again in 1 s");
  const said = events.filter(([type]) => type === 'say');
  assert.deepEqual(
    said.map(([, { offset, text }]) => [offset, text]),
    [[0, 'whole']],
  );
  assert.equal(store.turnsAfter('a', 0, 1).turns[0]!.reply, 'whole');
});

test('a truncated answer is a failed turn that keeps its text', async (t) => {
  const model: NeoModel = {
    name: 'm',
    generate: () => Promise.resolve({ text: 'half', model: 'm', cutOff: 'the model reached its output limit' }),
  };
  const { store, runner, add } = workbench(t, { model });
  await add('a');
  await eventually('the runner is idle', () => !runner.state().busy);
  const [turn] = store.turnsAfter('a', 0, 1).turns;
  assert.deepEqual([turn?.status, turn?.reply, turn?.error], ['failed', 'half', 'the model reached its output limit']);
});

test('a stop waits for running turns and begins no other', async (t) => {
  const { store, model, runner, add } = workbench(t);
  await add('a');
  await add('a');
  const first = await model.next();
  const stopped = runner.stop(10_000);
  first.answer('done in time');
  await stopped;
  assert.deepEqual(statuses(store, 'a'), ['t1 done', 't2 queued']);
});

test('a turn that outlasts the stop waits for the next start, and the attempt stays counted', async (t) => {
  const { store, clock, model, runner, add, open, make } = workbench(t);
  await add('a');
  await model.next();
  const stopped = runner.stop(10_000);
  await clock.advance(10_000);
  await stopped;
  assert.deepEqual(statuses(store, 'a'), ['t1 queued']);
  await store.close();

  const again = open();
  const next = make({ store: again });
  assert.deepEqual(next.state(), { busy: true, queued: 1 });
  next.start();
  (await model.next()).answer('at last');
  await eventually('the runner is idle', () => !next.state().busy);
  const [turn] = again.turnsAfter('a', 0, 1).turns;
  assert.deepEqual([turn?.status, turn?.attempts, turn?.reply], ['done', 2, 'at last']);
});

test('a model that ignores the stop cannot delay it', async (t) => {
  const asked = Promise.withResolvers<void>();
  const model: NeoModel = {
    name: 'deaf',
    generate() {
      asked.resolve();
      return new Promise(() => {});
    },
  };
  const { store, clock, runner, add } = workbench(t, { model });
  await add('a');
  await asked.promise;
  const stopped = runner.stop(1000);
  await clock.advance(1000);
  await stopped;
  assert.deepEqual(statuses(store, 'a'), ['t1 queued']);
});

test('an outcome that the disk refuses is stored when the disk accepts it again', async (t) => {
  const { store, clock, model, runner, add } = workbench(t);
  const finish = store.finish;
  let refusals = 3;
  store.finish = (...given) =>
    refusals-- > 0 ? Promise.reject(new ReveilleError('unavailable', 'the disk is full')) : finish(...given);
  await add('a');
  (await model.next()).answer('kept');
  await eventually('a timer is set', () => clock.timers > 0);
  assert.deepEqual(statuses(store, 'a'), ['t1 running']);
  await clock.advance(1000 + 2000 + 5000);
  await eventually('the runner is idle', () => !runner.state().busy);
  assert.equal(store.turnsAfter('a', 0, 1).turns[0]!.reply, 'kept');
});
