import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { startBench, WAKE_TOKEN } from './testing/bench.ts';
import { startPlainDaemon } from './testing/plain-daemon.ts';
import { ShiftingClock } from './testing/shifting-clock.ts';

const USER = '11111111-2222-3333-4444-555555555555';
/** The JSON of the sources' `wake.Request`, with the fields in their order. */
const BODY = `{"user_id":"${USER}","conversation_id":"conv_abc123","message":"Resume the airdrop: cursor at holder 240/512, batch size 50…","payload":{"cursor":240,"batch":50},"alarm_id":"alarm_xyz789","origin":"chronos"}`;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

async function start(t: TestContext, settings: Record<string, string> = {}) {
  const clock = new ShiftingClock();
  const daemon = await startPlainDaemon(t);
  const dataDir = temporaryFolder(t);
  const open = async () => {
    const router = await startBench(t, { clock, settings: { ROUTER_DATA_DIR: dataDir, ...settings } });
    await router.put(USER, { provider: 'http', spec: { url: daemon.url } });
    const send = (body = BODY, headers: object = {}) =>
      router.send('POST', '/internal/wake', WAKE_TOKEN, body, headers);
    return {
      ...router,
      send,
      settled: async (body = BODY, headers: object = {}) => (await send(body, headers)).status,
    };
  };
  const fires = () => daemon.chats.map(({ headers }) => headers['x-matrix-wake-fire'] as string);
  return { clock, daemon, fires, open, router: await open() };
}

describe('a wake without a fire id', () => {
  test('reaches the daemon unchanged, with the omitted members added', async (t) => {
    const { router, daemon } = await start(t);
    const before = Date.now();
    assert.equal(await router.settled(), 202);
    const [chat] = daemon.chats;
    const sent = chat!.body.toString();
    assert.ok(
      sent.startsWith(
        '{"message":"Resume the airdrop: cursor at holder 240/512, batch size 50…","conversation_id":"conv_abc123","payload":{"cursor":240,"batch":50},',
      ),
      sent,
    );
    const { fire_id, scheduled_for, missed_count, origin, alarm_id } = JSON.parse(sent);
    assert.match(fire_id, /^wake-[0-9a-f]{32}@\d{13}$/);
    assert.deepEqual([origin, alarm_id, missed_count], ['chronos', 'alarm_xyz789', 0]);
    assert.ok(Date.parse(scheduled_for) >= before && Date.parse(scheduled_for) <= Date.now());
  });

  test('needs only a user and a message', async (t) => {
    const { router, daemon } = await start(t);
    assert.equal(await router.settled(`{"user_id":"${USER}","message":"now"}`), 202);
    // A Go structure without `omitempty` writes empty members.
    assert.equal(await router.settled(`{"user_id":"${USER}","message":"then","alarm_id":"","origin":""}`), 202);
    assert.deepEqual(
      daemon.chats.map(({ headers }) => [headers['x-matrix-wake-origin'], headers['x-matrix-wake-alarm']]),
      [
        ['chronos', undefined],
        ['chronos', undefined],
      ],
    );
  });

  test('is one turn when it is repeated within a day, also across midnight, and another one after it', async (t) => {
    const { router, clock, fires } = await start(t);
    clock.advance(24 * HOUR_MS - (clock.now() % (24 * HOUR_MS)) - 2 * MINUTE_MS);
    assert.equal(await router.settled(), 202);
    clock.advance(5 * MINUTE_MS);
    const again = await router.send();
    assert.deepEqual([again.status, again.json.data], [200, { conversation_id: 'conv_abc123', deduped: true }]);
    clock.advance(23 * HOUR_MS);
    assert.equal(await router.settled(), 200);
    assert.equal(fires().length, 1);
    clock.advance(HOUR_MS);
    assert.equal(await router.settled(), 202);
    assert.equal(new Set(fires()).size, 2);
  });

  test('is another wake when any member differs, down to a digit of its payload', async (t) => {
    const { router, fires } = await start(t);
    const bodies = [
      BODY,
      BODY.replace('conv_abc123', 'conv_abc124'),
      BODY.replace('240/512', '241/512'),
      BODY.replace('240,', '240.0,'),
      BODY.replace('alarm_xyz789', 'alarm_xyz780'),
      BODY.replace('}', ',"x":null}'),
      BODY.replace(',"origin"', ',"scheduled_for":"2026-06-15T08:10:00Z","origin"'),
      BODY.replace('"payload":{"cursor":240,"batch":50},', ''),
    ];
    for (const body of bodies) assert.equal(await router.settled(body), 202, body);
    for (const body of bodies) assert.equal(await router.settled(body), 200, body);
    // The attempt number and the order of members do not count.
    assert.equal(await router.settled(BODY.replace(',"origin"', ',"attempt":7,"origin"')), 200);
    assert.equal(new Set(fires()).size, bodies.length);
    assert.equal(fires().length, bodies.length);
  });

  test('has its fire id stored before it is sent, and keeps it until it is accepted, also across a restart', async (t) => {
    const { router, daemon, clock, fires, open } = await start(t);
    daemon.answer = (response) => void response.writeHead(500).end();
    assert.equal(await router.settled(), 500);
    await router.close();
    clock.advance(3 * HOUR_MS);
    daemon.answer = undefined;
    const next = await open();
    assert.equal(await next.settled(), 202);
    assert.equal(new Set(fires()).size, 1);
    await next.close();
    const last = await open();
    assert.equal(await last.settled(), 200);
    assert.equal(fires().length, 2);
  });

  test('is delivered once for many concurrent copies', async (t) => {
    const { router, fires } = await start(t);
    const answers = await Promise.all(Array.from({ length: 12 }, () => router.settled()));
    assert.deepEqual(answers.sort(), [...Array(11).fill(200), 202]);
    assert.equal(fires().length, 1);
  });

  test('of an unknown user leaves no record', async (t) => {
    const { router } = await start(t);
    const unknownUser = BODY.replace(USER, 'nobody');
    assert.equal(await router.settled(unknownUser), 404);
    await router.close();
    const db = new DatabaseSync(join(router.dataDir, 'router.db'), { readOnly: true });
    assert.deepEqual(db.prepare('SELECT * FROM unnamed_wakes').all(), []);
    db.close();
  });
});

