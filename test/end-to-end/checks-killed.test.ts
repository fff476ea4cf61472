/** `kill -9` of chronosd and of the router while checks run: each change wakes once, and a skip never woke anybody. */

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventsOf } from '../../src/router/testing/bench.ts';
import type { FireView } from '../../src/wire/alarm.ts';
import { commandLines } from '../support/command-lines.ts';
import { eventually } from '../support/eventually.ts';
import { diceOf, rounds } from '../support/random/random.ts';
import { needs } from '../support/tools.ts';
import { checkProcesses } from '../system/checks/processes.ts';

const ALARMS = 8;
const ROUNDS = rounds(1, 8);

type Chat = { alarm_id: string; fire_id: string; check?: { output?: string } };
const chatsIn = (work: string) =>
  eventsOf(work, 'chat').map(({ body }) => JSON.parse(Buffer.from(body!, 'base64').toString()) as Chat);

test(`${2 * ROUNDS} kills of chronosd or the router: each change wakes each alarm once`, {
  timeout: 240_000,
  skip: needs('bubblewrap'),
}, async (t) => {
  const dice = diceOf(t);
  const { work, kill, chronos } = await checkProcesses(t);
  const flag = (n: number) => join(work, `flag-${n}`);
  const set = (round: number) => {
    for (let n = 0; n < ALARMS; n++) {
      // In one step: a file that is half written is a change too.
      writeFileSync(`${flag(n)}.new`, `${round}`);
      renameSync(`${flag(n)}.new`, flag(n));
    }
  };
  set(0);
  const ids: string[] = [];
  for (let n = 0; n < ALARMS; n++) {
    // Half of them by a command, whose last line is its value.
    const script = `sleep 0.$(($$ % 5)); now=$(cat flag-${n}); [ "$now" = "$REVEILLE_LAST_VALUE" ] && exit 1; echo "$now"`;
    const check =
      n % 2 === 0
        ? { path: { path: flag(n) } }
        : { command: { argv: ['sh', '-c', script] }, on_error: 'skip' as const };
    const { id } = await chronos().createAlarm({
      ...{ kind: 'rrule', rrule: 'RRULE:FREQ=SECONDLY;INTERVAL=1', wake_message: 'look', check },
      ...{ catch_up: 'latest', idempotency_key: `n-${n}` },
    });
    ids.push(id);
  }
  const firesWoken = () =>
    ids.map(
      (id) =>
        new Set(
          chatsIn(work)
            .filter((chat) => chat.alarm_id === id)
            .map((chat) => chat.fire_id),
        ).size,
    );
  const expected = (round: number) => ids.map(() => round + 1);
  await eventually('each is woken at first', () => firesWoken().every((count) => count >= 1));
  for (let round = 1; round <= ROUNDS; round++) {
    await delay(dice(700));
    set(round);
    await delay(dice(1200));
    await kill(dice(2) === 0 ? 'router' : 'chronosd');
    await delay(dice(400));
    await kill(dice(2) === 0 ? 'router' : 'chronosd');
    await eventually(`all are woken by change ${round}`, () => firesWoken().every((count) => count > round), 90_000);
    assert.deepEqual(firesWoken(), expected(round));
  }
  await delay(2500);
  assert.deepEqual(firesWoken(), expected(ROUNDS), 'no wake without a change');
  const woken = new Set(chatsIn(work).map((chat) => chat.fire_id));
  let skips = 0;
  for (const id of ids) {
    let cursor: string | undefined;
    const fires: FireView[] = [];
    do {
      const page = await chronos().listFires(id, { limit: 200, ...(cursor === undefined ? {} : { cursor }) });
      fires.push(...page.fires);
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    for (const fire of fires) {
      if (fire.outcome === 'delivered') assert.ok(woken.has(fire.fire_id), JSON.stringify(fire));
      if (fire.outcome !== 'skipped') continue;
      skips++;
      assert.ok(!woken.has(fire.fire_id), JSON.stringify(fire));
    }
    assert.equal((await chronos().getAlarm(id)).fire_count, ROUNDS + 1);
  }
  assert.ok(skips > ALARMS, `${skips} skips`);
});

test('a command ends with a killed router', { skip: needs('bubblewrap') }, async (t) => {
  const { kill, chronos } = await checkProcesses(t);
  const argv = ['sh', '-c', 'sleep 4321; exit 1'];
  await chronos().createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 1, check: { command: { argv } } });
  const sleeps = () => commandLines().includes('sleep 4321');
  await eventually('the command runs', sleeps);
  await kill('router');
  // The wake is repeated, so the end of the first one shows only in between.
  await kill('chronosd');
  await eventually('it has ended', () => !sleeps(), 10_000);
});
