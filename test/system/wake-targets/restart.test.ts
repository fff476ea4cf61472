import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADMIN_TOKEN, clientOf, isAlive, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { firstLine } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { behave, type Call, callsIn, endAgents, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const ROUTER = fileURLToPath(new URL('../../../src/router/testing/router.fixture.ts', import.meta.url));

/** A router in a process of its own, with a claude whose turn takes its time. */
async function startKillableRouter(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  const dataDir = join(home, 'router');
  const work = join(home, 'work');
  mkdirSync(work);
  installAgent(join(home, 'bin'), 'claude');
  behave(home, { mode: 'wait' });
  const child = spawn(process.execPath, [...LEAN, ROUTER], {
    env: {
      PATH: `${join(home, 'bin')}:/usr/bin:/bin`,
      ...COMPILED,
      ...{
        HOME: home,
        REVEILLE_HOME: join(home, '.reveille'),
        ROUTER_DATA_DIR: dataDir,
        ROUTER_PORT: '0',
        ROUTER_PUBLIC_PORT: '0',
      },
      ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  atEnd(t, () => {
    child.kill('SIGKILL');
    endAgents(home);
  });
  const url = await firstLine(child);
  const client = clientOf(url);
  await client.put('alice', { provider: 'command', spec: { preset: 'claude', cwd: work } });
  const die = async (signal: NodeJS.Signals) => {
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return { ...client, home, dataDir, die };
}

const firstCall = (home: string): Promise<Call> => eventually('the program runs', () => callsIn(home)[0]);

/** Whether the program is recorded: its router may be killed from then on. */
const onRecord = async (killed: Awaited<ReturnType<typeof startKillableRouter>>, turnId: string) => {
  const call = await firstCall(killed.home);
  await eventually('the turn runs', async () => {
    const { json } = await killed.admin('GET', '/alice/turns');
    const { turns } = json.data as unknown as { turns: { id: string; status: string }[] };
    return turns.some(({ id, status }) => id === turnId && status === 'running');
  });
  return call;
};

describe('a router that is killed while a turn runs', () => {
  test('leaves the program to the next one, which waits for its end', async (t) => {
    const killed = await startKillableRouter(t);
    const answer = await killed.wake('alice');
    const { pid } = await onRecord(killed, answer.json.data.turn_id!);
    const waiting = await killed.wake('alice', { message: 'the next' });
    await killed.die('SIGKILL');
    assert.equal(isAlive(pid), true);
    const bench = await startTargetBench(t, killed);
    await bench.turn('alice', answer.json.data.turn_id!, 'running');
    assert.equal(callsIn(killed.home).length, 1);
    writeFileSync(join(killed.home, 'go'), '');
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'done');
    assert.match(turn.reply ?? '', /^heard/);
    const next = await bench.turn('alice', waiting.json.data.turn_id!, 'done');
    assert.equal(next.session, turn.session);
    assert.equal(callsIn(killed.home).length, 2);
  });

  test('finds the answer of a program that ended meanwhile', async (t) => {
    const killed = await startKillableRouter(t);
    const answer = await killed.wake('alice');
    const { pid } = await onRecord(killed, answer.json.data.turn_id!);
    await killed.die('SIGKILL');
    writeFileSync(join(killed.home, 'go'), '');
    await eventually('the program ends', () => !isAlive(pid));
    const bench = await startTargetBench(t, killed);
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'done');
    assert.match(turn.reply ?? '', /^heard/);
    assert.equal(callsIn(killed.home).length, 1);
  });

  test('records a turn as unknown when no trace of it remains, and does not run it again', async (t) => {
    const killed = await startKillableRouter(t);
    const fire_id = '018f3b1c-0000-7000-8000-000000000001@99';
    const answer = await killed.wake('alice', { fire_id });
    const { pid } = await onRecord(killed, answer.json.data.turn_id!);
    await killed.die('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await eventually('the program has ended', () => !isAlive(pid));
    behave(killed.home);
    const bench = await startTargetBench(t, killed);
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'unknown');
    assert.match(turn.error ?? '', /claude ended while no router was running/);
    const repeated = await bench.wake('alice', { fire_id });
    assert.equal(repeated.status, 200);
    assert.match(repeated.text, /"deduped":true/);
    assert.equal((await bench.wakeToEnd('alice')).status, 'done');
    assert.equal(callsIn(killed.home).length, 2);
    assert.deepEqual((await bench.turns('alice')).counts, { unknown: 1, done: 1 });
  });
});

const AGENTS = { alice: 'claude', bob: 'codex', carol: 'gemini' } as const;
const USERS = Object.keys(AGENTS) as (keyof typeof AGENTS)[];

for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL'] as const) {
  test(`${signal} leaves the running turns of claude, codex and gemini to the next router: one start, one end, one result`, async (t) => {
    const stopped = await startKillableRouter(t);
    for (const user of USERS) {
      installAgent(join(stopped.home, 'bin'), AGENTS[user]);
      await stopped.put(user, { provider: 'command', spec: { preset: AGENTS[user], cwd: join(stopped.home, 'work') } });
    }
    const running = await Promise.all(USERS.map((user) => stopped.wake(user)));
    const waiting = await stopped.wake('alice', { message: 'the next' });
    const pids = await eventually('all programs run', () => {
      const calls = callsIn(stopped.home);
      return calls.length === USERS.length && calls.map(({ pid }) => pid);
    });
    await stopped.die(signal);
    assert.deepEqual(pids.map(isAlive), [true, true, true]);
    const bench = await startTargetBench(t, stopped);
    for (const [index, user] of USERS.entries()) await bench.turn(user, running[index]!.json.data.turn_id!, 'running');
    // Stopped again: also an adopted turn is left.
    await bench.close();
    assert.deepEqual(pids.map(isAlive), [true, true, true]);
    const last = await startTargetBench(t, stopped);
    writeFileSync(join(stopped.home, 'go'), '');
    for (const [index, user] of USERS.entries()) {
      const turn = await last.turn(user, running[index]!.json.data.turn_id!, 'done');
      assert.match(turn.reply ?? '', /heard \d+ bytes$/);
      assert.equal(turn.attempts, 1);
    }
    assert.equal((await last.turn('alice', waiting.json.data.turn_id!, 'done')).attempts, 1);
    assert.equal(callsIn(stopped.home).length, USERS.length + 1);
    for (const user of USERS) assert.deepEqual((await last.turns(user)).counts, { done: user === 'alice' ? 2 : 1 });
  });
}
