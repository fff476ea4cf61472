import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeJson } from '../../wire/json.ts';
import type { AlarmState, Attempt } from './alarm.ts';
import { withEvents } from './events.ts';
import { cancelAlarm, pauseAlarm } from './lifecycle.ts';
import { settleDelivered, settleFailed } from './settlement.ts';
import {
  ALARM_ID,
  type Body,
  claim,
  complete,
  NOW,
  OWNER,
  release,
  scheduled,
  setAlarm,
} from './testing/alarm-state.ts';
import { nextFireAt, viewAlarm, viewAttempt } from './view.ts';

const DUE = NOW + 60_000;

test('a single alarm shows its request and when it fires, and omits absent members', () => {
  const state = setAlarm({ kind: 'once', delay_seconds: 60 });
  assert.deepEqual(viewAlarm(state), {
    id: ALARM_ID,
    label: '',
    kind: 'once',
    fire_at: '2026-06-15T08:11:00.000Z',
    next_fire_at: '2026-06-15T08:11:00.000Z',
    wake_message: 'water the plants',
    status: 'active',
    max_failures: 100,
    failure_count: 0,
    created_at: '2026-06-15T08:10:00.000Z',
    fire_count: 0,
    in_flight: false,
  });
});

test('a series shows every given field', () => {
  const body = {
    kind: 'cron',
    label: 'l',
    cron_expr: '0 9 * * *',
    timezone: 'Europe/Berlin',
    conversation_id: 'c',
    idempotency_key: 'k',
    max_failures: 3,
    max_lateness_seconds: 1,
    jitter_seconds: 5,
    ends_at: '2026-12-24T00:00:00.000Z',
    max_fires: 7,
  };
  const view = viewAlarm(setAlarm({ ...body, payload: '{"n":1.0}' })) as Record<string, unknown>;
  for (const [name, value] of Object.entries(body)) assert.equal(view[name], value, name);
});

test('a payload is written unchanged', () => {
  const payload = '{"b":12345678901234567890, "a":[1.0,1e400,-0]}';
  const text = encodeJson(viewAlarm(setAlarm({ kind: 'once', delay_seconds: 60, payload })));
  assert.ok(text.includes(`"payload":${payload},`));
  assert.ok(
    encodeJson(viewAlarm(setAlarm({ kind: 'once', delay_seconds: 60, payload: 'null' }))).includes('"payload":null,'),
  );
});

test('next_fire_at is the next attempt, and is present only on an active alarm', () => {
  const state = setAlarm({ kind: 'once', delay_seconds: 60 });
  const { fireId } = scheduled(state);
  const retrying = complete(claim(state, fireId, DUE), fireId, (given) =>
    settleFailed(given, fireId, { error: 'busy', final: false, retryAt: () => DUE + 30_000 }),
  );
  assert.equal(viewAlarm(retrying).next_fire_at, '2026-06-15T08:11:30.000Z');
  assert.equal(viewAlarm(retrying).last_error, 'busy');
  assert.equal(nextFireAt(pauseAlarm(state, NOW)), undefined);
  assert.ok(!('next_fire_at' in viewAlarm(cancelAlarm(state, NOW))));
  const fired = complete(claim(state, fireId, DUE), fireId, (given) => settleDelivered(given, fireId, DUE));
  assert.equal(viewAlarm(fired).last_fired_at, '2026-06-15T08:11:00.000Z');
  assert.ok(!('next_fire_at' in viewAlarm(fired)));
});

test('in_flight is true from the claim until its end, cancelled or not', () => {
  const inFlight = claim(setAlarm({ kind: 'once', delay_seconds: 60 }), undefined, DUE);
  assert.equal(viewAlarm(inFlight).in_flight, true);
  assert.equal(viewAlarm(cancelAlarm(inFlight, DUE + 1)).in_flight, true);
  assert.equal(viewAlarm(release(inFlight, scheduled(inFlight).fireId)).in_flight, false);
});

test('an alarm with events shows what it waits for, and no instant but that of a deadline or of a wake', () => {
  const shown = (state: AlarmState) => {
    const { next_fire_at, waits_for, waiting_events } = viewAlarm(state);
    return [next_fire_at, waits_for, waiting_events];
  };
  const once = setAlarm({ event: { source: 'webhook', filter: { pointer: '/state', equals: 'open' } } });
  assert.deepEqual(shown(once), [undefined, 'a webhook with /state = "open"', undefined]);
  const events = [1, 2].map((n) => ({ id: `${n}`, receivedAt: NOW, data: '{}' }));
  const text = 'a webhook, or nothing for 1 h';
  const awaited = setAlarm({ event: { source: 'webhook', deadline: 'PT1H', quiet_for: 'PT30S', repeat: 'always' } });
  assert.deepEqual(shown(awaited), ['2026-06-15T09:10:00.000Z', text, undefined]);
  assert.deepEqual(shown(withEvents(awaited, events, NOW)), ['2026-06-15T08:10:30.000Z', text, 2]);
  assert.deepEqual(shown(pauseAlarm(withEvents(awaited, events, NOW), NOW)), [undefined, text, 2]);
  assert.deepEqual(shown(cancelAlarm(withEvents(awaited, events, NOW), NOW)), [undefined, undefined, undefined]);
  const after = { alarm: ALARM_ID, on: 'failed' };
  const waits: [Body, string][] = [
    [{ after: { alarm: ALARM_ID } }, `a finished turn of alarm ${ALARM_ID}`],
    [{ after }, `a failed fire or turn of alarm ${ALARM_ID}`],
    [{ event: { source: 'alarm', ...after, on: 'any' } }, `the end of any fire of alarm ${ALARM_ID}`],
    [{ expect: { every: 'P1D', grace: 'PT1H' } }, '1 d and 1 h more without a call of its address'],
    [
      { after: { ...after, on: 'missed' }, expect: { every: 'PT90S' } },
      `1 min 30 s without a missed fire of alarm ${ALARM_ID}`,
    ],
  ];
  for (const [body, expected] of waits) assert.equal(viewAlarm(setAlarm(body)).waits_for, expected);
});

test('an entry of the ledger shows how late the attempt began', () => {
  const attempt: Attempt = {
    fireId: `${ALARM_ID}@${DUE}`,
    alarmId: ALARM_ID,
    owner: OWNER,
    scheduledFor: DUE,
    attempt: 2,
    startedAt: DUE + 30_012,
    finishedAt: DUE + 30_040,
    outcome: 'failed',
    httpStatus: 503,
    error: 'busy',
    missedCount: 3,
    machineReadyMs: 20,
    lateBecause: 'slept',
    cause: null,
  };
  assert.deepEqual(viewAttempt(attempt), {
    fire_id: `${ALARM_ID}@${DUE}`,
    scheduled_for: '2026-06-15T08:11:00.000Z',
    attempt: 2,
    started_at: '2026-06-15T08:11:30.012Z',
    finished_at: '2026-06-15T08:11:30.040Z',
    lateness_ms: 30_012,
    late_because: 'slept',
    outcome: 'failed',
    http_status: 503,
    error: 'busy',
    missed_count: 3,
    machine_ready_at: '2026-06-15T08:11:30.032Z',
  });
  const delivered = viewAttempt({ ...attempt, outcome: 'delivered', httpStatus: null, error: null, missedCount: 0 });
  assert.deepEqual(
    Object.keys(delivered).filter((name) => ['http_status', 'error', 'missed_count'].includes(name)),
    [],
  );
  assert.equal(delivered.accepted_at, '2026-06-15T08:11:30.040Z');
});
