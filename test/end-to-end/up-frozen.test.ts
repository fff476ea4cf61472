/**
 * A `reveille up` that runs without answering: stopped by a signal, swapped out, or blocked. No command waits for it
 * for long.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Check } from '../../src/cli/doctor/check.ts';
import { buildProgram } from '../../src/cli/tree/program.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';

const home = mkdtempSync(join(tmpdir(), 'reveille-frozen-'));
const env = {
  PATH: process.env.PATH ?? '',
  HOME: home,
  REVEILLE_HOME: join(home, 'home'),
  CHRONOS_PORT: '0',
  ROUTER_PORT: '0',
  EXECUTOR_PORT: '0',
};

const ALARM = '018f3b1c-0000-7000-8000-000000000001';
const INTENT = '018f3b1c-0000-7000-8000-000000000002';
const FOR_CHRONOSD = [
  'alarm backfill 019ed2b4 --from 2026-11-20',
  'agent rotate',
  'agent orphans',
  'agent reown alice --to bob',
  'alarm set hello --in 1h',
  'alarm list',
  `alarm show ${ALARM}`,
  `alarm cancel ${ALARM}`,
  `alarm pause ${ALARM}`,
  `alarm resume ${ALARM}`,
  `alarm trigger ${ALARM}`,
  `alarm redrive ${ALARM}`,
  `alarm edit ${ALARM} --in 2h`,
  'alarm watch',
  `alarm watch --id ${ALARM}`,
  'agent list',
  'agent enroll',
  'agent revoke --label somebody',
  'calendar feed add phone',
  'calendar feed list',
  'calendar feed revoke 3f9a10c25d7e',
  `import crontab ${join(home, 'crontab')} --apply`,
  'log',
];
const FOR_THE_ROUTER = [
  'machine put --provider http --url http://127.0.0.1:9',
  'machine list',
  'machine show',
  'machine turns',
  'machine budget',
  'machine history',
  'machine rotate-token somebody',
  'machine suspend somebody',
  'machine restore somebody',
  'machine delete somebody',
  'user add somebody',
  'user token somebody',
  'user revoke somebody',
  'user list',
];
const FOR_THE_AGENT = ['chat hello', 'neo question list', `neo question answer ${INTENT} city=Bonn`];
const FOR_THE_EXECUTOR = [
  'intent submit hello',
  'intent list',
  `intent show ${INTENT}`,
  `intent approve ${INTENT}`,
  `intent deny ${INTENT}`,
  `intent cancel ${INTENT}`,
  `intent reconcile ${INTENT}`,
  `intent receipt ${INTENT}`,
  `intent watch ${INTENT}`,
  'approver list',
  'approver enroll',
  'approver revoke 6b3f9a10',
  'submitter add my-agent',
  'submitter list',
  `submitter revoke ${INTENT}`,
];
/** Ends by itself without a daemon. */
const WITHOUT_A_DAEMON = [
  'alarm preview tomorrow',
  'calendar add office receipt.json',
  'calendar list',
  'calendar remove office',
  'agent whoami',
  'approver show',
  'init',
  'approver reset --user somebody',
  'approver seal',
  'approver unseal',
  'memory list',
  'memory forget --all --yes',
  'memory export',
  'migrate --dry-run --to postgres://nobody@127.0.0.1:1/none',
  'policy check',
  'policy explain',
  'profile check',
  'profile init',
  `receipt verify ${join(home, 'receipt.json')}`,
  'time',
  'time hook',
  'tools pin',
  'neo tools',
  'neo server add notes -- /nowhere/to-be-found',
  'neo server review',
  'neo server remove notes',
  'neo server login notes --no-browser',
  'neo server logout notes',
  'client list',
  'client revoke 3f9a10c25d7e',
  'events list',
  'mcp --selftest',
  'notify add command --name bell -- true',
  'notify list',
  'notify test bell',
  'notify remove bell',
  'open --print',
  'spread --buckets 2 --to postgres://nobody@127.0.0.1:1/none',
  'reshard --buckets 2 --to postgres://nobody@127.0.0.1:1/none',
  'config',
  'docs --print',
  'help',
  'logs',
  'status',
  'doctor',
  'completion bash',
  'connect claude --print',
  'backup --check /nowhere/to-be-found',
  'restore /nowhere/to-be-found',
  'service install --print',
  'service status',
  'service logs',
  'service restart',
  'service settle',
  'service uninstall',
  'service wake',
  'upgrade /nowhere/to-be-found.tgz',
];
/** Daemons, which keep running, and `stop`, which would end the process; `up` has its own test below. */
const STAYS = [
  'stop',
  'up',
  'chronosd',
  'router',
  'executor',
  'neo',
  'ledger',
  'chronometric',
  'capability',
  'mcp',
  'mcp channel',
  'executor mcp',
  'notifier',
];

let up: ChildProcess;

