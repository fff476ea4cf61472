import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { parseChronosConfig } from '../../chronos/config.ts';
import { readSettingsFile } from './settings-file.ts';

async function read(t: TestContext, text: string): Promise<unknown> {
  const folder = temporaryFolder(t);
  const file = join(folder, 'config.yaml');
  writeFileSync(file, text);
  try {
    return Object.fromEntries(Object.entries(await readSettingsFile(file)));
  } catch (error) {
    return (error as Error).message.replace(folder, '');
  }
}

test('a value that no part can use is reported with its line, unless another source replaced it', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'config.yaml');
  writeFileSync(file, '# of this computer\nCHRONOS_PORT: hello\n');
  const settings = await readSettingsFile(file);
  assert.throws(() => parseChronosConfig({ ...settings, CHRONOS_DATA_DIR: folder }), {
    message: `${file}:2: CHRONOS_PORT must be a whole number from 0 to 65535 (got "hello")`,
  });
  assert.throws(() => parseChronosConfig({ ...settings, CHRONOS_DATA_DIR: folder, CHRONOS_PORT: 'there' }), {
    message: 'CHRONOS_PORT must be a whole number from 0 to 65535 (got "there")',
  });
});

test('variables of every part are read, their digits and text unchanged', async (t) => {
  const text = [
    'CHRONOS_TICK_MS: 5',
    'ROUTER_PORT: 08088',
    'NEO_MODEL: yes',
    'NEO_CHEAP_MODEL: small',
    'MATRIX_CHRONOS_URL: http://127.0.0.1:9096',
    'REVEILLE_LOG: debug',
    'EXECUTOR_PORT: 8081',
    'DOCKER_HOST: unix:///run/docker.sock',
  ].join('\n');
  assert.deepEqual(await read(t, text), {
    CHRONOS_TICK_MS: '5',
    ROUTER_PORT: '08088',
    NEO_MODEL: 'yes',
    NEO_CHEAP_MODEL: 'small',
    MATRIX_CHRONOS_URL: 'http://127.0.0.1:9096',
    REVEILLE_LOG: 'debug',
    EXECUTOR_PORT: '8081',
    DOCKER_HOST: 'unix:///run/docker.sock',
  });
});

test('a name that no part reads is refused with its line and the likely name', async (t) => {
  const cases = [
    ['CHRONOS_TIKC_MS: 5', 'CHRONOS_TICK_MS'],
    ['chronos_port: 5', 'CHRONOS_PORT'],
    ['NEO_MODEL_BASEURL: http://x', 'NEO_MODEL_BASE_URL'],
    ['ROUTER_ADMIN_TOKN: x', 'ROUTER_ADMIN_TOKEN'],
    ['REVEILLE_LOGS: debug', 'REVEILLE_LOG'],
    ['MATRIX_CHRONOS_TIMEOUT: 5', 'MATRIX_CHRONOS_TIMEOUT_MS'],
  ];
  for (const [line, meant] of cases) {
    const name = line!.split(':')[0];
    assert.equal(
      await read(t, `CHRONOS_DEV: 1\n${line}\n`),
      `/config.yaml:2: "${name}" is not a setting of Reveille; did you mean ${meant}?`,
    );
  }
});

test('a setting that an earlier version had is ignored', async (t) => {
  assert.deepEqual(await read(t, 'CHRONOS_CLAIM_LEASE_SECONDS: 15\nCHRONOS_TICK_MS: 5\n'), { CHRONOS_TICK_MS: '5' });
});

test('a name that resembles none is refused with the form of names', async (t) => {
  for (const name of ['CHRONOS_COLOUR_OF_THE_FACE', 'PATH_TO_NOWHERE', 'x']) {
    assert.equal(
      await read(t, `${name}: 1\n`),
      `/config.yaml:1: "${name}" is not a setting of Reveille; names look like CHRONOS_PORT`,
    );
  }
});