describe('a caller with its own identification', () => {
  test('names its wake in a header: one name is one turn, whatever the bodies are', async (t) => {
    const { router, fires, clock } = await start(t);
    for (const header of ['webhook-id', 'idempotency-key']) {
      assert.equal(await router.settled(BODY, { [header]: `${header} 1` }), 202);
      assert.equal(await router.settled(BODY, { [header]: `${header} 2` }), 202);
      clock.advance(72 * HOUR_MS);
      assert.equal(await router.settled(BODY.replace('240', '241'), { [header]: `${header} 1` }), 200);
    }
    assert.equal(new Set(fires()).size, 4);
    const long = await router.send(BODY, { 'idempotency-key': 'x'.repeat(201) });
    assert.equal(long.status, 400);
    assert.match(long.json.error.message, /^idempotency-key must be 1 to 200 printable ASCII characters \(got "xxx/);
  });

  test('names the fire in the body, in any form', async (t) => {
    const { router, fires } = await start(t);
    const named = BODY.replace(',"origin"', ',"fire_id":"hourly/17","origin"');
    assert.equal(await router.settled(named), 202);
    assert.deepEqual(fires(), ['hourly/17']);
  });

  test('turns the recognition off for the whole router', async (t) => {
    const { router, fires } = await start(t, { ROUTER_REPEAT_SECONDS: '0' });
    const answers = await Promise.all([1, 2, 3].map(() => router.settled()));
    assert.deepEqual([answers, new Set(fires()).size], [[202, 202, 202], 3]);
  });

  test('or sets the window as short as its series', async (t) => {
    const { router, clock } = await start(t, { ROUTER_REPEAT_SECONDS: '3000' });
    assert.deepEqual([await router.settled(), await router.settled()], [202, 200]);
    clock.advance(HOUR_MS);
    assert.equal(await router.settled(), 202);
  });
});
