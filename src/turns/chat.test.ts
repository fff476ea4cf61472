import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJsonObject } from '../wire/json.ts';
import { parseOrThrow } from '../wire/validate.ts';
import { type ChatRequest, chatRequestSchema, RAW_WAKE_FIELDS } from '../wire/wake.ts';
import { turnOf, withMarkers } from './chat.ts';
import { ALARM_ID, wakeBody } from './testing/wakes.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);

function parsed(body: object, headers: Record<string, string> = {}): ChatRequest {
  const sent = parseJsonObject(JSON.stringify(body), RAW_WAKE_FIELDS);
  return parseOrThrow(
    chatRequestSchema,
    withMarkers((name) => headers[name], sent),
  );
}

function check(headers: Record<string, string>, body: object): void {
  parsed(body, headers);
}

test('headers that agree with the body, or are absent, pass', () => {
  check({}, wakeBody(DUE));
  check(
    {
      'x-matrix-user': 'somebody',
      'x-matrix-wake-origin': 'chronos',
      'x-matrix-wake-alarm': ALARM_ID,
      'x-matrix-wake-fire': `${ALARM_ID}@${DUE}`,
    },
    wakeBody(DUE),
  );
  check({ 'x-matrix-user': 'somebody' }, { message: 'hi' });
});

test('a header that disagrees is refused with both values', () => {
  assert.throws(() => check({ 'x-matrix-wake-fire': 'other' }, wakeBody(DUE)), {
    code: 'invalid_request',
    message: `x-matrix-wake-fire must agree with fire_id in the body (got "other" in the header, "${ALARM_ID}@${DUE}" in the body)`,
  });
  assert.throws(() => check({ 'x-matrix-wake-alarm': 'other' }, wakeBody(DUE)), { code: 'invalid_request' });
  assert.throws(() => check({ 'x-matrix-wake-origin': 'cron' }, { message: 'hi' }), {
    message: 'origin must be "chronos" (got "cron")',
  });
});

test('any marker alone makes a message a wake, in the body or in a header', () => {
  const marked: [Record<string, string>, object][] = [
    [{ 'x-matrix-wake-origin': 'chronos' }, {}],
    [{ 'x-matrix-wake-alarm': 'alarm_xyz789' }, {}],
    [{ 'x-matrix-wake-fire': 'whatever' }, {}],
    [{}, { origin: 'chronos' }],
    [{}, { alarm_id: 'alarm_xyz789' }],
    [{}, { scheduled_for: '2026-06-15T08:10:00Z' }],
  ];
  for (const [headers, members] of marked) {
    const body = parsed({ message: 'hi', ...members }, headers);
    assert.equal(turnOf(body, 7, () => 'id').origin, 'chronos', JSON.stringify([headers, members]));
  }
  assert.equal(turnOf(parsed({ message: 'hi' }, { 'x-matrix-user': 'ada' }), 7, () => 'id').origin, 'user');
});

test('a turn without a conversation gets a new one, and every field of the wake', () => {
  let given = 0;
  const newId = () => `id${++given}`;
  const body = parsed(
    wakeBody(DUE, { payload: [1], label: 'L', set_at: '2026-06-15T10:10:00+02:00', missed_count: 4 }),
  );
  assert.deepEqual(turnOf(body, 7, newId), {
    id: 'id1',
    conversationId: 'id2',
    origin: 'chronos',
    message: 'Resume the airdrop: holder 240 of 512.',
    createdAt: 7,
    payload: '[1]',
    alarmId: ALARM_ID,
    fireId: `${ALARM_ID}@${DUE}`,
    scheduledFor: DUE,
    missedCount: 4,
    label: 'L',
    setAt: DUE,
  });
  assert.deepEqual(turnOf(parsed({ message: 'hi', conversation_id: 'c' }), 7, newId), {
    id: 'id3',
    conversationId: 'c',
    origin: 'user',
    message: 'hi',
    createdAt: 7,
  });
});
