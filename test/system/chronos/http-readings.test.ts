/** The reading in the answers to a create, a repeated create, an edit and a preview, for every schedule. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Calendars } from '../../../src/chronos/alarm/holidays.ts';
import type { WhenReading } from '../../../src/wire/alarm.ts';
import { createHttpBench } from './http-bench.ts';

const BERLIN = 'Europe/Berlin';
const LORD_HOWE = 'Australia/Lord_Howe';
const HOUR_MS = 3_600_000;

const ONCE = { kind: 'once', delay_seconds: 9000 };
const CRON = { kind: 'cron', cron_expr: '0 0 1 1 *' };
const RRULE = { kind: 'rrule', rrule: 'RRULE:FREQ=YEARLY' };
const HOOK = { kind: 'event', event: { source: 'webhook' } };

type Row = {
  readonly fields: Record<string, unknown>;
  /** The alarm that an edit gives these fields. */
  readonly earlier: object;
  readonly text: string;
  readonly next: readonly string[];
  /** Of the reading; UTC when the request names none. */
  readonly zone?: string;
  /** Whether the answer to a create has the zone outside of the reading, too. */
  readonly isByClock?: boolean;
};

const daily = (
  cron: string,
  timezone: string,
  more: object = {},
): Pick<Row, 'fields' | 'earlier' | 'zone' | 'isByClock'> => ({
  ...{ fields: { cron_expr: cron, timezone, ...more }, earlier: CRON, zone: timezone, isByClock: true },
});

