import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { diceOf, rounds } from '../../../../test/support/random/random.ts';
import { modelEndpoint, saying } from '../../../kit/model/testing/model-endpoint.ts';
import { cortexBench } from './testing/cortex-bench.ts';

const ENTRY = fileURLToPath(import.meta.resolve('./testing/learner.fixture.ts'));
const KILLS = rounds(3, 6);
const OFFERED = 12;

test(`killed ${KILLS} times between queue and memory: each queued turn is learned and counted exactly once`, async (t) => {
  const dice = diceOf(t);
  const { dataDir, cortex } = cortexBench(t);
  const endpoint = await modelEndpoint(t, async (response, request) => {
    const [, id] = /message of (t\d+)/.exec(request.body.messages.at(-1)!.content)!;
    await delay(dice(10));
    const memories = [`Turn ${id} took place.`, 'The user speaks with the agent.'];
    const items = memories.map((text) => ({ kind: 'event', text, salience: 0.5 }));
    await saying(JSON.stringify({ memories: items }))(response, request);
  });
  const queued = new Set<string>();
  let first = 0;
  const run = async (count: number, killAfter?: number) => {
    const child = spawn(process.execPath, [ENTRY, dataDir, endpoint.baseUrl, String(first), String(count)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    first += count;
    t.after(() => child.kill('SIGKILL'));
    let lines = 0;
    let settled = false;
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) {
        lines++;
        if (line === 'settled') settled = true;
        else queued.add(line);
      }
      if (killAfter !== undefined && lines >= killAfter) setTimeout(() => child.kill('SIGKILL'), dice(60));
    });
    await once(child, 'close');
    return settled;
  };
  for (let kill = 0; kill < KILLS; kill++) await run(OFFERED, 1 + dice(OFFERED));
  assert.equal(await run(0), true, 'the last process learns the remaining turns');

  const kept = cortex.list({ superseded: true, limit: 1000 });
  const turns = kept.filter(({ text }) => text.startsWith('Turn '));
  for (const id of queued) assert.equal(turns.filter(({ text }) => text === `Turn ${id} took place.`).length, 1, id);
  for (const { strength } of turns) assert.equal(strength, 1);
  const common = kept.find(({ text }) => text.startsWith('The user speaks'))!;
  assert.equal(common.strength, turns.length, 'the common memory was counted once for each turn');
  assert.deepEqual({ ...cortex.lessons.counts(), learned: 0 }, { waiting: 0, learned: 0, given_up: 0, dropped: 0 });
  t.diagnostic(`${queued.size} turns queued for good, ${turns.length} learned, ${endpoint.requests.length} questions`);
});
