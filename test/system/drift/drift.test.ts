/**
 * Manifest, registry and skill that disagree, found by each daemon before it reports ready: in processes, from a copy
 * of the package whose files have drifted.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const owner = sharedOwner();
let copy: string;
let home: string;

before(() => {
  copy = temporaryFolder(owner);
  home = temporaryFolder(owner);
  for (const part of ['bin', 'src', 'agents', 'skills', 'examples', 'package.json'])
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
});
after(() => owner.end());

const SECRET = 'a-secret-of-the-tests';

/** Starts a command of the copy. Its compile cache stays there. */
const start = (args: string[], env: Record<string, string>) =>
  spawn(process.execPath, [join(copy, 'bin', 'reveille.mjs'), ...args], {
    env: {
      ...{ PATH: process.env.PATH, HOME: home, REVEILLE_HOME: join(home, 'r') },
      ...{ NODE_COMPILE_CACHE: join(copy, 'compiled'), REVEILLE_SEPARATION: 'off' },
      ...{ NEO_DAEMON_TOKEN: SECRET, EXECUTOR_TOKEN: `${SECRET}-1`, EXECUTOR_ADMIN_TOKEN: `${SECRET}-2` },
      ...{ NEO_PORT: '0', EXECUTOR_PORT: '0', CHRONOS_PORT: '0', ROUTER_PORT: '0' },
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

/** Runs a command of the copy to its end, which must come at once. */
async function run(args: string[], env: Record<string, string> = {}) {
  const child = start(args, env);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await ended, output: out + err };
}

/** Changes a file of the copy while a function runs. */
async function drifted<T>(file: string, change: (text: string) => string, use: () => Promise<T>): Promise<T> {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  assert.notEqual(changed, text);
  writeFileSync(path, changed);
  try {
    return await use();
  } finally {
    writeFileSync(path, text);
  }
}

const NEITHER = /"alarm_ls" is declared in the manifest, but the server does not have it/;
const NOR = /"alarm_list" is not declared in the manifest/;

describe('drift is found before anything is ready', () => {
  test('in a manifest: by Neo without a model and with one, by up, by the proxy and by its self-test', async () => {
    await drifted(
      'agents/neo.json',
      (text) => text.replace('"alarm_list"', '"alarm_ls"'),
      async () => {
        const model = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: 'http://127.0.0.1:9', NEO_DATA_DIR: join(home, 'm') };
        const runs = await Promise.all([run(['neo']), run(['neo'], model)]);
        runs.push(await run(['up', '--once'], { REVEILLE_HOME: join(home, 'up') }));
        for (const { status, output } of runs) {
          assert.equal(status, 1, output);
          assert.match(output, NEITHER);
          assert.match(output, NOR);
          assert.doesNotMatch(output, /is ready/);
        }
        for (const args of [['mcp'], ['mcp', '--selftest']]) {
          const { status, output } = await run(args);
          assert.equal(status, 1, output);
          assert.match(output, /differs: \S+agents\/neo\.json: alarm_ls is not a chronos tool/);
          assert.match(output, /differs: \S+agents\/neo\.json: alarm_list is missing/);
        }
      },
    );
  });

  test('in a registry: another definition behind the same names, which the pins detect', async () => {
    const { status, output } = await drifted(
      'src/chronos-mcp/chronos-tools.json',
      (text) => text.replace('"description": "', '"description": "Now. '),
      () => run(['neo']),
    );
    assert.equal(status, 1, output);
    assert.match(output, /server "chronos": "alarm_\w+" differs in description or schema from the pinned definition/);
  });

  test('in a skill: each tool that is missing in the manifest, with its line', async () => {
    const skill = join(copy, 'skills', 'assistant', 'SKILL.mtx');
    const { status, output } = await drifted(
      'skills/assistant/SKILL.mtx',
      (text) =>
        text.replace(
          'alarm_list@0.1.0',
          'alarm_ls@0.1.0\n  matrix://tool/mcp/chronos/alarm_set@9\n  matrix://tool/mcp/web/x@1',
        ),
      () => run(['neo'], { NEO_SKILL: skill }),
    );
    assert.equal(status, 1, output);
    for (const part of ['names the tool "alarm_ls"', 'names version 9', 'names the server "web"'])
      assert.ok(output.includes(part), output);
  });

  test('in a required file: without it the proxy would not start, and the agent have no alarms', async () => {
    const ends = await drifted(
      'skills/assistant/SKILL.mtx',
      (text) => text.replace('alarm_list@0.1.0', 'alarm_ls@0.1.0'),
      () => Promise.all([run(['neo']), run(['executor'], { REVEILLE_HOME: join(home, 'y') })]),
    );
    for (const { status, output } of ends) {
      assert.equal(status, 1, output);
      assert.match(output, /assistant\/SKILL\.mtx: alarm_ls is not a chronos tool\n.*alarm_list is missing/);
      assert.doesNotMatch(output, /is ready/);
    }
  });

  test('in the manifest of the executor', async () => {
    const { status, output } = await drifted(
      'agents/executor.json',
      (text) => text.replaceAll(/"(name|tool)": "accounts"/g, '"$1": "balances"'),
      () => run(['executor'], { REVEILLE_HOME: join(home, 'x') }),
    );
    assert.equal(status, 1, output);
    assert.match(output, /"balances" is declared in the manifest/);
    assert.match(output, /"accounts" is/);
  });

  test('a server that cannot start is not drift: Neo reports it and continues', async () => {
    const folder = join(home, 'lame');
    mkdirSync(folder);
    const manifest = join(folder, 'm.json');
    const servers = [{ alias: 'gone', command: join(folder, 'nothing-here'), tools: [{ name: 'x' }] }];
    writeFileSync(manifest, JSON.stringify({ servers }));
    const child = start(['neo'], { NEO_DATA_DIR: folder, NEO_MANIFEST: manifest });
    let output = '';
    await new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          output += chunk;
          if (output.includes('neo is ready')) resolve();
        });
      child.once('exit', () => resolve());
    });
    child.kill('SIGTERM');
    assert.match(output, /neo is ready/);
    assert.match(output, /"gone"/);
  });
});
