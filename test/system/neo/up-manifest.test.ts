import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { modelEndpoint, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { manifestWith } from './manifests.ts';

const run = promisify(execFile);

test('"reveille up" hands on to Neo what its manifest refers to, and starts nothing with a manifest that is wrong', async (t) => {
  const home = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, saying('Here I am.'));
  const manifest = manifestWith(home, 'ledger', 'ledger-server.ts', [join(home, 'ledger.txt')], {
    env: ['LEDGER_TOKEN=$env:MY_LEDGER'],
  });
  const env = {
    ...{ PATH: process.env.PATH, REVEILLE_HOME: home, CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' },
    ...{ NEO_MODEL: 'm', NEO_CHEAP_MODEL: 'none', NEO_MODEL_BASE_URL: endpoint.baseUrl },
    ...{ NEO_MANIFEST: manifest, MY_LEDGER: 'a-word-for-the-ledger' },
  };
  const up = (more: object = {}) =>
    run(process.execPath, [PROGRAM, 'up', '--once', '--json'], { env: { ...env, ...more } });

  const { stdout } = await up();
  assert.equal(JSON.parse(stdout).reply, 'Here I am.');
  const [request] = endpoint.requests;
  const names = request?.body.tools?.map((tool) => tool.function.name);
  assert.deepEqual(names, ['ledger__enter', 'ledger__look', 'core_execute', 'memory_recall']);

  manifestWith(home, 'ledger', 'ledger-server.ts', [join(home, 'ledger.txt')], { tools: [{ name: 'erase' }] });
  const toPerson = run(process.execPath, [PROGRAM, 'up', '--once'], { env });
  await assert.rejects(toPerson, (error: Error & { stdout: string; stderr: string }) => {
    for (const name of ['enter', 'look']) assert.ok(error.stderr.includes(`"${name}" is not declared in the manifest`));
    assert.match(error.stderr, /the wake was not accepted: .*"erase" is declared in the manifest/);
    return true;
  });
  const logs = globSync(join(home, 'router', 'machine-logs', '*.log')).map((file) => readFileSync(file, 'utf8'));
  assert.match(logs.join(''), /"erase" is declared in the manifest, but the server does not have it/);

  writeFileSync(manifest, '{\n  "servers": [\n    {"alias": "x", "comand": "y"}\n  ]\n}\n');
  await assert.rejects(up(), (error: Error & { code: number; stderr: string }) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /ledger\.json:3:\d+: unknown field .*comand/);
    return true;
  });
  assert.equal(endpoint.requests.length, 1);
});
