import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createChronosClient } from '../../src/chronos/client.ts';
import { parseChronosConfig } from '../../src/chronos/config.ts';
import { startChronos } from '../../src/chronos/daemon.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { startBench, WAKE_TOKEN } from '../../src/router/testing/bench.ts';
import { startPlainDaemon } from '../../src/router/testing/plain-daemon.ts';
import { ShiftingClock } from '../../src/router/testing/shifting-clock.ts';
import type { Budget } from '../../src/wire/budget.ts';
import { eventually } from '../support/eventually.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const USER = 'alice';

/** chronosd, a router and a daemon under one clock, and a client that is the user's agent. */
async function house(t: TestContext, budgetOf: (now: number) => Budget) {
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock });
  const daemon = await startPlainDaemon(t);
  const began = clock.now();
  await router.put(USER, { provider: 'http', spec: { url: daemon.url }, budget: budgetOf(began) });
  const config = parseChronosConfig({
    CHRONOS_PORT: '0',
    CHRONOS_DATA_DIR: temporaryFolder(t),
    CHRONOS_DEV: '1',
    CHRONOS_WAKE_TOKEN: WAKE_TOKEN,
    CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake`,
  });
  const chronosd = await startChronos({ config, clock, log: silentLogger });
  atEnd(t, () => chronosd.close());
  const identity = agentIdentity(USER, generateKey());
  const client = createChronosClient({ url: chronosd.url, token: 'none-is-asked-for', identity, clock });
  const metric = async (name: string) => {
    const page = await (await fetch(`${chronosd.url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1]);
  };
  const chatsAbout = (message: string) =>
    daemon.chats
      .map(({ body }) => JSON.parse(body.toString()) as { message: string; missed_count: number })
      .filter((chat) => chat.message === message);
  return { clock, began, router, client, daemon, metric, chatsAbout };
}

/** From an hour ago until the full minute an hour from now, in UTC. */
function quietAround(now: number): Budget {
  const time = (instant: number) => new Date(instant).toISOString().slice(11, 16);
  return { quiet: { from: time(now - HOUR), to: time(now + HOUR), timezone: 'UTC' } };
}

const endOf = (now: number) => Math.floor((now + HOUR) / MINUTE) * MINUTE;

test('in quiet hours an alarm waits with its reason, an urgent one rings, and each is one turn in the end', async (t) => {
  const { clock, began, client, metric, chatsAbout } = await house(t, quietAround);
  const end = endOf(began);
  const set = (wake_message: string, more: object = {}) =>
    client.createAlarm({ kind: 'once', delay_seconds: 30, wake_message, ...more });
  const calm = await set('calm');
  const urgent = await set('urgent', { urgent: true });
  const late = await set('too late then', { max_lateness_seconds: 60 });
  const later = await set('edited');
  const paused = await set('paused');
  const dropped = await set('dropped');
  clock.advance(31 * SECOND);

  const held = await eventually('it is held back', async () => {
    const alarm = await client.getAlarm(calm.id);
    return alarm.held_back && alarm;
  });
  assert.match(held.held_back!.reason, /^deferred: quiet hours of this user until \d\d:\d\d UTC$/);
  assert.equal(Date.parse(held.held_back!.until), end);
  assert.equal(held.next_fire_at, held.held_back!.until);
  assert.deepEqual([held.status, held.failure_count, held.last_error, held.in_flight], ['active', 0, undefined, false]);
  assert.deepEqual((await client.listFires(calm.id)).fires, []);
  await eventually('the urgent one has rung', async () => (await client.getAlarm(urgent.id)).status === 'fired');
  assert.equal((await client.getAlarm(urgent.id)).urgent, true);
  await eventually('all others are held back', async () => (await metric('chronos_held_total')) === 5);
  assert.equal(await metric('chronos_overdue_seconds'), 0);
  assert.equal(await metric('chronos_due'), 0);

  await client.patchAlarm(later.id, { urgent: true });
  await eventually('made urgent it rings at once', async () => (await client.getAlarm(later.id)).status === 'fired');
  assert.equal((await client.pauseAlarm(paused.id)).held_back, undefined);
  await client.cancelAlarm(dropped.id);

  clock.advance(end - clock.now() - 2 * SECOND);
  assert.equal((await client.getAlarm(calm.id)).status, 'active');
  assert.equal(chatsAbout('calm').length, 0, 'not before the end');
  clock.advance(2 * SECOND);
  await eventually('it has rung', async () => (await client.getAlarm(calm.id)).status === 'fired');
  const after = await client.getAlarm(calm.id);
  assert.deepEqual([after.failure_count, after.held_back, after.fire_count], [0, undefined, 1]);
  const { fires } = await client.listFires(calm.id);
  assert.deepEqual(
    fires.map(({ attempt, outcome }) => [attempt, outcome]),
    [[1, 'delivered']],
  );

  await eventually('what was too late is given up', async () => (await client.getAlarm(late.id)).status === 'failed');
  const [missed] = (await client.listFires(late.id)).fires;
  assert.equal(missed?.outcome, 'missed');
  assert.match(missed?.error ?? '', /max_lateness_seconds \(60\).*; deferred: quiet hours of this user until/);
  await client.resumeAlarm(paused.id);
  await eventually('the paused one rings', async () => (await client.getAlarm(paused.id)).status === 'fired');
  for (const message of ['calm', 'urgent', 'edited', 'paused']) assert.equal(chatsAbout(message).length, 1, message);
  for (const message of ['too late then', 'dropped']) assert.equal(chatsAbout(message).length, 0, message);
});

