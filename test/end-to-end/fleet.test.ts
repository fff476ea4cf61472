/** The README's setup for a team: one configuration, three daemons, one command for many agents. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { Daemon } from '../support/cluster/daemon.ts';
import { type Outcome, reveille } from '../support/command-line.ts';
import { reservePort } from '../support/ports.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { sharedOwner, temporaryFolder } from '../support/temporary.ts';

const AGENTS = 50;
const owner = sharedOwner();
const home = join(temporaryFolder(owner), 'fleet');
const agents = join(temporaryFolder(owner), 'agents');
const roster = join(temporaryFolder(owner), 'agents.jsonl');
const label = (at: number) => `agent-${at + 1}`;
let postgres: PostgresServer;
let ports: Record<string, string>;
const daemons: Daemon[] = [];

/** A command of the operator. */
const operator = (...args: string[]) => reveille(home, args, { env: ports });
const recordsOf = ({ stdout }: Outcome) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const modeOf = (file: string) => statSync(file).mode & 0o777;

before(async () => {
  postgres = await startPostgres();
  const names = ['CHRONOS_PORT', 'ROUTER_PORT', 'ROUTER_PUBLIC_PORT', 'EXECUTOR_PORT'];
  ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, String(await reservePort())])));
});
after(async () => {
  await Promise.all(daemons.map((daemon) => daemon.end()));
  await postgres.remove();
  await owner.end();
});

describe('a fleet', { concurrency: false }, () => {
  test('init writes a configuration with which the three daemons start, and does not overwrite one', async () => {
    const wrong = await operator('init', '--postgres', 'mysql://db/chronos');
    assert.match(wrong.stderr, /CHRONOS_POSTGRES_URI must begin with postgres:\/\//);
    assert.ok(!existsSync(join(home, 'config.yaml')));
    const made = await operator('init', '--postgres', postgres.uri(await postgres.createDatabase()));
    assert.equal(made.status, 0, made.stderr);
    const file = join(home, 'config.yaml');
    const text = readFileSync(file, 'utf8');
    assert.equal(modeOf(file), 0o600);
    for (const [, name] of text.matchAll(/^([A-Z_]+):/gm))
      assert.match(text, new RegExp(`^# .+\\n${name}:`, 'm'), `${name} has a comment`);
    const again = await operator('init', '--postgres', 'postgres://other/chronos');
    assert.deepEqual([again.status, /exists and was not changed/.test(again.stderr)], [1, true]);
    assert.equal(readFileSync(file, 'utf8'), text);
    const other = join(temporaryFolder(owner), 'other');
    const force = () => reveille(other, ['init', '--postgres', 'postgres://db/chronos', '--force']);
    const secrets = new Set<string>();
    for (let round = 0; round < 2; round++) {
      const { status, stderr } = await force();
      assert.equal(status, 0, stderr);
      assert.equal(modeOf(join(other, 'config.yaml')), 0o600);
      secrets.add(/^CHRONOS_TOKEN: .*$/m.exec(readFileSync(join(other, 'config.yaml'), 'utf8'))![0]);
    }
    assert.equal(secrets.size, 2);
    for (const [name, port] of [
      ['chronosd', 'CHRONOS_PORT'],
      ['router', 'ROUTER_PORT'],
      ['executor', 'EXECUTOR_PORT'],
    ] as const) {
      const url = `http://127.0.0.1:${ports[port]}`;
      const env = { REVEILLE_HOME: home, HOME: home, ...ports };
      const daemon = new Daemon({ name, command: [name], env, url, logFile: join(home, `${name}.log`) });
      daemons.push(daemon);
      await daemon.start();
    }
  });

  test('with one wrong line in the file, nothing is enrolled', async () => {
    const key = generateKey().publicKeyHex;
    const lines = [
      `{"label":"a","public_key":"${key}"}`,
      '{"label":"b c"}',
      'x',
      `{"label":"a","public_key":"${key}"}`,
    ];
    writeFileSync(roster, lines.join('\n'));
    const { status, stderr } = await operator('agent', 'enroll', '--from', roster);
    assert.equal(status, 2);
    assert.match(
      stderr,
      /nothing was enrolled: line 2: label .*; line 3: must be a JSON object.*; line 4: duplicate of line 1/,
    );
    writeFileSync(roster, '{"label":"a"}\n');
    const keyless = await operator('agent', 'enroll', '--from', roster);
    assert.match(keyless.stderr, /line 1: public_key is missing; --output <folder> creates a key/);
    assert.equal((await operator('agent', 'list', '--json')).stdout, '');
  });

  test(`one command enrols ${AGENTS} agents, and each sets an alarm with its written credentials`, async () => {
    writeFileSync(
      roster,
      Array.from({ length: AGENTS }, (_, at) => `${JSON.stringify({ label: label(at) })}\n`).join(''),
    );
    const enrolled = await operator('agent', 'enroll', '--from', roster, '--output', agents, '--json');
    assert.equal(enrolled.status, 0, enrolled.stderr);
    assert.deepEqual(
      recordsOf(enrolled).map(({ line, label: name, result }) => [line, name, result]),
      Array.from({ length: AGENTS }, (_, at) => [at + 1, label(at), 'enrolled']),
    );
    for (const name of globSync('*/{config.yaml,keys/agent.key}', { cwd: agents }))
      assert.equal(modeOf(join(agents, name)), 0o600, name);
    const ids = new Set<string>();
    for (let at = 0; at < AGENTS; at++) {
      const set = await reveille(join(agents, label(at)), [
        'alarm',
        'set',
        `I am ${label(at)}`,
        '--in',
        '1h',
        '--json',
      ]);
      assert.equal(set.status, 0, set.stderr);
      ids.add(JSON.parse(set.stdout).id);
    }
    assert.equal(ids.size, AGENTS);
    const own = await reveille(join(agents, label(7)), ['alarm', 'list', '--json']);
    assert.deepEqual(
      recordsOf(own).map(({ wake_message: message }) => message),
      [`I am ${label(7)}`],
    );
  });

  test('the same command again changes nothing; a revoked key stays revoked and is reported', async () => {
    const again = await operator('agent', 'enroll', '--from', roster, '--output', agents, '--json');
    assert.equal(again.status, 0, again.stderr);
    assert.ok(recordsOf(again).every(({ result }) => result === 'already'));
    await operator('agent', 'revoke', '--label', label(3));
    const third = await operator('agent', 'enroll', '--from', roster, '--output', agents, '--json');
    assert.equal(third.status, 1);
    assert.match(third.stderr, new RegExp(`1 of ${AGENTS} lines failed`));
    const failed = recordsOf(third).filter(({ result }) => result === 'failed');
    assert.deepEqual([failed.length, failed[0].label], [1, label(3)]);
    assert.match(failed[0].error, /^the key was revoked at /);
  });

  test('a configuration with manual changes is left unchanged, and its line is reported', async () => {
    const file = join(agents, label(0), 'config.yaml');
    const changed = `${readFileSync(file, 'utf8')}# mine\n`;
    writeFileSync(file, changed);
    const { status, stdout } = await operator('agent', 'enroll', '--from', roster, '--output', agents);
    assert.equal(status, 1);
    assert.match(stdout, new RegExp(`^line 1 {2}${label(0)} {2}failed: .*config\\.yaml has other content`, 'm'));
    assert.equal(readFileSync(file, 'utf8'), changed);
  });
});
