/** Turns of wakes after a temporary failure: parked on disk, retried with growing delays, always one turn. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { type NewTurn, type RetryPolicy, retryAt } from '../../turns/turn.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { openConversationStore } from './conversations/store.ts';
import type { NeoModel } from './model.ts';
import { createRunner } from './runner.ts';

const POLICY: RetryPolicy = { firstMs: 60_000, longestMs: 240_000, giveUpMs: 24 * 3600_000 };
const FIRE = '0197f5a0-0000-7000-8000-000000000001@1';

/** A model whose failures the test sets, and that answers otherwise. */
function switchableModel() {
  let failure: ReveilleError | undefined;
  let asked = 0;
  const model: NeoModel = {
    name: 'moody',
    generate({ onText }) {
      asked++;
      if (failure) return Promise.reject(failure);
      onText('done');
      return Promise.resolve({ text: 'done', model: 'moody' });
    },
  };
  return {
    model,
    /** Until the endpoint's requested retry time, nothing runs. */
    goAway(error?: ReveilleError) {
      failure = error;
    },
    asked: () => asked,
  };
}

/** Not retried within the turn: the endpoint requests a longer delay than a turn has. */
const busy = (retryAfterSeconds = 120) => new ReveilleError('rate_limited', 'busy', { retryAfterSeconds });

function workbench(t: TestContext) {
  const clock = new ManualClock();
  const dataDir = temporaryFolder(t);
  const switchable = switchableModel();
  const begin = () => {
    const store = openConversationStore({ dataDir, clock, onTurnReport: () => {} });
    const runner = createRunner({ store, model: switchable.model, clock, log: silentLogger, retryPolicy: POLICY });
    runner.start();
    const end = async () => {
      await runner.stop(0);
      await store.close();
    };
    t.after(end);
    const add = async (id: string, change: Partial<NewTurn> = {}) => {
      const wake: NewTurn = {
        ...{ id, conversationId: 'c', origin: 'chronos', fireId: FIRE, userId: 'alice', message: 'look' },
        createdAt: clock.now(),
        ...change,
      };
      const { deduped } = await store.accept(wake);
      if (!deduped) runner.accepted();
      return deduped;
    };
    const idle = () => eventually('the runner is idle', () => !runner.state().busy);
    const reports = () =>
      store.outbox
        .waiting({ after: 0, limit: 10 })
        .map(({ report }) => [report.stage, report.error, report.retryAt, report.reply]);
    return { store, runner, add, idle, reports, end, turn: (id: string) => store.turnById(id)! };
  };
  return { clock, moody: switchable, begin };
}

test('the turn of a wake is retried until the endpoint answers, and is one turn', async (t) => {
  const { clock, moody: switchable, begin } = workbench(t);
  const neo = begin();
  const start = clock.now();
  switchable.goAway(busy());
  await neo.add('t1');
  await neo.idle();
  const parked = neo.turn('t1');
  assert.deepEqual([parked.status, parked.retryAt, parked.retries], ['queued', start + 120_000, 1]);
  assert.match(parked.error!, /busy/);
  assert.deepEqual(neo.runner.state(), { busy: false, queued: 0, nextTurnAt: start + 120_000 });
  assert.equal(await neo.add('t1b'), true, 'the repeated wake makes no second turn');
  assert.deepEqual(neo.reports(), [
    ['turn_started', null, null, null],
    ['turn_waits', parked.error, parked.retryAt, null],
  ]);
  await clock.advance(119_999);
  assert.equal(switchable.asked(), 1, "not before the endpoint's retry time");
  switchable.goAway();
  await clock.advance(1);
  await eventually('the turn is done', () => neo.turn('t1').status === 'done');
  assert.deepEqual([neo.turn('t1').attempts, switchable.asked()], [2, 2]);
  assert.deepEqual(neo.reports(), [
    ['turn_started', null, null, null],
    ['turn_finished', null, null, 'done'],
  ]);
  assert.equal(neo.runner.state().nextTurnAt, undefined);
});

test('waiting turns survive a restart, and a crash does not count as a failure of the endpoint', async (t) => {
  const { clock, moody: switchable, begin } = workbench(t);
  const first = begin();
  switchable.goAway(busy());
  await first.add('t1');
  await first.idle();
  for (let n = 0; n < 4; n++) {
    await eventually('it has failed again', async () => {
      await clock.advance(30_000);
      return first.turn('t1').retries > n + 1;
    });
    await first.idle();
  }
  const { retries } = first.turn('t1');
  await first.end();
  const due = clock.now() + 10 * 60_000;
  switchable.goAway();
  await clock.advance(due - clock.now());
  const second = begin();
  await eventually('the turn is done', () => second.turn('t1').status === 'done');
  assert.deepEqual([second.turn('t1').attempts, second.turn('t1').retries], [retries + 1, retries]);
});

test("a person's message is not parked: it fails, and a success makes waiting turns begin at once", async (t) => {
  const { clock, moody: switchable, begin } = workbench(t);
  const neo = begin();
  switchable.goAway(busy(3000));
  await neo.add('t1');
  await neo.idle();
  const say = (id: string) =>
    neo.store.accept({ id, conversationId: 'c', origin: 'user', message: 'hi', createdAt: clock.now() });
  await say('t2');
  neo.runner.accepted();
  await neo.idle();
  assert.equal(neo.turn('t2').status, 'failed');
  switchable.goAway();
  await say('t3');
  neo.runner.accepted();
  await eventually('both are done', () => neo.turn('t1').status === 'done' && neo.turn('t3').status === 'done');
});

test('a waiting turn can be cancelled', async (t) => {
  const { clock, moody: switchable, begin } = workbench(t);
  const neo = begin();
  switchable.goAway(busy());
  await neo.add('t1');
  await neo.idle();
  assert.equal((await neo.runner.cancel('t1'))!.status, 'failed');
  assert.deepEqual(neo.runner.state(), { busy: false, queued: 0 });
  switchable.goAway();
  await clock.advance(3600_000);
  assert.equal(switchable.asked(), 1);
});

test("the delay doubles, respects the endpoint's request, and the retries end", () => {
  const turn = { origin: 'chronos', retries: 0, createdAt: 0 } as const;
  const failed = (afterSeconds?: number) =>
    ({
      status: 'failed',
      error: 'e',
      model: 'm',
      temporary: afterSeconds === undefined ? {} : { afterSeconds },
    }) as const;
  const at = (retries: number, afterSeconds?: number, now = 1000) =>
    retryAt({ ...turn, retries }, failed(afterSeconds), { policy: POLICY, now, draw: 1 });
  assert.deepEqual(
    [0, 1, 2, 3].map((retries) => at(retries)! - 1000),
    [60_000, 120_000, 240_000, 240_000],
  );
  assert.equal(at(0, 500), 501_000);
  assert.equal(at(0, undefined, 24 * 3600_000), undefined, 'accepted too long ago');
  const options = { policy: POLICY, now: 0, draw: 0 };
  assert.equal(retryAt({ ...turn, origin: 'user' }, failed(), options), undefined);
  assert.equal(retryAt(turn, { status: 'failed', error: 'a wrong key', model: 'm' }, options), undefined);
  assert.equal(retryAt(turn, failed(), { ...options, policy: { ...POLICY, firstMs: 0 } }), undefined);
});
