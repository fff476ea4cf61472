/** The engine over a real store, with agents that the tests control. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Agent, Attempt } from './agent.ts';
import { TurnEngine, type TurnEngineOptions } from './engine.ts';
import type { Outcome } from './turn.ts';
import { openTurnStore } from './turn-store.ts';

const MIGRATIONS = new URL('../agents/migrations/', import.meta.url);

/** An agent that records its calls; `run` and `resume` end when the test says so, or with their signal. */
function controlledAgent(members: Partial<Agent> = {}) {
  const calls: string[] = [];
  const attempts: { attempt: Attempt; end: (outcome: Outcome) => void }[] = [];
  const wait = (attempt: Attempt) =>
    new Promise<Outcome>((end) => {
      attempts.push({ attempt, end });
      const stopped = () => end({ status: 'failed', error: `it ${attempt.signal.reason.message}` });
      attempt.signal.addEventListener('abort', stopped);
    });
  const agent: Agent = {
    outlivesProcess: false,
    check: async () => {},
    async run(attempt) {
      calls.push(`run ${attempt.turn.id}`);
      await attempt.begin();
      return await wait(attempt);
    },
    async resume(attempt) {
      calls.push(`resume ${attempt.turn.id}`);
      return { status: 'unknown', error: 'its outcome cannot be read' };
    },
    settled: async ({ id }) => void calls.push(`settled ${id}`),
    ...members,
  };
  return { agent, calls, attempts, wait };
}

function workbench(t: TestContext) {
  const clock = new ManualClock();
  const path = join(temporaryFolder(t), 'turns.db');
  const start = (agent: Agent, options: Partial<TurnEngineOptions> = {}) => {
    const store = openTurnStore({ path, migrations: MIGRATIONS, clock, perUser: true });
    const worker = { agent, name: 'an agent', prompt: 'do it' };
    const engine = new TurnEngine({
      ...{ store, concurrency: 4, perUser: true, owner: 'the process', clock, log: silentLogger },
      workerOf: () => worker,
      ...options,
    });
    engine.start();
    t.after(() => store.close());
    const add = async (id: string, conversationId = 'c') => {
      const facts = { userId: 'alice', origin: 'chronos', fireId: `a@${id}`, message: 'go' } as const;
      await store.accept({ id, conversationId, ...facts, createdAt: clock.now() });
      engine.accepted();
    };
    const until = (id: string, status: string) =>
      eventually(`${id} is ${status}`, () => store.turnById(id)!.status === status);
    return { store, engine, add, until };
  };
  return { clock, start };
}

test('after a crash, resume alone decides whether a turn is begun again', async (t) => {
  const { start } = workbench(t);
  const first = controlledAgent();
  const crashed = start(first.agent);
  await crashed.add('t1');
  await crashed.until('t1', 'running');
  await crashed.store.close();

  const second = controlledAgent();
  const next = start(second.agent);
  await next.until('t1', 'unknown');
  assert.deepEqual(second.calls, ['resume t1', 'settled t1']);
  await next.add('t2');
  await next.until('t2', 'running');
  await next.store.close();

  const journaled = controlledAgent({
    async resume(attempt) {
      await attempt.begin(true);
      return { status: 'done', reply: `attempt ${attempt.turn.attempts}` };
    },
  });
  const last = start(journaled.agent);
  await last.until('t2', 'done');
  assert.equal(last.store.turnById('t2')!.reply, 'attempt 2');
});

test('a stop ends turns of this process, and leaves the others to the next one', async (t) => {
  const { start } = workbench(t);
  for (const outlivesProcess of [false, true]) {
    const { agent } = controlledAgent({ outlivesProcess });
    const { store, engine, add, until } = start(agent);
    await add(`t${outlivesProcess}`, `c${outlivesProcess}`);
    await until(`t${outlivesProcess}`, 'running');
    await engine.stop(0);
    const { status, error } = store.turnById(`t${outlivesProcess}`)!;
    const ended = ['failed', 'it was ended because the process was stopped'];
    assert.deepEqual([status, error], outlivesProcess ? ['running', undefined] : ended);
    await store.close();
  }
});

test('a turn that did not start waits with growing pauses, blocks its conversation, and fails at the limit', async (t) => {
  const { clock, start } = workbench(t);
  const { agent, calls } = controlledAgent();
  const busy = {
    ...agent,
    async run() {
      calls.push('run');
      return { status: 'not_started', why: 'it is busy' } as const;
    },
  };
  const worker = { agent: busy, name: 'an agent', prompt: 'do it', waitMs: 12_000 };
  const { store, add, until } = start(busy, { workerOf: () => worker });
  await add('t1');
  await eventually('it waits', () => store.turnById('t1')!.waits !== undefined);
  await add('t2');
  assert.deepEqual(
    store
      .unfinished()
      .map(({ id, retryAt, waits }) => [id, (retryAt ?? 0) - clock.now(), waits])
      .slice(0, 1),
    [['t1', 5000, 'it is busy']],
  );
  assert.deepEqual(calls, ['run']);
  await clock.advance(5000);
  await eventually('it waits again', () => store.turnById('t1')!.attempts === 2);
  await clock.advance(10_000);
  await until('t1', 'failed');
  assert.match(store.turnById('t1')!.error!, /as long as its preset allows and did not start: it is busy/);
  await until('t2', 'failed');
});

test('a start that cannot be stored begins nothing; an outcome is stored when the disk accepts it', async (t) => {
  const { clock, start } = workbench(t);
  const { agent, attempts } = controlledAgent();
  const refused = () => Promise.reject(new ReveilleError('unavailable', 'the disk is full'));
  const { store, add, until } = start(agent);
  const { begin, finish } = store;
  store.begin = refused;
  await add('t1');
  await eventually('it waits', () => store.turnById('t1')!.waits !== undefined);
  assert.equal(attempts.length, 0);
  store.begin = begin;
  await clock.advance(5000);
  await eventually('it runs', () => attempts.length === 1);
  let refusals = 2;
  store.finish = (...given) => (refusals-- > 0 ? refused() : finish(...given));
  attempts[0]!.end({ status: 'done', reply: 'kept' });
  await eventually('the disk refuses', () => refusals === 1);
  await clock.advance(1000 + 2000);
  await until('t1', 'done');
  assert.equal(store.turnById('t1')!.reply, 'kept');
});
