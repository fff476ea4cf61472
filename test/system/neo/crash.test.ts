import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, settledTurns } from '../../../src/agents/neo/testing/workbench.ts';
import {
  calling,
  type EndpointBody,
  modelEndpoint,
  type Script,
  saying,
} from '../../../src/kit/model/testing/model-endpoint.ts';
import { eventually } from '../../support/eventually.ts';
import { diceOf, rounds } from '../../support/random/random.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { manifestWith } from './manifests.ts';

const TURNS = rounds(3, 5);
/** A third start of a turn is the last attempt. */
const KILLS_PER_TURN = 2;
const STEPS = 6;
const CALL_MS = 30;

const resultsIn = ({ messages }: EndpointBody) => messages.filter(({ role }) => role === 'tool').map((m) => m.content);
const nameOf = ({ messages }: EndpointBody) =>
  /turn-\d+/.exec(messages.findLast(({ role }) => role === 'user')!.content)![0];

/** A model that makes two entries and reads one in every step, based on the calls in the transcript. */
const ledgerModel: Script = (response, request) => {
  const { body } = request;
  const step = resultsIn(body).length / 3;
  if (step >= STEPS) return saying(resultsIn(body).join('\n'))(response, request);
  const note = (n: number) => ({ note: `${nameOf(body)}.${step}.${n}` });
  return calling(
    { name: 'ledger__enter', args: note(0) },
    { name: 'ledger__enter', args: note(1) },
    { name: 'ledger__look', args: note(2) },
  )(response, request);
};

test(`a turn killed during its calls continues at the same point: no entry is made twice (${TURNS * KILLS_PER_TURN} kills)`, async (t) => {
  const dice = diceOf(t);
  const dataDir = temporaryFolder(t);
  const ledger = join(dataDir, 'ledger.txt');
  const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
  const endpoint = await modelEndpoint(t, ledgerModel);
  const manifest = manifestWith(dataDir, 'ledger', 'ledger-server.ts', [ledger, String(CALL_MS)]);
  const env = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_MANIFEST: manifest };
  let neo = await neoChild(dataDir, env);
  t.after(() => neo.end('SIGKILL'));
  const counts = { unknown: 0, lookedTwice: 0 };

  for (let turn = 0; turn < TURNS; turn++) {
    await accepted(neo, { message: `Keep the books of turn-${turn}.`, conversation_id: `c${turn}` });
    for (let kill = 0; kill < KILLS_PER_TURN; kill++) {
      const begun = lines().length + dice(4);
      await eventually('entries are made', () => lines().length > begun, 20_000);
      await delay(dice(2 * CALL_MS));
      await neo.end('SIGKILL');
      neo = await neoChild(dataDir, env);
    }
    const [ended] = await settledTurns(neo, `c${turn}`);
    assert.deepEqual([ended?.status, ended?.attempts], ['done', KILLS_PER_TURN + 1]);
    const reported = ended!.reply!.split('\n');
    assert.equal(reported.length, STEPS * 3, 'every call has one result');
    const entered = lines().filter((line) => line.startsWith(`enter turn-${turn}.`));
    assert.deepEqual(entered, [...new Set(entered)], 'an entry was made twice');
    for (const [place, result] of reported.entries()) {
      const note = `turn-${turn}.${Math.floor(place / 3)}.${place % 3}`;
      if (place % 3 === 2) {
        assert.equal(result, `look ${note} is in the ledger`, 'a read is repeated');
        if (lines().filter((line) => line === `look ${note}`).length > 1) counts.lookedTwice++;
      } else if (result.startsWith('outcome unknown')) {
        counts.unknown++;
      } else {
        assert.equal(result, `enter ${note} is in the ledger`);
        assert.ok(entered.includes(`enter ${note}`), 'a success was reported that never happened');
      }
    }
  }
  t.diagnostic(`${TURNS * KILLS_PER_TURN} kills, ${lines().length} calls, ${JSON.stringify(counts)}`);
});
