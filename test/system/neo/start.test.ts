import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, ask, dataOf, readEvents, settledTurns, turnsOf } from '../../../src/agents/neo/testing/workbench.ts';
import {
  calling,
  modelEndpoint,
  refusing,
  type Script,
  saying,
} from '../../../src/kit/model/testing/model-endpoint.ts';
import { birthOf } from '../../../src/router/providers/process-table.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { manifestWith } from './manifests.ts';

const LIMIT_MS = 20_000;
/** Whether a process runs; a zombie does not. */
const runs = (pid: number) => birthOf(pid) !== undefined;

const hanging: Script = () => {};

test('a wrong manifest, or tools that differ from its declarations, end Neo; the turns wait for the next one', async (t) => {
  const dataDir = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, hanging, saying('It is done.'));
  const model = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl };
  const first = await neoChild(dataDir, model);
  await accepted(first, { message: 'x', conversation_id: 'c' });
  await eventually('the model is asked', () => endpoint.requests.length === 1, LIMIT_MS);
  await first.end('SIGKILL');

  const broken = join(dataDir, 'broken.json');
  writeFileSync(broken, '{\n  "servers": [\n    {"alias": "x",,}\n  ]\n}\n');
  const drifted = manifestWith(dataDir, 'ledger', 'ledger-server.ts', [join(dataDir, 'ledger.txt')], {
    tools: [{ name: 'enter' }, { name: 'erase' }],
  });
  for (const [manifest, message] of [
    [broken, /broken\.json.*3/s],
    [drifted, /server "ledger".*(?:look|erase)/s],
  ] as const) {
    // A model that calls tools, and one that calls none.
    for (const settings of [model, {}]) {
      await assert.rejects(neoChild(dataDir, { ...settings, NEO_MANIFEST: manifest }), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /neo is ready/);
        return true;
      });
    }
  }
  assert.equal(endpoint.requests.length, 1, 'a turn was run without its tools');

  const last = await neoChild(dataDir, model);
  t.after(() => last.end('SIGKILL'));
  const [turn] = await settledTurns(last, 'c');
  assert.deepEqual([turn?.status, turn?.reply], ['done', 'It is done.']);
});

test('a server that never starts keeps no message from being answered, and a stop does not wait for it', async (t) => {
  const dataDir = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, saying('never'));
  const mute = join(dataDir, 'mute.mjs');
  const pidFile = join(dataDir, 'pid');
  writeFileSync(
    mute,
    `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(pidFile)}, String(process.pid));\nsetInterval(() => {}, 1000);\nprocess.stdin.resume();\nprocess.on('SIGTERM', () => {});\n`,
  );
  const manifest = manifestWith(dataDir, 'mute', mute, []);
  const env = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_MANIFEST: manifest };
  const neo = await neoChild(dataDir, env);
  t.after(() => neo.end('SIGKILL'));
  await eventually('the server has been started', () => existsSync(pidFile), LIMIT_MS);
  const one = await accepted(neo, { message: 'x', conversation_id: 'c' });
  await eventually('the turn runs', async () => (await turnsOf(neo, 'c'))[0]?.status === 'running', LIMIT_MS);
  const cancelled = dataOf(await ask(neo, `/turns/${one.turn_id}/cancel`, { method: 'POST' }));
  assert.equal(cancelled.error, 'cancelled on request');
  await accepted(neo, { message: 'y', conversation_id: 'c' });
  assert.equal(await neo.end('SIGTERM'), 0);
  assert.equal(endpoint.requests.length, 0);
  const pid = Number(readFileSync(pidFile, 'utf8'));
  assert.equal(runs(pid), false, 'the server is still running');
});

test('the followers of a conversation see each call begin and end, and a failed model in the end', async (t) => {
  const dataDir = temporaryFolder(t);
  const endpoint = await modelEndpoint(
    t,
    calling({ name: 'ledger__enter', args: { note: 'n1' } }, { name: 'ledger__nothing' }, { name: 'core_execute' }),
    refusing(403, 'the account is closed'),
  );
  const manifest = manifestWith(dataDir, 'ledger', 'ledger-server.ts', [join(dataDir, 'ledger.txt')]);
  const env = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_MANIFEST: manifest };
  const neo = await neoChild(dataDir, env);
  t.after(() => neo.end('SIGKILL'));
  const events = await readEvents(t, neo, '?conversation_id=c&last_event_id=0');
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  const failed = await events.next(({ data }) => data.status === 'failed');
  assert.match(
    String(failed.data.error),
    /^the model endpoint answered 403: the account is closed; .*\(the turn had made 3 tool calls by then\)$/,
  );
  const tools = events.received.filter(({ event }) => event === 'tool').map(({ data }) => data);
  assert.deepEqual(tools.map(({ name, state, is_error }) => [name, state, is_error]).slice(0, 3), [
    ['ledger__enter', 'begun', undefined],
    ['ledger__nothing', 'begun', undefined],
    ['core_execute', 'begun', undefined],
  ]);
  const ended = new Map(tools.slice(3).map((data) => [data.name, data]));
  assert.deepEqual(
    [ended.get('ledger__enter')?.is_error, ended.get('ledger__enter')?.output],
    [false, 'enter n1 is in the ledger'],
  );
  assert.match(String(ended.get('ledger__nothing')?.output), /^unknown tool "ledger__nothing" — it is not available/);
  assert.equal(ended.get('core_execute')?.is_error, true, 'without an executor there is none');
});