before(async () => {
  up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  await eventuallyBy(up, 'up is there', () => existsSync(join(env.REVEILLE_HOME, 'run.json')));
  // Until its own first alarm it waits for itself.
  const isStarted = async () => /welcome/.test((await reveille(home, ['alarm', 'list', '--all'], { env })).stdout);
  await eventuallyBy(up, 'its welcome alarm is set', isStarted);
  writeFileSync(join(home, 'receipt.json'), '{}');
  writeFileSync(join(home, 'crontab'), '0 9 * * 1 echo hello\n');
  up.kill('SIGSTOP');
});
after(async () => {
  up.kill('SIGCONT');
  up.kill('SIGTERM');
  if (up.exitCode === null) await once(up, 'exit');
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});

type Outcome = { status: number | null; stderr: string };

/** Runs a command, which ends long before the timeout of a request to the frozen process. */
async function outcomeOf(commandLine: string): Promise<Outcome> {
  const ended = await Promise.race([
    reveille(home, commandLine.split(' '), { env }),
    delay(90_000, undefined, { ref: false }),
  ]);
  return ended ?? assert.fail(`reveille ${commandLine} did not end`);
}

/** All at once: each one mostly waits. */
async function ofAll(
  commands: readonly string[],
  assertOutcome: (commandLine: string, ended: Outcome) => void,
): Promise<void> {
  await Promise.all(commands.map(async (commandLine) => assertOutcome(commandLine, await outcomeOf(commandLine))));
}

for (const [daemon, commands] of [
  ['chronosd', FOR_CHRONOSD],
  ['the router', FOR_THE_ROUTER],
  ['your agent', FOR_THE_AGENT],
  ['the executor', FOR_THE_EXECUTOR],
] as const) {
  test(`commands for ${daemon} report that it listens without answering, and how to wake it`, async () => {
    await ofAll(commands, (commandLine, { status, stderr }) => {
      assert.equal(status, 1, `reveille ${commandLine}: ${stderr}`);
      const job = commandLine.startsWith('import ') ? 'crontab job \\w+: ' : '';
      const expectedError = new RegExp(
        `^error: ${job}${daemon} at http:\\S+ listens, but does not answer \\(for \\d+ s\\): (.*)\\n$`,
      );
      const [, remedy] = expectedError.exec(stderr) ?? assert.fail(`reveille ${commandLine}: ${stderr}`);
      if (/^intent submit/.test(commandLine))
        assert.match(remedy!, /unknown whether your task was accepted.*--idempotency-key/);
      if (process.platform === 'linux') assert.match(remedy!, new RegExp(`is stopped; .*: kill -CONT ${up.pid}`));
    });
  });
}

test('doctor reports each daemon as broken, and how to wake it', async () => {
  const { status, stdout } = await reveille(home, ['doctor', '--json'], { env });
  assert.equal(status, 1);
  const { checks, ok } = JSON.parse(stdout) as { checks: Check[]; ok: boolean };
  assert.equal(ok, false);
  for (const name of ['chronosd', 'router', 'executor']) {
    const check = checks.find((one) => one.name === name);
    assert.equal(check?.status, 'broken', name);
    assert.match(check!.detail, /^http:\S+ listens, but does not answer$/);
    if (process.platform === 'linux') assert.match(check!.remedy!, new RegExp(`is stopped; .*: kill -CONT ${up.pid}`));
  }
});

test('commands without a daemon do not wait for one', async () => {
  await ofAll(WITHOUT_A_DAEMON, (commandLine, { stderr }) =>
    assert.doesNotMatch(stderr, /does not answer/, commandLine),
  );
});

test('every command is in one of the lists of this file', () => {
  const leaves = (command: Command, path: string): string[] =>
    command.commands.flatMap((child) => {
      const name = `${path}${child.name()}`;
      const own = child.commands.length === 0 || ['neo', 'time'].includes(name) ? [name] : [];
      return [...own, ...leaves(child, `${name} `)];
    });
  const listed = [
    ...FOR_CHRONOSD,
    ...FOR_THE_ROUTER,
    ...FOR_THE_AGENT,
    ...FOR_THE_EXECUTOR,
    ...WITHOUT_A_DAEMON,
    ...STAYS,
  ];
  const missing = leaves(buildProgram(process), '').filter(
    (name) => !listed.some((commandLine) => commandLine === name || commandLine.startsWith(`${name} `)),
  );
  assert.deepEqual(
    missing,
    [],
    'add a new command to this file with its daemon, so that it is tried against a frozen one',
  );
});

test('a watch continues when the process does', async () => {
  up.kill('SIGCONT');
  const watch = spawn(process.execPath, [PROGRAM, 'alarm', 'watch'], { env, stdio: 'pipe' });
  let expectedError = '';
  for (const stream of [watch.stdout, watch.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      expectedError += text;
    });
  try {
    await eventually('it watches', () => /Watching/.test(expectedError), START_LIMIT_MS).catch((error: Error) =>
      assert.fail(`${error.message}: ${expectedError} (up: ${up.exitCode} ${up.signalCode})`),
    );
    up.kill('SIGSTOP');
    await eventually('it says so', () => /chronosd does not answer/.test(expectedError), START_LIMIT_MS);
    up.kill('SIGCONT');
    await eventually('it says so', () => /answers again/.test(expectedError), START_LIMIT_MS);
  } finally {
    watch.kill('SIGKILL');
    up.kill('SIGSTOP');
  }
});
