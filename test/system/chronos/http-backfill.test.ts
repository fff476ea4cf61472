import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Dispatcher } from '../../../src/chronos/dispatch/dispatcher.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { createHttpBench, refused } from './http-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Backfilled = { backfill: { added: number; known: number; first?: string; last?: string } };

/** chronosd's routes with a dispatcher, whose wakes are kept by the time they are due. */
async function createBackfillBench(t: TestContext, overrides: { ledgerDays?: number } = {}) {
  const wakes: number[] = [];
  let dispatcher: Dispatcher | undefined;
  let advance: (ms: number) => Promise<void>;
  // Before the bench closes the store.
  t.after(async () => {
    const done = dispatcher?.drain(0);
    await advance(2000);
    await done;
  });
  const bench = await createHttpBench(t, {
    onDue: (at) => dispatcher?.notifyDue(at),
    auth: { principalTtlSeconds: 10_000_000 },
    ...overrides,
  });
  const { store, clock } = bench;
  advance = (ms) => clock.advance(ms);
  let answer: () => 'delivered' | 'failed' = () => 'delivered';
  const waker = {
    wake: async ({ occurrence }: { occurrence: { scheduledFor: number } }) => {
      const outcome = answer();
      if (outcome === 'failed') return { outcome, httpStatus: 410, error: 'gone', final: true } as const;
      wakes.push(occurrence.scheduledFor);
      return { outcome, httpStatus: 202 } as const;
    },
    close: async () => {},
  };
  const config = { concurrency: 256, userConcurrency: 4, tickMs: 1000 };
  dispatcher = new Dispatcher({ store, waker, clock, log: silentLogger, random: () => 0, config });
  dispatcher.start();
  const ada = await bench.agent('ada');
  const backfill = async (id: string, from: number, to: number, rest: object = {}) =>
    ada.call('POST', `/v1/alarms/${id}/backfill`, {
      body: { from: formatInstant(from), to: formatInstant(to), ...rest },
    });
  const added = async (...request: Parameters<typeof backfill>) => {
    const { status, data, text } = await backfill(...request);
    assert.equal(status, 200, text);
    return (data as unknown as Backfilled).backfill;
  };
  return { ...bench, ada, wakes, backfill, added, respond: (next: typeof answer) => (answer = next) };
}

const START = Date.UTC(2026, 5, 1);
const hours = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n * HOUR);

test('a backfill fires each instant of the time once, the oldest first, and a repetition adds nothing', async (t) => {
  const { clock, ada, wakes, added, store } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '0 * * * *', delay_seconds: undefined });
  const range = [START + 30 * MINUTE, START + 2 * DAY] as const;
  const { bytes } = await store.usage();
  const first = await added(id, ...range);
  assert.deepEqual(first, {
    added: 47,
    known: 0,
    first: formatInstant(START + HOUR),
    last: formatInstant(START + 2 * DAY - HOUR),
  });
  assert.deepEqual(await added(id, ...range), { added: 0, known: 47 });
  await clock.advance(MINUTE);
  assert.deepEqual(wakes, hours(START + HOUR, 47));
  assert.deepEqual(await added(id, ...range), { added: 0, known: 47 });
  // A longer time adds only what is new, on both sides.
  assert.equal((await added(id, START, START + 2 * DAY + HOUR)).added, 2);
  await clock.advance(MINUTE);
  assert.deepEqual(wakes.slice(47), [START, START + 2 * DAY]);
  const { fires } = (await ada.call('GET', `/v1/alarms/${id}/fires?limit=100`)).data;
  assert.deepEqual([...new Set(fires.map(({ outcome }) => outcome))], ['delivered']);
  assert.equal(new Set(fires.map(({ fire_id }) => fire_id)).size, 49);
  assert.equal((await store.usage()).bytes, bytes, 'nothing of a finished backfill is kept in the alarm');
  // The series goes on.
  await clock.advance(HOUR);
  assert.equal(wakes.length, 50);
});