test('an alarm that is held back rings within a quarter of an hour after its budget was lifted', async (t) => {
  const { clock, router, client } = await house(t, quietAround);
  const { id } = await client.createAlarm({ kind: 'once', delay_seconds: 30, wake_message: 'calm' });
  clock.advance(31 * SECOND);
  await eventually('it is held back', async () => (await client.getAlarm(id)).held_back);
  await router.admin('PUT', `/${USER}/budget`, {});
  clock.advance(15 * MINUTE + SECOND);
  await eventually('it has rung', async () => (await client.getAlarm(id)).status === 'fired');
});

test('a series that is held back over several occurrences rings once at the end, for the latest', async (t) => {
  const { clock, began, client, chatsAbout } = await house(t, quietAround);
  const end = endOf(began);
  const { id } = await client.createAlarm({ kind: 'cron', cron_expr: '@every 10m', wake_message: 'again' });
  clock.advance(10 * MINUTE + SECOND);
  await eventually('the first is held back', async () => (await client.getAlarm(id)).held_back);
  clock.advance(end - clock.now() + SECOND);
  const [chat] = await eventually('it rings', () => chatsAbout('again').length > 0 && chatsAbout('again'));
  const alarm = await eventually('it goes on', async () => {
    const shown = await client.getAlarm(id);
    return shown.fire_count === 1 && shown;
  });
  assert.ok(chat!.missed_count >= 3 && chat!.missed_count <= 5, `${chat!.missed_count}`);
  assert.ok(Date.parse(alarm.next_fire_at!) > clock.now());
  assert.deepEqual([alarm.status, alarm.failure_count], ['active', 0]);
  assert.equal(chatsAbout('again').length, 1);
});

test('alarms beyond a limit come back one after the other, each when it is its turn', async (t) => {
  const { clock, client, metric, chatsAbout } = await house(t, () => ({ min_gap_seconds: 60 }));
  const ids = await Promise.all(
    [1, 2, 3, 4].map(() => client.createAlarm({ kind: 'once', delay_seconds: 30, wake_message: 'ring' })),
  );
  clock.advance(31 * SECOND);
  /**
   * The places of those that wait, when so many have rung and nothing is under way: to move the clock would make its
   * answer late.
   */
  const placesAfter = async (rung: number) => {
    const alarms = await Promise.all(ids.map(({ id }) => client.getAlarm(id)));
    const places = alarms.flatMap(({ held_back }) => (held_back ? [Date.parse(held_back.until)] : []));
    const fired = alarms.filter(({ status }) => status === 'fired').length;
    return fired === rung && fired + places.length === ids.length && places.sort((one, other) => one - other);
  };
  const places = await eventually('one has rung and three are held back', () => placesAfter(1));
  await eventually('three holds are counted', async () => (await metric('chronos_held_total')) === 3);
  for (const n of [1, 2]) assert.ok(places[n]! - places[n - 1]! >= MINUTE, 'each has a place of its own');
  for (let waiting: number[] = places, rung = 1; waiting.length > 0; rung++) {
    const moveTo = (place: number) => clock.advance(Math.max(0, place - clock.now()) + 2 * SECOND);
    moveTo(waiting[0]!);
    waiting = await eventually('the next one rings', async () => {
      // Where the machine was slow, the one before it went later than it was promised, and this one has to wait a
      // little more.
      const late = await placesAfter(rung);
      if (late && late[0]! > clock.now()) moveTo(late[0]!);
      return await placesAfter(rung + 1);
    });
    assert.equal(chatsAbout('ring').length, rung + 1);
  }
});
