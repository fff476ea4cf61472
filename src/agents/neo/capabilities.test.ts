import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { modelEndpoint, saying } from '../../kit/model/testing/model-endpoint.ts';
import { createCapabilities } from './capabilities.ts';
import { createApprovers } from './delegate/approvers.ts';
import { cortexPath, openCortex } from './memory/cortex.ts';
import { doneTurn } from './memory/testing/cortex-bench.ts';
import { testConfig } from './testing/workbench.ts';
import { parseToolConfig } from './tools/settings.ts';

/** Ends a turn under capabilities with this cheap model. @returns how many turns were queued for learning */
async function offered(t: TestContext, cheapModel: string | null): Promise<number> {
  const dataDir = temporaryFolder(t);
  const { baseUrl } = await modelEndpoint(t, saying('{"memories":[]}'));
  const turn = doneTurn('0197f5a0-0000-7000-8000-00000000000a');
  const capabilities = await createCapabilities({
    config: testConfig(dataDir, {
      tools: parseToolConfig({ NEO_MANIFEST: 'none' }, dataDir),
      model: { kind: 'endpoint', baseUrl, model: 'smart', apiKey: undefined },
      cheapModel,
    }),
    variables: {},
    store: {
      turn: () => turn,
      newestDone: () => [],
      turnsBefore: () => [],
      arrivedAfter: () => [],
      journal: { steps: () => [] },
      gate: async () => {},
    },
    approvers: createApprovers(systemClock),
    clock: systemClock,
    log: silentLogger,
    onFatal: (error) => assert.fail(error),
  });
  const surface = await capabilities.ready();
  assert.deepEqual(
    surface.schemas().map(({ name }) => name),
    ['memory_recall'],
    'memories can be recalled either way',
  );
  capabilities.learnFrom(turn);
  await capabilities.close();
  const cortex = openCortex({ path: cortexPath(dataDir), clock: systemClock });
  const { waiting, learned, given_up, dropped } = cortex.lessons.counts();
  await cortex.close();
  return waiting + learned + given_up + dropped;
}

test('an ended turn is queued for learning, unless learning is switched off', async (t) => {
  assert.equal(await offered(t, 'cheap'), 1);
  assert.equal(await offered(t, null), 0);
});
