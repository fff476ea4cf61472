import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { modelEndpoint, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { eventually } from '../support/eventually.ts';
import { COMPILED, LEAN } from '../support/quick-start.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

const NEO = fileURLToPath(new URL('../../src/agents/neo/testing/neo-process.fixture.ts', import.meta.url));
/** Neo's drain, the router's pause before the start, and the start on a busy computer. */
const FINISHED_WITHIN_MS = 60_000;

/** A Neo that an alarm woke, in the middle of its turn: the model's first answer never arrives. */
async function inMidTurn(t: TestContext) {
  const daemons = await openChronosdWithRouter(t);
  const endpoint = await modelEndpoint(t, () => {}, saying('done after all'));
  const env = {
    ...COMPILED,
    NEO_DATA_DIR: join(daemons.folder, 'neo'),
    NEO_MODEL: 'm',
    NEO_MODEL_BASE_URL: endpoint.baseUrl,
  };
  await daemons.put(USER, { provider: 'process', spec: { command: [process.execPath, ...LEAN, NEO], env } });
  const alarmId = await daemons.setAlarm();
  await eventually('the model is asked', () => endpoint.requests.length === 1);
  await daemons.fire(alarmId, 'the wake is accepted', ({ accepted_at }) => accepted_at !== undefined);
  return { house: daemons, endpoint, alarmId };
}

/** One wake was accepted once, and its turn is done. */
async function assertFinished({ house: daemons, endpoint, alarmId }: Awaited<ReturnType<typeof inMidTurn>>) {
  const finished = async () => (await daemons.fires(alarmId))[0]?.reached === 'turn_finished';
  await eventually('the turn is reported finished', finished, FINISHED_WITHIN_MS);
  const [fire, ...others] = await daemons.fires(alarmId);
  assert.deepEqual(others, []);
  assert.deepEqual([fire!.attempt, fire!.turn?.ok], [1, true]);
  assert.ok(endpoint.requests.length > 1);
}

test('a turn that a new token interrupts is finished without another wake', async (t) => {
  const started = await inMidTurn(t);
  const { house: daemons } = started;
  assert.equal((await daemons.admin('POST', `/${USER}/rotate-token`)).status, 200);
  await assertFinished(started);
});

test('a turn of a killed Neo is finished without another wake', async (t) => {
  const started = await inMidTurn(t);
  const db = new DatabaseSync(join(started.house.folder, 'router', 'router.db'), { readOnly: true });
  const { pid } = db.prepare('SELECT pid FROM processes WHERE user_id = ?').get(USER) as { pid: number };
  db.close();
  process.kill(pid, 'SIGKILL');
  await assertFinished(started);
});