test('instants that were delivered on time are not fired again; missed ones are', async (t) => {
  const { clock, ada, wakes, added } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '0 * * * *', delay_seconds: undefined });
  const begin = clock.now();
  await clock.advance(3 * HOUR);
  clock.jump(5 * HOUR);
  await clock.advance(HOUR);
  const onTime = [...wakes];
  assert.equal(onTime.length, 5, 'three, the latest of the missed ones, and one');
  const answer = await added(id, begin, clock.now());
  assert.deepEqual([answer.added, answer.known], [4, 5]);
  await clock.advance(MINUTE);
  assert.deepEqual([...wakes].sort(), hours(onTime[0]!, 9));
});

test('more than 1,000 fires need a confirmation, and more than 10,000 are refused', async (t) => {
  const { ada, backfill, added, clock, wakes } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '*/10 * * * *', delay_seconds: undefined });
  const [from, to] = [START, START + 10 * DAY];
  const message =
    'the backfill has 1440 fires, more than 1000; confirm it with confirm_over: true (--yes), or choose a shorter time';
  refused(await backfill(id, from, to), 409, 'conflict', message);
  refused(await backfill(id, from - 365 * DAY, to, { confirm_over: true }), 400, 'invalid_request', /more than 10000/);
  assert.equal((await ada.call('GET', `/v1/alarms/${id}/fires`)).data.fires.length, 0);
  assert.equal((await added(id, from, to, { confirm_over: true })).added, 1440);
  await clock.advance(30 * MINUTE);
  assert.deepEqual(
    wakes.filter((at) => at < to),
    Array.from({ length: 1440 }, (_, n) => from + n * 10 * MINUTE),
  );
});

test('a dry run counts the fires, however many, and adds none', async (t) => {
  const { ada, backfill, added, clock, wakes } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '*/10 * * * *', delay_seconds: undefined });
  const before = (await ada.call('GET', `/v1/alarms/${id}`)).data;
  const range = [START, START + 10 * DAY] as const;
  const ends = { first: formatInstant(START), last: formatInstant(START + 10 * DAY - 10 * MINUTE) };
  const planned = await backfill(id, ...range, { dry_run: true });
  assert.deepEqual(planned.data, { ...before, backfill: { added: 1440, known: 0, ...ends, dry_run: true } });
  await clock.advance(MINUTE);
  assert.equal(wakes.filter((at) => at < START + 10 * DAY).length, 0);
  await added(id, START, START + 30 * MINUTE);
  await clock.advance(MINUTE);
  assert.deepEqual(await added(id, START, START + HOUR, { dry_run: true }), {
    ...{ added: 3, known: 3, dry_run: true },
    ...{ first: formatInstant(START + 30 * MINUTE), last: formatInstant(START + 50 * MINUTE) },
  });
  const once = await ada.set();
  refused(await backfill(once, ...range, { dry_run: true }), 400, 'invalid_request', /^only a series/);
});

test('a backfill does not hide the owner’s other alarms, and waits while the series is paused', async (t) => {
  const { ada, added, clock, wakes } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '*/10 * * * *', delay_seconds: undefined });
  await added(id, START, START + DAY);
  await clock.advance(10);
  const other = await ada.set({ delay_seconds: 1 });
  await ada.call('POST', `/v1/alarms/${id}/pause`);
  await clock.advance(MINUTE);
  const before = wakes.length;
  assert.ok(before < 144, `${before} of 144 fires before the pause`);
  assert.equal((await ada.call('GET', `/v1/alarms/${other}`)).data.status, 'fired');
  const left = async () => (await ada.call('GET', `/v1/alarms/${id}`)).data.backfill_left;
  const fired = wakes.filter((at) => at < START + DAY).length;
  const [first, last] = [START + fired * 10 * MINUTE, START + DAY - 10 * MINUTE].map(formatInstant);
  assert.deepEqual(await left(), { first, last });
  await ada.call('POST', `/v1/alarms/${id}/resume`);
  await clock.advance(MINUTE);
  assert.equal(wakes.filter((at) => at < START + DAY).length, 144);
  assert.equal(await left(), undefined);
});

test('an edit of the schedule, or a cancellation, ends a backfill', async (t) => {
  const { ada, added, clock, wakes } = await createBackfillBench(t);
  for (const end of ['edit', 'cancel'] as const) {
    const id = await ada.set({ kind: 'cron', cron_expr: '*/10 * * * *', delay_seconds: undefined });
    wakes.length = 0;
    await added(id, START, START + DAY);
    await clock.advance(10);
    const path = `/v1/alarms/${id}`;
    if (end === 'edit') await ada.call('PATCH', path, { body: { cron_expr: '*/20 * * * *' } });
    else await ada.call('DELETE', path);
    await clock.advance(MINUTE);
    assert.ok(wakes.length < 100, `${wakes.length} fires`);
    if (end === 'edit') assert.equal((await added(id, START + 12 * HOUR, START + DAY)).added, 36);
  }
});