/** It is 15 June 2026, 8:10 in UTC. */
const ROWS: readonly Row[] = [
  {
    ...{ fields: { delay_seconds: 1200 }, earlier: ONCE, text: 'in 20 min' },
    next: ['2026-06-15T08:30:00+00:00'],
  },
  {
    ...{ fields: { fire_at: '2026-12-24T18:00:00+01:00' }, earlier: ONCE, text: 'Thu 24 Dec 17:00 in UTC' },
    next: ['2026-12-24T17:00:00+00:00'],
  },
  // The second 02:30 of that day.
  {
    ...{ fields: { fire_at: '2026-10-25T01:30:00.250Z' }, earlier: ONCE, text: '2026-10-25T01:30:00.250Z in UTC' },
    next: ['2026-10-25T01:30:00+00:00'],
  },
  {
    ...{ fields: { when: 'in 20 minutes', timezone: BERLIN }, earlier: ONCE, text: 'in 20 min', zone: BERLIN },
    next: ['2026-06-15T10:30:00+02:00'],
  },
  {
    ...{ fields: { when: 'tomorrow', timezone: 'Pacific/Kiritimati' }, earlier: ONCE, isByClock: true },
    text: 'Tue 16 Jun 09:00 in Pacific/Kiritimati (at 09:00, because no time was given)',
    ...{ zone: 'Pacific/Kiritimati', next: ['2026-06-16T09:00:00+14:00'] },
  },
  {
    ...{ fields: { cron_expr: '0 9 * * 1-5' }, earlier: CRON, isByClock: true, text: 'every weekday at 09:00 in UTC' },
    next: ['2026-06-15T09:00:00+00:00', '2026-06-16T09:00:00+00:00', '2026-06-17T09:00:00+00:00'],
  },
  {
    ...{ fields: { cron_expr: '@daily' }, earlier: CRON, isByClock: true, text: 'every day at 00:00 in UTC' },
    next: ['2026-06-16T00:00:00+00:00', '2026-06-17T00:00:00+00:00', '2026-06-18T00:00:00+00:00'],
  },
  {
    ...{ fields: { cron_expr: '@every 90m' }, earlier: CRON, text: 'every 1 h 30 min' },
    next: ['2026-06-15T09:40:00+00:00', '2026-06-15T11:10:00+00:00', '2026-06-15T12:40:00+00:00'],
  },
  // The clock skips 02:30 on the second day, shows it twice on the second day, and skips half an hour.
  {
    ...daily('30 2 27-29 3 *', BERLIN),
    text: '30 2 27-29 3 * in Europe/Berlin',
    next: ['2027-03-27T02:30:00+01:00', '2027-03-28T03:00:00+02:00', '2027-03-29T02:30:00+02:00'],
  },
  {
    ...daily('30 2 24-26 10 *', BERLIN),
    text: '30 2 24-26 10 * in Europe/Berlin',
    next: ['2026-10-24T02:30:00+02:00', '2026-10-25T02:30:00+02:00', '2026-10-26T02:30:00+01:00'],
  },
  {
    ...daily('15 2 3-5 10 *', LORD_HOWE),
    text: '15 2 3-5 10 * in Australia/Lord_Howe',
    next: ['2026-10-03T02:15:00+10:30', '2026-10-04T02:30:00+11:00', '2026-10-05T02:15:00+11:00'],
  },
  {
    ...daily('0 7 * * *', 'Pacific/Marquesas', { max_fires: 2 }),
    text: 'every day at 07:00 in Pacific/Marquesas',
    next: ['2026-06-15T07:00:00-09:30', '2026-06-16T07:00:00-09:30'],
  },
  {
    ...daily('0 7 * * *', 'Asia/Kathmandu', { ends_at: '2026-06-16T01:15:00Z' }),
    text: 'every day at 07:00 in Asia/Kathmandu',
    next: ['2026-06-16T07:00:00+05:45'],
  },
  {
    ...daily('0 9 * * *', BERLIN, { holidays: 'club' }),
    text: 'every day at 09:00 in Europe/Berlin',
    next: ['2026-06-16T09:00:00+02:00', '2026-06-18T09:00:00+02:00', '2026-06-19T09:00:00+02:00'],
  },
  {
    fields: { rrule: 'DTSTART:20261024T023000\nRRULE:FREQ=DAILY;COUNT=2', timezone: BERLIN },
    ...{ earlier: RRULE, zone: BERLIN, isByClock: true },
    text: 'every day at 02:30 from 2026-10-24, 2 times (DTSTART:20261024T023000 RRULE:FREQ=DAILY;COUNT=2) in Europe/Berlin',
    next: ['2026-10-24T02:30:00+02:00', '2026-10-25T02:30:00+02:00'],
  },
  {
    ...{
      fields: { when: 'every other monday at 10', timezone: BERLIN },
      earlier: RRULE,
      zone: BERLIN,
      isByClock: true,
    },
    text: 'every 2 weeks on Monday at 10:00 from 2026-06-22 in Europe/Berlin',
    next: ['2026-06-22T10:00:00+02:00', '2026-07-06T10:00:00+02:00', '2026-07-20T10:00:00+02:00'],
  },
  { fields: { event: { source: 'webhook' } }, earlier: HOOK, text: 'waits for a webhook', next: [] },
  {
    ...{ fields: { event: { source: 'webhook', deadline: 'PT1H' } }, earlier: HOOK },
    ...{ text: 'waits for a webhook, or nothing for 1 h', next: ['2026-06-15T09:10:00+00:00'] },
  },
  {
    ...{ fields: { expect: { every: 'PT8H' } }, earlier: { kind: 'event', expect: { every: 'P1D' } } },
    ...{ text: 'waits for 8 h without a call of its address', next: ['2026-06-15T16:10:00+00:00'] },
  },
];

async function createBench(t: TestContext) {
  const calendars: Calendars = { daysOf: () => [Date.UTC(2026, 5, 17) / (24 * HOUR_MS)], names: () => ['club'] };
  const bench = await createHttpBench(t, { calendars });
  const { key } = await bench.agent('ada');
  const ask = async (method: string, path: string, body: object) => {
    // A proof of identity lasts five minutes.
    const ada = await bench.agent('ada', key);
    const answer = await ada.call(method, path, { body });
    assert.equal(answer.status, 200, answer.text);
    return answer.data;
  };
  const set = (fields: object) => ask('POST', '/v1/alarms', { wake_message: 'x', ...fields });
  return { ...bench, ask, set };
}

