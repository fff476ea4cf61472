/**
 * Manifest, registry and skill that disagree, found by each daemon before it says that it is ready: in processes, from a
 * copy of the package whose files have drifted.
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

/** Starts a command of the copy. What it compiles stays there. */
const start = (words: string[], env: Record<string, string>) =>
  spawn(process.execPath, [join(copy, 'bin', 'reveille.mjs'), ...words], {
    env: {
      ...{ PATH: process.env.PATH, HOME: home, REVEILLE_HOME: join(home, 'r') },
      ...{ NODE_COMPILE_CACHE: join(copy, 'compiled'), REVEILLE_SEPARATION: 'off' },
      ...{ NEO_DAEMON_TOKEN: SECRET, EXECUTOR_TOKEN: `${SECRET}-1`, EXECUTOR_ADMIN_TOKEN: `${SECRET}-2` },
      ...{ NEO_PORT: '0', EXECUTOR_PORT: '0', CHRONOS_PORT: '0', ROUTER_PORT: '0' },
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

/** Runs a command of the copy to its end, which is to come at once. */
async function run(words: string[], env: Record<string, string> = {}) {
  const child = start(words, env);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await ended, said: out + err };
}

/** Changes a file of the copy for as long as something runs. */
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
        for (const { status, said } of runs) {
          assert.equal(status, 1, said);
          assert.match(said, NEITHER);
          assert.match(said, NOR);
          assert.doesNotMatch(said, /is ready/);
        }
        for (const words of [['mcp'], ['mcp', '--selftest']]) {
          const { status, said } = await run(words);
          assert.equal(status, 1, said);
          assert.match(said, /differs: \S+agents\/neo\.json: alarm_ls is not a chronos tool/);
          assert.match(said, /differs: \S+agents\/neo\.json: alarm_list is missing/);
        }
      },
    );
  });

  test('in a registry: another definition behind the same names, which the pins tell', async () => {
    const { status, said } = await drifted(
      'src/chronos-mcp/chronos-tools.json',
      (text) => text.replace('"description": "', '"description": "Now. '),
      () => run(['neo']),
    );
    assert.equal(status, 1, said);
    assert.match(said, /server "chronos": "alarm_\w+" differs in description or schema from the pinned definition/);
  });

  test('in a skill: each tool that the manifest does not have, with its line', async () => {
    const skill = join(copy, 'skills', 'assistant', 'SKILL.mtx');
    const { status, said } = await drifted(
      'skills/assistant/SKILL.mtx',
      (text) =>
        text.replace(
          'alarm_list@0.1.0',
          'alarm_ls@0.1.0\n  matrix://tool/mcp/chronos/alarm_set@9\n  matrix://tool/mcp/web/x@1',
        ),
      () => run(['neo'], { NEO_SKILL: skill }),
    );
    assert.equal(status, 1, said);
    for (const words of ['names the tool "alarm_ls"', 'names version 9', 'names the server "web"'])
      assert.ok(said.includes(words), said);
  });

  test('in a file that is not its own: without it the proxy would not start, and the agent have no alarms', async () => {
    const ends = await drifted(
      'skills/assistant/SKILL.mtx',
      (text) => text.replace('alarm_list@0.1.0', 'alarm_ls@0.1.0'),
      () => Promise.all([run(['neo']), run(['executor'], { REVEILLE_HOME: join(home, 'y') })]),
    );
    for (const { status, said } of ends) {
      assert.equal(status, 1, said);
      assert.match(said, /assistant\/SKILL\.mtx: alarm_ls is not a chronos tool\n.*alarm_list is missing/);
      assert.doesNotMatch(said, /is ready/);
    }
  });

  test('in the manifest of the executor', async () => {
    const { status, said } = await drifted(
      'agents/executor.json',
      (text) => text.replaceAll(/"(name|tool)": "accounts"/g, '"$1": "balances"'),
      () => run(['executor'], { REVEILLE_HOME: join(home, 'x') }),
    );
    assert.equal(status, 1, said);
    assert.match(said, /"balances" is declared in the manifest/);
    assert.match(said, /"accounts" is/);
  });

  test('a server that cannot start is no drift: Neo says so and goes on', async () => {
    const folder = join(home, 'lame');
    mkdirSync(folder);
    const manifest = join(folder, 'm.json');
    const servers = [{ alias: 'gone', command: join(folder, 'nothing-here'), tools: [{ name: 'x' }] }];
    writeFileSync(manifest, JSON.stringify({ servers }));
    const child = start(['neo'], { NEO_DATA_DIR: folder, NEO_MANIFEST: manifest });
    let said = '';
    await new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          said += chunk;
          if (said.includes('neo is ready')) resolve();
        });
      child.once('exit', () => resolve());
    });
    child.kill('SIGTERM');
    assert.match(said, /neo is ready/);
    assert.match(said, /"gone"/);
  });
});
