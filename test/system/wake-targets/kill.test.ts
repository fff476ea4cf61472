import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import type { MachineTurnList } from '../../../src/wire/machine-turn.ts';
import { firstLine } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { diceOf, rounds } from '../../support/random/random.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const ROUTER = fileURLToPath(new URL('../../../src/router/testing/router.fixture.ts', import.meta.url));
const ALARM = '018f3b1c-0000-7000-8000-000000000001';
const ROUNDS = rounds(4, 8);
const WAKES = 5;

/** As small as an agent can be, so that a kill meets every stage of a turn and not only the start of Node.js. */
const AGENT = `#!/bin/sh
grep -o 'fire:[0-9]*' >> "$HOME/ran"
sleep 0.0$(( $$ % 9 ))
echo '{"type":"result","subtype":"success","num_turns":1,"result":"ok","session_id":"3f0d5d1e-0000-4000-8000-000000000001"}'
`;

test('a router that is killed again and again loses no wake and runs none twice', async (t) => {
  const dice = diceOf(t);
  const home = realpathSync(temporaryFolder(t));
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin', 'claude'), AGENT);
  chmodSync(join(home, 'bin', 'claude'), 0o755);
  let router: ChildProcess | undefined;
  atEnd(t, () => router?.kill('SIGKILL'));

  const start = async () => {
    router = spawn(process.execPath, [...LEAN, ROUTER], {
      env: {
        PATH: `${join(home, 'bin')}:/usr/bin:/bin`,
        ...COMPILED,
        ...{
          HOME: home,
          REVEILLE_HOME: join(home, '.reveille'),
          ROUTER_DATA_DIR: join(home, 'router'),
          ROUTER_PORT: '0',
          ROUTER_PUBLIC_PORT: '0',
        },
        ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const url = await firstLine(router);
    return clientOf(url);
  };
  let client = await start();
  await client.put('alice', { provider: 'command', spec: { preset: 'claude', cwd: home } });

  /** Unacknowledged wakes are repeated, as those of an alarm are. */
  const unacknowledged = new Set<number>();
  let acknowledged = 0;
  let refusal = 'no answer';
  const sendWake = async (fire: number) => {
    const body = { fire_id: `${ALARM}@${fire}`, message: `fire:${fire}`, conversation_id: `c${fire % 3}` };
    const answer = await client.wake('alice', body).catch(() => undefined);
    if (answer?.status === 200 || answer?.status === 202) {
      acknowledged++;
      unacknowledged.delete(fire);
    } else if (answer !== undefined) refusal = `${answer.status}: ${answer.text}`;
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (let index = 0; index < WAKES; index++) unacknowledged.add(1000 + round * WAKES + index);
    const sending = Promise.all([...unacknowledged].map(sendWake));
    await new Promise((resolve) => setTimeout(resolve, dice(120)));
    const exited = once(router!, 'exit');
    router!.kill('SIGKILL');
    await Promise.all([exited, sending]);
    client = await start();
  }
  await eventually('every wake is acknowledged', async () => {
    await Promise.all([...unacknowledged].map(sendWake));
    if (unacknowledged.size > 0)
      t.diagnostic(`${unacknowledged.size} wakes are still refused, the last with ${refusal}`);
    return unacknowledged.size === 0;
  });

  const { turns, counts } = await eventually('all turns have ended', async () => {
    const { json } = await client.admin('GET', '/alice/turns?limit=100');
    const list = json.data as unknown as MachineTurnList;
    return list.turns.every(({ finished_at }) => finished_at !== undefined) && list;
  });
  const ran = existsSync(join(home, 'ran')) ? readFileSync(join(home, 'ran'), 'utf8').trim().split('\n') : [];
  const times = Map.groupBy(ran, (line) => line);
  assert.equal(new Set(turns.map(({ fire_id }) => fire_id)).size, ROUNDS * WAKES);
  for (const { fire_id, status, error } of turns) {
    const runs = times.get(`fire:${fire_id.split('@')[1]}`)?.length ?? 0;
    assert.ok(runs <= 1, `${fire_id} ran ${runs} times`);
    assert.ok(status === 'done' ? runs === 1 : status === 'unknown', `${fire_id} is ${status}: ${error}`);
  }
  t.diagnostic(`${ROUNDS} kills, ${ROUNDS * WAKES} wakes, ${acknowledged} acknowledgements, ${JSON.stringify(counts)}`);
});