const kindOf = ({ earlier, fields }: Row) =>
  fields.when === undefined ? (earlier as { kind: string }).kind : undefined;

test('every answer that sets a schedule has its reading', async (t) => {
  const { ask, set } = await createBench(t);
  for (const [n, row] of ROWS.entries()) {
    const { fields, earlier, text, next, zone = 'UTC', isByClock = false } = row;
    const about = JSON.stringify(fields);
    const reading: WhenReading = { text, timezone: zone, next: [...next] };
    const kind = kindOf(row);
    const create = { ...fields, ...(kind !== undefined && { kind }), idempotency_key: `key-${n}` };
    for (const deduped of [false, true]) {
      const created = await set(create);
      const timezone = isByClock ? zone : undefined;
      assert.deepEqual([created.deduped, created.timezone, created.reading], [deduped, timezone, reading], about);
    }
    const { id } = await set(earlier);
    const edited = await ask('PATCH', `/v1/alarms/${id}`, fields);
    assert.deepEqual(edited.reading, reading, `edit: ${about}`);
    const { idempotency_key: _, ...asked } = create;
    const preview = await ask('POST', '/v1/alarms/preview', { ...asked, count: 3 });
    assert.deepEqual(preview.reading, reading, `preview: ${about}`);
    assert.deepEqual(
      preview.occurrences.map(({ local }) => local),
      next,
      about,
    );
  }
});

test('an alarm that follows another one has the reading of its wait', async (t) => {
  const { set } = await createBench(t);
  const { id } = await set(ONCE);
  const { reading, timezone } = await set({ after: { alarm: id } });
  assert.deepEqual(
    [reading, timezone],
    [{ text: `waits for a finished turn of alarm ${id}`, timezone: 'UTC', next: [] }, undefined],
  );
});

test('an edit has a reading when it names a field of the schedule', async (t) => {
  const { ask, set } = await createBench(t);
  const { id } = await set({ kind: 'cron', cron_expr: '0 9 * * *', timezone: BERLIN });
  const edit = async (fields: object) => (await ask('PATCH', `/v1/alarms/${id}`, fields)).reading;
  const nine = (...days: number[]) => days.map((day) => `2026-06-${day}T09:00:00+02:00`);
  assert.equal(await edit({ label: 'x', wake_message: 'y', overlap: 'skip' }), undefined);
  assert.deepEqual((await edit({ max_fires: 2 }))?.next, nine(16, 17));
  assert.deepEqual((await edit({ holidays: 'club' }))?.next, nine(16, 18));
  assert.deepEqual((await edit({ ends_at: '2026-06-17T00:00:00Z' }))?.next, nine(16));
  assert.deepEqual(await edit({ timezone: null }), {
    ...{
      text: 'every day at 09:00 in UTC',
      timezone: 'UTC',
      next: ['2026-06-15T09:00:00+00:00', '2026-06-16T09:00:00+00:00'],
    },
  });
});

test('a repeated delay is read from the first request', async (t) => {
  const { set, clock } = await createBench(t);
  const bodies = [
    { kind: 'once', delay_seconds: 7200, idempotency_key: 'in seconds' },
    { when: 'in 2 hours', idempotency_key: 'in words' },
  ];
  for (const body of bodies) assert.equal((await set(body)).reading.text, 'in 2 h');
  await clock.advance(HOUR_MS);
  for (const body of bodies)
    assert.deepEqual((await set(body)).reading, {
      ...{ text: 'Mon 15 Jun 10:10 in UTC', timezone: 'UTC', next: ['2026-06-15T10:10:00+00:00'] },
    });
});