test('a backfilled fire that is given up pauses a series with pause_on_failure', async (t) => {
  const { ada, added, clock, wakes, respond } = await createBackfillBench(t);
  const id = await ada.set({ kind: 'cron', cron_expr: '0 * * * *', delay_seconds: undefined, pause_on_failure: true });
  respond(() => (wakes.length === 3 ? 'failed' : 'delivered'));
  await added(id, START, START + DAY);
  await clock.advance(3 * HOUR);
  assert.equal(wakes.length, 3);
  assert.equal((await ada.call('GET', `/v1/alarms/${id}`)).data.status, 'paused');
  respond(() => 'delivered');
  await ada.call('POST', `/v1/alarms/${id}/resume`);
  await clock.advance(MINUTE);
  assert.equal(wakes.filter((at) => at < START + DAY).length, 23, 'all but the one that was given up');
});

test('a policy that is none is refused with its values, and stores nothing', async (t) => {
  const { ada } = await createBackfillBench(t);
  const series = { kind: 'cron', cron_expr: '0 * * * *', wake_message: 'x' };
  for (const [field, value, allowed] of [
    ['catch_up', 'some', /catch_up.*latest.*all.*none/],
    ['overlap', 'queue', /overlap.*allow.*skip.*buffer_one.*buffer_all/],
    ['pause_on_failure', 'yes', /pause_on_failure/],
    ['catch_up_window_seconds', 0, /catch_up_window_seconds/],
  ] as const) {
    const answer = await ada.call('POST', '/v1/alarms', { body: { ...series, [field]: value } });
    refused(answer, 400, 'invalid_request', allowed);
    assert.ok(answer.error.message.includes(JSON.stringify(value)), answer.error.message);
  }
  assert.equal((await ada.call('GET', '/v1/alarms')).data.count, 0);
});

test('a wrong backfill is refused, and adds nothing', async (t) => {
  const { ada, backfill, agent, clock } = await createBackfillBench(t);
  const now = clock.now();
  const id = await ada.set({ kind: 'cron', cron_expr: '0 * * * *', delay_seconds: undefined });
  const once = await ada.set();
  refused(await backfill(id, now, START), 400, 'invalid_request', /^from must be before to \(got /);
  refused(await backfill(id, START, now + 1), 400, 'invalid_request', /^to must not be in the future \(got /);
  refused(await backfill(id, 0, now), 400, 'invalid_request', /^from must be after 1970-01-01T00:00:00.000Z \(got /);
  refused(await backfill(once, START, now), 400, 'invalid_request', /^only a series .* can be backfilled; this alarm/);
  refused(await ada.call('POST', `/v1/alarms/${id}/backfill`, { body: { from: 'x' } }), 400, 'invalid_request');
  const eve = await agent('eve');
  const body = { from: formatInstant(START), to: formatInstant(now) };
  refused(await eve.call('POST', `/v1/alarms/${id}/backfill`, { body }), 404, 'not_found');
  await ada.call('POST', `/v1/alarms/${id}/pause`);
  refused(await backfill(id, START, now), 409, 'conflict', /this one is paused; resume it first$/);
});

test('what the ledger no longer has is not fired a second time', async (t) => {
  const { ada, backfill, added, clock } = await createBackfillBench(t, { ledgerDays: 3 });
  const id = await ada.set({ kind: 'cron', cron_expr: '0 0 * * *', delay_seconds: undefined });
  const begin = clock.now();
  clock.jump(10 * DAY);
  await clock.advance(MINUTE);
  const now = clock.now();
  for (const from of [begin - DAY, begin, now - 3 * DAY - 1])
    refused(await backfill(id, from, now), 400, 'invalid_request', /^from must not be before .* no longer recorded/);
  assert.equal((await added(id, now - 3 * DAY, now)).added, 2);
  // Before it was set it cannot have fired.
  assert.equal((await added(id, begin - 2 * DAY, begin)).added, 2);
});
