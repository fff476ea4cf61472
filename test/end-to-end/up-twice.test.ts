import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { PROGRAM, START_LIMIT_MS, until } from '../house/processes.ts';

const run = promisify(execFile);
const homes: string[] = [];
after(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

function environment(more: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'reveille-again-'));
  homes.push(home);
  return {
    PATH: process.env.PATH,
    REVEILLE_HOME: home,
    CHRONOS_PORT: '0',
    ROUTER_PORT: '0',
    EXECUTOR_PORT: '0',
    ...more,
  };
}

const reveille = (env: NodeJS.ProcessEnv, ...args: string[]) => run(process.execPath, [PROGRAM, ...args], { env });

/** Runs `up` while something is done beside it. */
async function besideUp(env: NodeJS.ProcessEnv, work: () => Promise<void>): Promise<void> {
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const gone = once(up, 'exit');
  try {
    await until('up is there', () => existsSync(join(env.REVEILLE_HOME!, 'run.json')), START_LIMIT_MS);
    await work();
  } finally {
    up.kill('SIGTERM');
    await gone;
  }
}

test('with required enrolment "up" lets its own key in, and rings', async () => {
  const { stdout } = await reveille(environment({ CHRONOS_ENROLLMENT: 'required' }), 'up', '--once', '--json');
  assert.equal(JSON.parse(stdout).model, 'offline');
});

test('when the welcome alarm cannot be set, "up" says why and ends with 1', async () => {
  const env = environment();
  await besideUp(env, async () => {
    await reveille(env, 'agent', 'revoke', '--label', await labelOf(env));
  });
  await assert.rejects(reveille(env, 'up', '--once'), (error: Error & { code: number; stderr: string }) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /not enrolled/);
    return true;
  });
});

test('an agent of the user\'s own stays the one that is woken when "up" starts again', async () => {
  const env = environment();
  await besideUp(env, async () => {
    await reveille(env, 'machine', 'put', '--provider', 'http', '--url', 'http://127.0.0.1:9');
  });
  await besideUp(env, async () => {
    const { stdout } = await reveille(env, 'machine', 'show', '--json');
    assert.equal(JSON.parse(stdout).provider, 'http');
  });
});

test('a budget that the user gave Neo is still there when "up" starts again', async () => {
  const env = environment();
  await besideUp(env, async () => {
    const neo = [process.execPath, PROGRAM, 'neo'];
    await reveille(env, 'machine', 'put', '--provider', 'process', '--max-per-day', '7', '--', ...neo);
  });
  await besideUp(env, async () => {
    const { stdout } = await reveille(env, 'machine', 'show', '--json');
    assert.deepEqual(JSON.parse(stdout).budget, { wakes_per_day: 7 });
  });
});

test('a wrong model setting stops the start with its name, not the first wake', async () => {
  await assert.rejects(
    reveille(environment({ NEO_MODEL: 'x' }), 'up', '--once'),
    (error: Error & { stderr: string }) => {
      assert.match(error.stderr, /NEO_MODEL_BASE_URL is not set, but NEO_MODEL is/);
      return true;
    },
  );
});

async function labelOf(env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await reveille(env, 'agent', 'whoami', '--json');
  return JSON.parse(stdout).label;
}
