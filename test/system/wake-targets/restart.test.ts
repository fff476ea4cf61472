import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADMIN_TOKEN, clientOf, isAlive, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { behave, type Call, callsIn, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const ROUTER = fileURLToPath(new URL('../../../src/router/testing/router.fixture.ts', import.meta.url));

/** A router in a process of its own, with a claude whose turn takes its time. */
async function startDoomed(t: TestContext) {
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
      ...{ HOME: home, REVEILLE_HOME: join(home, '.reveille'), ROUTER_DATA_DIR: dataDir, ROUTER_PORT: '0' },
      ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  atEnd(t, () => child.kill('SIGKILL'));
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const client = clientOf(url);
  await client.put('alice', { provider: 'command', spec: { preset: 'claude', cwd: work } });
  const die = async (signal: 'SIGKILL' | 'SIGTERM') => {
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  };
  return { ...client, home, dataDir, die };
}

const firstCall = (home: string): Promise<Call> => eventually('the program runs', () => callsIn(home)[0]);

/** Whether the program is on record: its router may be killed from then on. */
const onRecord = async (doomed: Awaited<ReturnType<typeof startDoomed>>, turnId: string) => {
  const call = await firstCall(doomed.home);
  await eventually('the turn runs', async () => {
    const { json } = await doomed.admin('GET', '/alice/turns');
    const { turns } = json.data as unknown as { turns: { id: string; status: string }[] };
    return turns.some(({ id, status }) => id === turnId && status === 'running');
  });
  return call;
};

describe('a router that is killed while a turn runs', () => {
  test('leaves the program to the next one, which waits for its end', async (t) => {
    const doomed = await startDoomed(t);
    const answer = await doomed.wake('alice');
    const { pid } = await onRecord(doomed, answer.json.data.turn_id!);
    const waiting = await doomed.wake('alice', { message: 'the next' });
    await doomed.die('SIGKILL');
    assert.equal(isAlive(pid), true);
    const bench = await startTargetBench(t, doomed);
    await bench.turn('alice', answer.json.data.turn_id!, 'running');
    assert.equal(callsIn(doomed.home).length, 1);
    writeFileSync(join(doomed.home, 'go'), '');
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'done');
    assert.match(turn.reply ?? '', /^heard/);
    const next = await bench.turn('alice', waiting.json.data.turn_id!, 'done');
    assert.equal(next.session, turn.session);
    assert.equal(callsIn(doomed.home).length, 2);
  });

  test('finds the answer of a program that came to its end meanwhile', async (t) => {
    const doomed = await startDoomed(t);
    const answer = await doomed.wake('alice');
    const { pid } = await onRecord(doomed, answer.json.data.turn_id!);
    await doomed.die('SIGKILL');
    writeFileSync(join(doomed.home, 'go'), '');
    await eventually('the program ends', () => !isAlive(pid));
    const bench = await startTargetBench(t, doomed);
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'done');
    assert.match(turn.reply ?? '', /^heard/);
    assert.equal(callsIn(doomed.home).length, 1);
  });

  test('calls a turn unknown when nothing is left that tells, and does not run it again', async (t) => {
    const doomed = await startDoomed(t);
    const fire_id = '018f3b1c-0000-7000-8000-000000000001@99';
    const answer = await doomed.wake('alice', { fire_id });
    const { pid } = await onRecord(doomed, answer.json.data.turn_id!);
    await doomed.die('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await eventually('the program is gone', () => !isAlive(pid));
    behave(doomed.home);
    const bench = await startTargetBench(t, doomed);
    const turn = await bench.turn('alice', answer.json.data.turn_id!, 'unknown');
    assert.match(turn.error ?? '', /claude ended while no router was running/);
    const repeated = await bench.wake('alice', { fire_id });
    assert.equal(repeated.status, 200);
    assert.match(repeated.text, /"deduped":true/);
    assert.equal((await bench.ring('alice')).status, 'done');
    assert.equal(callsIn(doomed.home).length, 2);
    assert.deepEqual((await bench.turns('alice')).counts, { unknown: 1, done: 1 });
  });
});

test('a router that is stopped ends the programs, and what waits is begun by the next one', async (t) => {
  const doomed = await startDoomed(t);
  const running = await doomed.wake('alice');
  const { pid } = await onRecord(doomed, running.json.data.turn_id!);
  const waiting = await doomed.wake('alice');
  await doomed.die('SIGTERM');
  assert.equal(isAlive(pid), false);
  behave(doomed.home);
  const bench = await startTargetBench(t, doomed);
  const ended = await bench.turn('alice', running.json.data.turn_id!, 'failed');
  assert.match(ended.error ?? '', /claude was ended because the router was stopped/);
  assert.equal((await bench.turn('alice', waiting.json.data.turn_id!, 'done')).attempts, 1);
});
