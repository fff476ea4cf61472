import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';

const run = promisify(execFile);
const homes: string[] = [];
after(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

function environment(more: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'reveille-again-'));
  homes.push(home);
  return {
    PATH: process.env.PATH ?? '',
    REVEILLE_HOME: home,
    CHRONOS_PORT: '0',
    ROUTER_PORT: '0',
    EXECUTOR_PORT: '0',
    ...more,
  };
}

const recordIn = (env: Record<string, string>) =>
  JSON.parse(readFileSync(join(env.REVEILLE_HOME!, 'run.json'), 'utf8'));

/** Runs `up` as a process, until it ends. */
const upOnce = (env: Record<string, string>, ...more: string[]) =>
  run(process.execPath, [PROGRAM, 'up', '--once', ...more], { env });

/** Any other command, which must succeed. */
async function command(env: Record<string, string>, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await reveille(env.REVEILLE_HOME!, args, { env });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** The end of an `up` that cannot start. */
async function refusal(env: Record<string, string>): Promise<string> {
  const { status, stderr } = await reveille(env.REVEILLE_HOME!, ['up', '--once'], { env });
  assert.equal(status, 1);
  return stderr;
}

/** Starts `up` as `npm start` does. @returns a function that ends it as npm does and may be repeated */
async function startUp(env: Record<string, string>): Promise<() => Promise<void>> {
  const shell = spawn('/bin/sh', ['-c', '"$0" "$@"; exit', process.execPath, PROGRAM, 'up', '--json'], {
    env: { ...env, npm_lifecycle_event: 'start' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // Open as long as any process has it open: the shell exits at once.
  const closed = once(shell.stdout.resume(), 'close');
  const end = async () => {
    shell.kill('SIGTERM');
    await closed;
  };
  try {
    await eventuallyBy(shell, 'up is there', () => existsSync(join(env.REVEILLE_HOME!, 'run.json')));
  } catch (error) {
    await end();
    throw error;
  }
  return end;
}

/** Runs `up` during an action. */
async function besideUp(env: Record<string, string>, work: () => Promise<void>): Promise<void> {
  const end = await startUp(env);
  try {
    await work();
  } finally {
    await end();
  }
}

test('with required enrolment "up" enrolls its own key, and fires', async () => {
  const { stdout } = await upOnce(environment({ CHRONOS_ENROLLMENT: 'required' }), '--json');
  assert.equal(JSON.parse(stdout).model, 'offline');
});

describe('a home in which "up" starts again and again', () => {
  const env = environment();
  const neo = [process.execPath, PROGRAM, 'neo'];
  let [budget, own] = [{}, { provider: '' }];
  let refused = '';
  before(async () => {
    const shown = async () => JSON.parse(await command(env, 'machine', 'show', '--json'));
    await besideUp(env, async () => {
      await command(env, 'machine', 'put', '--provider', 'process', '--max-per-day', '7', '--', ...neo);
    });
    await besideUp(env, async () => {
      ({ budget } = await shown());
      await command(env, 'machine', 'put', '--provider', 'http', '--url', 'http://127.0.0.1:9');
    });
    await besideUp(env, async () => {
      own = await shown();
      await command(env, 'agent', 'revoke', '--label', await labelOf(env));
    });
    refused = await refusal(env);
  });

  test('a budget that the user gave Neo is unchanged', () => assert.deepEqual(budget, { wakes_per_day: 7 }));

  test("an agent of the user's own stays the woken one", () => assert.equal(own.provider, 'http'));

  test('when the welcome alarm cannot be set, "up" prints the reason and ends with 1', () =>
    assert.match(refused, /this key was revoked/));
});

test('Neo gets its own settings, secrets by name alone, and not the home', async () => {
  const model = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: 'http://127.0.0.1:9' };
  const workspace = { NEO_WORKSPACE: 'work' };
  const env = environment({ ...model, ...workspace, NEO_MODEL_API_KEY: 'a-key-that-is-nowhere-written-down' });
  await besideUp(env, async () => {
    const stdout = await command(env, 'machine', 'show', '--json');
    const own = JSON.parse(stdout).spec.env as Record<string, string>;
    assert.deepEqual(Object.keys(own).sort(), [
      ...[
        'CHRONOMETRIC_DATA_DIR',
        'MATRIX_CHRONOS_TOKEN',
        'MATRIX_CHRONOS_URL',
        'MATRIX_EXECUTOR_KEYFILE',
        'MATRIX_USER_ID',
      ],
      ...[
        'NEO_DATA_DIR',
        'NEO_EXECUTOR_TOKEN',
        'NEO_EXECUTOR_URL',
        'NEO_MODEL',
        'NEO_MODEL_API_KEY',
        'NEO_MODEL_BASE_URL',
        'NEO_WORKSPACE',
        'NODE_COMPILE_CACHE',
      ],
    ]);
    // By value: the router runs the commands of alarms there.
    assert.equal(own.NEO_WORKSPACE, '[redacted]');
    const tokens = ['MATRIX_CHRONOS_TOKEN', 'NEO_EXECUTOR_TOKEN', 'NEO_MODEL_API_KEY'];
    for (const name of tokens) assert.match(own[name]!, /^\$\{REVEILLE_NEO_[A-Z_]+\}$|^\[redacted\]$/, name);
  });
});

test('a wrong model setting stops the start with its name, not the first wake', async () => {
  assert.match(await refusal(environment({ NEO_MODEL: 'x' })), /NEO_MODEL_BASE_URL is not set, but NEO_MODEL is/);
});

describe('beside a running "up"', () => {
  // This test does not depend on bubblewrap.
  const env = environment({ REVEILLE_SEPARATION: 'off' });
  let end = async () => {};
  before(async () => {
    end = await startUp(env);
  });
  after(() => end());

  test('a second start reports that Reveille runs already, since when and where, and does not disturb it', async () => {
    const run = recordIn(env);
    const output = await refusal(env);
    assert.match(output, new RegExp(`Reveille already runs as process ${run.pid}, since \\d\\d:\\d\\d:\\d\\d`));
    for (const place of [env.REVEILLE_HOME, run.chronos_url, run.router_url, run.executor_url])
      assert.ok(output.includes(place), `${place} is not in ${output}`);
    assert.match(
      output,
      new RegExp(`kill ${run.pid}\\b.*REVEILLE_HOME, CHRONOS_PORT, ROUTER_PORT, ROUTER_PUBLIC_PORT and EXECUTOR_PORT`),
    );
    assert.deepEqual(recordIn(env), run);
  });

  test("a port of this home's chronosd is reported as that of another Reveille", async () => {
    const chronosd = new URL(recordIn(env).chronos_url).port;
    const output = await refusal(environment({ ROUTER_PORT: chronosd }));
    assert.match(output, /there, the chronosd of another Reveille \(.*\); stop it.*ROUTER_PORT/);
  });

  test('the doctor reports no problem, and reports after its end that nothing runs', async () => {
    const stdout = await command(env, 'doctor', '--json');
    const report = JSON.parse(stdout);
    assert.deepEqual(report.running, ['chronosd', 'router', 'executor']);
    const wrong = report.checks.filter(({ status }: { status: string }) => status === 'broken' || status === 'warning');
    assert.deepEqual([wrong, report.ok], [[], true]);
    const output = await command(env, 'doctor');
    assert.match(output, /\nAll is well: \d+ checks; chronosd, router, executor run\.\n$/);
    await end();
    const after = await reveille(env.REVEILLE_HOME, ['doctor'], { env });
    assert.equal(after.status, 3);
    assert.match(after.stdout, /but nothing runs/);
  });
});

test('of simultaneous starts one succeeds, and the others report it', async () => {
  const env = environment();
  const starts = [1, 2, 3].map(() => {
    const child = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    return { child, said: () => output, gone: once(child, 'close') };
  });
  try {
    const running = () => starts.filter(({ child }) => child.exitCode === null);
    await eventually('one is left', () => running().length === 1, START_LIMIT_MS * 2);
    const [winner] = running();
    for (const loser of starts.filter((start) => start !== winner)) {
      await loser.gone;
      assert.equal(loser.child.exitCode, 1);
      assert.match(loser.said(), /Reveille (already runs|is starting)/);
    }
    await eventuallyBy(winner!.child, 'it is there', () => existsSync(join(env.REVEILLE_HOME, 'run.json')), {
      output: winner!.said,
    });
    assert.equal(recordIn(env).pid, winner!.child.pid);
  } finally {
    for (const { child } of starts) child.kill('SIGTERM');
    await Promise.all(starts.map(({ gone: closed }) => closed));
  }
});

test('a port in use is reported with its variable and its listener', async (t) => {
  const other = createServer((_request, response) => response.end('hello'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const port = String((other.address() as AddressInfo).port);
  for (const [name, variable] of [
    ['router', 'ROUTER_PORT'],
    ['router', 'ROUTER_PUBLIC_PORT'],
    ['chronosd', 'CHRONOS_PORT'],
    ['executor', 'EXECUTOR_PORT'],
  ] as const) {
    const output = await refusal(environment({ [variable]: port }));
    assert.match(
      output,
      new RegExp(`^error: ${name} cannot listen on 127.0.0.1:${port}: .*not Reveille.*with ${variable}`),
    );
  }
});

test("a port of a running Reveille with its console is reported as Reveille's", async () => {
  const env = environment({ ROUTER_PUBLIC_PORT: '0' });
  const end = await startUp(env);
  try {
    const { router_url: router, public_url: front } = recordIn(env);
    for (const [variable, url, args] of [
      ['ROUTER_PUBLIC_PORT', front, 'the public listener of another Reveille'],
      ['ROUTER_PORT', router, 'the router of another Reveille \\(.+\\)'],
    ] as const) {
      const output = await refusal(environment({ ROUTER_PUBLIC_PORT: '0', [variable]: new URL(url).port }));
      const process = 'reveille.mjs \\(pid \\d+, user \\d+\\)';
      const shown = globalThis.process.platform === 'linux' ? `: ${process}` : '';
      assert.match(output, new RegExp(`another program listens there, ${args}${shown}; stop it, or .*${variable}`));
      assert.doesNotMatch(output, /is not Reveille|MainThread/);
    }
  } finally {
    await end();
  }
});

async function labelOf(env: Record<string, string>): Promise<string> {
  const stdout = await command(env, 'agent', 'whoami', '--json');
  return JSON.parse(stdout).label;
}
