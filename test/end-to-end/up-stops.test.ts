/**
 * Stops and starts of `reveille up` while a turn of a program runs: the program continues, the next start adopts it, and
 * a start that is refused touches nothing. The owner has edited the welcome alarm meanwhile.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isAlive } from '../../src/router/testing/bench.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { behave, callsIn, endAgents, installAgent } from '../support/stand-ins/agents/executable.ts';
import { atEnd, listening, temporaryFolder } from '../support/temporary.ts';

const LIMIT_MS = 2 * START_LIMIT_MS;

type Alarm = { id: string; label?: string; next_fire_at?: string; fired_count: number };

/** A home whose agent is a stand-in that waits in each turn until the file `go` exists. */
function homeWith(t: TestContext, agent: 'claude' | 'codex' | 'gemini') {
  const home = realpathSync(temporaryFolder(t));
  atEnd(t, () => endAgents(home));
  installAgent(join(home, 'bin'), agent);
  mkdirSync(join(home, 'work'));
  behave(home, { mode: 'wait' });
  const env = {
    PATH: [join(home, 'bin'), process.env.PATH].join(delimiter),
    HOME: home,
    ...{ REVEILLE_HOME: join(home, 'home'), CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' },
    // The stand-ins read and write in the home folder.
    REVEILLE_SEPARATION: 'off',
  };
  const attempt = (...args: string[]) => reveille(env.REVEILLE_HOME, args, { env: { HOME: home } });
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await attempt(...args);
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const alarms = async () => {
    const lines = (await run('alarm', 'list', '--all', '--json')).trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Alarm);
  };
  const start = async (more: NodeJS.ProcessEnv = {}) => {
    const child = spawn(process.execPath, [PROGRAM, 'up'], {
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    atEnd(t, () => child.kill('SIGKILL'));
    const exited = once(child, 'exit');
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const isStarted = () => {
      if (child.exitCode !== null) assert.fail(`up ended with ${child.exitCode}: ${output}`);
      return output.includes('Ctrl-C');
    };
    const end = async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await exited;
      return child.exitCode;
    };
    return { greets: () => eventually('up greets', isStarted, LIMIT_MS), said: () => output, exited, child, end };
  };
  /** The calls of the stand-in for a message. */
  const callsOf = (message: string) => callsIn(home).filter(({ argv, stdin }) => `${argv} ${stdin}`.includes(message));
  const put = () => run('machine', 'put', '--provider', agent, '--dir', join(home, 'work'));
  return { home, run, attempt, alarms, start, callsOf, put };
}

/** A first start whose welcome alarm is relabelled and postponed before it fires. */
async function startEdited(t: TestContext, agent: 'claude' | 'codex' | 'gemini') {
  for (;;) {
    const place = homeWith(t, agent);
    const up = await place.start();
    await up.greets();
    const [welcome] = await place.alarms();
    const { status } = await place.attempt('alarm', 'edit', welcome!.id, '--in', '30d', '--label', 'mine');
    if (status === 0) {
      await place.put();
      return { ...place, up };
    }
    t.diagnostic('the welcome alarm has fired before it could be edited');
    await up.end('SIGTERM');
  }
}

/** Sets an alarm that is due at once, and waits until its turn runs. */
async function startTurn({ run, callsOf }: Awaited<ReturnType<typeof startEdited>>, message: string) {
  const { id } = JSON.parse(await run('alarm', 'set', message, '--in', '1s', '--json')) as Alarm;
  const { pid } = await eventually('the turn runs', () => callsOf(message)[0]);
  const isShown = async () => /"status":"running"/.test(await run('machine', 'turns', '--json'));
  await eventually('the turn is on record', isShown);
  return { id, pid };
}

const STOPPING = /Stopping: one running turn continues without Reveille; the next start shows its outcome\./;

for (const [agent, signal] of [
  ['claude', 'SIGTERM'],
  ['codex', 'SIGINT'],
  ['gemini', 'SIGKILL'],
] as const) {
  test(`${signal} leaves a turn of ${agent} running, the next start adopts it and shows its reply once`, async (t) => {
    const place = await startEdited(t, agent);
    const { up, run, start, callsOf, alarms, home } = place;
    const { id, pid } = await startTurn(place, 'a long turn');
    const status = await up.end(signal);
    if (signal !== 'SIGKILL') {
      assert.equal(status, 0, up.said());
      assert.match(up.said(), STOPPING);
    }
    assert.ok(isAlive(pid), 'the program continues');
    const next = await start();
    await next.greets();
    assert.deepEqual(
      (await alarms()).map(({ label }) => label ?? '').sort(),
      ['', 'mine'],
      'there is no second welcome alarm',
    );
    writeFileSync(join(home, 'go'), '');
    const replies = () => next.said().match(/│ heard \d+ bytes/g) ?? [];
    await eventually('the reply is shown', () => replies().length > 0, LIMIT_MS);
    await next.end('SIGTERM');
    assert.equal(replies().length, 1, next.said());
    const last = await start();
    await last.greets();
    assert.equal(callsOf('a long turn').length, 1);
    const { fires } = JSON.parse(await run('alarm', 'show', id, '--json'));
    assert.deepEqual(
      fires.map(({ outcome }: { outcome: string }) => outcome),
      ['delivered'],
    );
    assert.doesNotMatch(last.said(), /heard|fired/);
  });
}

test('a refused start fires nothing and leaves a running turn alone; the next one fires each due turn once', async (t) => {
  const place = await startEdited(t, 'claude');
  const { up, run, start, callsOf, home } = place;
  const turn = await startTurn(place, 'a long turn');
  const set = await run('alarm', 'set', 'due meanwhile', '--in', '8s', '--json');
  const { id, next_fire_at: dueAt } = JSON.parse(set) as Alarm;
  await up.end('SIGKILL');
  assert.equal(callsOf('due meanwhile').length, 0);
  await eventually('it is overdue', () => Date.now() > Date.parse(dueAt!), LIMIT_MS);
  const other = new URL(await listening(t, createServer()));
  const refused = await start({ EXECUTOR_PORT: other.port });
  const [status] = await refused.exited;
  assert.equal(status, 1, refused.said());
  assert.match(refused.said(), /executor cannot listen on/);
  assert.ok(isAlive(turn.pid), 'the program continues');
  assert.equal(callsOf('due meanwhile').length, 0);
  const next = await start();
  await next.greets();
  writeFileSync(join(home, 'go'), '');
  const replies = () => next.said().match(/│ heard \d+ bytes/g) ?? [];
  await eventually('both replies are shown', () => replies().length === 2, LIMIT_MS);
  for (const message of ['a long turn', 'due meanwhile']) assert.equal(callsOf(message).length, 1, message);
  for (const alarm of [turn.id, id]) {
    const { fires } = JSON.parse(await run('alarm', 'show', alarm, '--json'));
    assert.deepEqual(
      fires.map(({ outcome }: { outcome: string }) => outcome),
      ['delivered'],
    );
  }
});
