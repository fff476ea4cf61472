/** The totals of an owner's alarms: active ones, and their wakes in the next 24 hours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import { createInput, LIMITS } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { createChronosClient } from '../../../src/chronos/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { clientProof, personProof } from '../../../src/kit/identity/person-rights.ts';
import { ADMIN, createHttpBench, TRANSPORT } from './http-bench.ts';

const PATH = '/v1/alarms/totals';
const DAY_MS = 86_400_000;

/** It is 15 June 2026, 8:10 in UTC. */
const ROWS: readonly (readonly [fields: object, wakes: number])[] = [
  [{ kind: 'once', delay_seconds: 60 }, 1],
  [{ kind: 'once', delay_seconds: 86_400 }, 1],
  [{ kind: 'once', delay_seconds: 86_401 }, 0],
  [{ kind: 'cron', cron_expr: '*/5 * * * *' }, 288],
  [{ kind: 'cron', cron_expr: '@every 90m' }, 16],
  [{ kind: 'cron', cron_expr: '0 9 * * *', timezone: 'Asia/Kathmandu' }, 1],
  [{ kind: 'cron', cron_expr: '0 9 * * 6' }, 0],
  // It ends by its end, by its number, and by a rule.
  [{ kind: 'cron', cron_expr: '@hourly', ends_at: '2026-06-15T12:30:00Z' }, 4],
  [{ kind: 'cron', cron_expr: '@hourly', max_fires: 3 }, 3],
  [{ kind: 'rrule', rrule: 'RRULE:FREQ=HOURLY;COUNT=2' }, 2],
  // The other day is a holiday from midnight on.
  [{ kind: 'cron', cron_expr: '@hourly', holidays: 'club' }, 15],
  [{ event: { source: 'webhook', deadline: 'PT1H' } }, 0],
];

test('the totals count active alarms and what fires in the next 24 hours', async (t) => {
  const calendars = { daysOf: () => [Date.UTC(2026, 5, 16) / DAY_MS], names: () => ['club'] };
  const bench = await createHttpBench(t, { calendars });
  const ada = await bench.agent('ada');
  const totals = async () => (await ada.call('GET', PATH)).data as object;
  assert.deepEqual(await totals(), { active: 0, wakes_per_day: 0 });
  let [active, wakes] = [0, 0];
  for (const [fields, more] of ROWS) {
    await ada.set({ kind: undefined, delay_seconds: undefined, ...fields });
    [active, wakes] = [active + 1, wakes + more];
    assert.deepEqual(await totals(), { active, wakes_per_day: wakes }, JSON.stringify(fields));
  }
  const paused = await ada.set({ kind: 'once', delay_seconds: 60 });
  await ada.call('POST', `/v1/alarms/${paused}/pause`);
  await ada.call('DELETE', `/v1/alarms/${await ada.set()}`);
  await (await bench.agent('bea')).set();
  assert.deepEqual(await totals(), { active, wakes_per_day: wakes });
});

test('the agent, a person and a client count the alarms that each of them may list', async (t) => {
  const bench = await createHttpBench(t);
  const ada = await bench.agent('ada');
  await ada.set();
  const now = bench.clock.now();
  const prove = { secret: ADMIN, now };
  for (const path of [PATH, '/v1/alarms']) {
    const signed = { method: 'GET', path, body: '' };
    const proofs = [undefined, personProof('Ada', signed, prove), clientProof({ client_id: 'c' }, signed, prove)];
    for (const proof of proofs) {
      const { data } = await ada.call(
        'GET',
        path,
        proof === undefined ? {} : { headers: { 'x-chronos-person': proof } },
      );
      const { active, count } = data as unknown as { active?: number; count?: number };
      assert.equal(active ?? count, 1, path);
    }
  }
});

test('of very many alarms, those due first are counted, and the answer says so', async (t) => {
  const bench = await createHttpBench(t);
  const { store, clock, url } = bench;
  const identity = agentIdentity('ada', generateKey());
  const client = createChronosClient({ url, token: TRANSPORT, identity });
  const now = clock.now();
  const due = Array.from({ length: 1_001 }, (_, n) => {
    const id = `019ed2b4-7c11-7000-8000-${String(n).padStart(12, '0')}`;
    const alarm = draftAlarm(createInput({ kind: 'once', delay_seconds: 60 + n }), {
      id,
      owner: 'ada',
      now,
      limits: LIMITS,
    });
    return { alarm, occurrence: firstOccurrence(alarm, now, LIMITS) };
  });
  await Promise.all(due.map((entry) => store.create(entry, { maxActive: 2_000 })));
  assert.deepEqual(await client.alarmTotals(), { active: 1_001, wakes_per_day: 1_000, at_least: true });
});
