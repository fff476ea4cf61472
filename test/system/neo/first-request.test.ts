import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted } from '../../../src/agents/neo/testing/workbench.ts';
import { modelEndpoint } from '../../../src/kit/model/testing/model-endpoint.ts';
import { bundledManifest } from '../../../src/mcp-host/bundled-programs.ts';
import { lockPathOf } from '../../../src/mcp-host/tool-lock.ts';
import { processesByPs, processesOfProc } from '../../../src/router/providers/process-table.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** The state when the model is called, and the time since the start of Neo's process, with every capability enabled. */
async function firstRequest(t: TestContext, manifest: string) {
  const dataDir = temporaryFolder(t);
  // It never answers: the steps after the turn would call a model, too.
  const endpoint = await modelEndpoint(t, () => {});
  const from = performance.now();
  const neo = await neoChild(dataDir, {
    ...{ HOME: dataDir, NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_MANIFEST: manifest },
    ...{ NEO_SEARCH_KEY: 'key', REVEILLE_SHELL_WITHOUT_WALLS: '1' },
  });
  t.after(() => neo.end('SIGKILL'));
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  await eventually('the model is asked', () => endpoint.requests.length === 1, 30_000);
  const ms = Math.round(performance.now() - from);
  const processes = process.platform === 'linux' ? processesOfProc() : processesByPs()!;
  return { ms, children: processes.filter(({ parent }) => parent === neo.process.pid).length };
}

test('with every capability enabled, the model is called before any server has been started', async (t) => {
  const { ms, children } = await firstRequest(t, '');
  assert.equal(children, 0);
  t.diagnostic(`${ms} ms to the first request`);
  // The limits apply to a computer without other load.
  if (process.env.REVEILLE_ROUNDS !== 'all') return;
  assert.ok(ms < 2000, `${ms} ms`);
  // The same servers, all of them awaited.
  const folder = temporaryFolder(t);
  const eager = join(folder, 'neo.json');
  writeFileSync(eager, readFileSync(bundledManifest('neo'), 'utf8').replaceAll(/\s*"start": "lazy",/g, ''));
  writeFileSync(lockPathOf(eager), readFileSync(lockPathOf(bundledManifest('neo'))));
  const all = await firstRequest(t, eager);
  assert.ok(all.children >= 7);
  t.diagnostic(`${all.ms} ms when all of them are awaited`);
});
