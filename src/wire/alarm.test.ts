import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmCreateSchema, alarmListQuerySchema, alarmPatchSchema } from './alarm.ts';
import { ReveilleError } from './errors.ts';
import { RawJson } from './json.ts';
import { parseOrThrow } from './validate.ts';

const ONCE = { kind: 'once', wake_message: 'wake up', delay_seconds: 5 };

function problemOf(body: Record<string, unknown>): string {
  try {
    parseOrThrow(alarmCreateSchema, body);
  } catch (error) {
    assert.ok(error instanceof ReveilleError);
    assert.equal(error.code, 'invalid_request');
    return error.message;
  }
  return 'accepted';
}

test('a wrong field is refused with its name, its value and the allowed values', () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ ...ONCE, delay_seconds: -5 }, 'delay_seconds must be at least 1 (got -5)'],
    [{ ...ONCE, delay_seconds: '5' }, 'delay_seconds must be a number (got "5")'],
    [{ ...ONCE, delay_seconds: 1e12 }, 'delay_seconds must be at most 316224000 (got 1000000000000)'],
    [{ ...ONCE, delay_seconds: JSON.parse('1e400') }, 'delay_seconds must be a number (got Infinity)'],
    [{ ...ONCE, kind: 'later' }, 'kind must be one of once, cron, rrule, event (got "later")'],
    [{ kind: 'once' }, 'wake_message is required'],
    [{ ...ONCE, wake_message: '' }, 'wake_message must not be empty (got "")'],
    [{ ...ONCE, wake_message: 7 }, 'wake_message must be a string (got 7)'],
    [
      { ...ONCE, conversation_id: 'a/b' },
      'conversation_id must be 1 to 128 of A-Z a-z 0-9 . _ : -, and not dots alone (got "a/b")',
    ],
    [
      { ...ONCE, conversation_id: '..' },
      'conversation_id must be 1 to 128 of A-Z a-z 0-9 . _ : -, and not dots alone (got "..")',
    ],
    [{ ...ONCE, max_failures: 1.5 }, 'max_failures must be a whole number (got 1.5)'],
    [{ ...ONCE, max_failures: 0 }, 'max_failures must be at least 1 (got 0)'],
    [
      { ...ONCE, label: 'x'.repeat(201) },
      `label must have at most 200 characters (got "${'x'.repeat(59)}… (203 characters))`,
    ],
    [{ ...ONCE, idempotency_key: '' }, 'idempotency_key must have at least 1 character (got "")'],
  ];
  for (const [body, sentence] of cases) assert.equal(problemOf(body), sentence);
});

test('the error for an unknown field lists the known fields', () => {
  const message = problemOf({ ...ONCE, wakeMessage: 'x' });
  assert.match(message, /^unknown field "wakeMessage"; allowed here: kind, wake_message, label, when, delay_seconds, /);
});

test('an edit of an unchangeable field is refused with a remedy, and the field is not listed', () => {
  for (const [field, value] of Object.entries({ kind: 'cron', idempotency_key: null })) {
    assert.throws(
      () => parseOrThrow(alarmPatchSchema, { [field]: value }),
      (error: Error) => error.message === `${field} cannot be changed; omit it, or set a new alarm`,
    );
  }
  assert.throws(
    () => parseOrThrow(alarmPatchSchema, { knid: 1 }),
    (error: Error) =>
      /^unknown field "knid"; allowed here: wake_message, /.test(error.message) && !/kind|idem/.test(error.message),
  );
});

test('an instant must be RFC 3339 with an offset, on a date that exists', () => {
  for (const fire_at of [
    '2026-06-15',
    '2026-06-15T08:10:00',
    '2026-02-30T08:10:00Z',
    '2026-06-15T25:00:00Z',
    'tomorrow',
    5,
  ]) {
    assert.match(problemOf({ kind: 'once', wake_message: 'x', fire_at }), /^fire_at must be /, String(fire_at));
  }
  const parsed = parseOrThrow(alarmCreateSchema, {
    kind: 'once',
    wake_message: 'x',
    fire_at: '2026-06-15t08:10:00.5+02:00',
  });
  assert.equal(parsed.fire_at, Date.UTC(2026, 5, 15, 6, 10, 0, 500));
});

test('message and payload may have 64 KiB of UTF-8 each', () => {
  const limit = 64 * 1024;
  assert.equal(problemOf({ ...ONCE, wake_message: 'ü'.repeat(limit / 2) }), 'accepted');
  assert.match(
    problemOf({ ...ONCE, wake_message: `${'ü'.repeat(limit / 2)}x` }),
    /^wake_message must be at most 65536 bytes of UTF-8, it has 65537/,
  );
  assert.equal(problemOf({ ...ONCE, payload: new RawJson(`"${'x'.repeat(limit - 2)}"`) }), 'accepted');
  assert.match(
    problemOf({ ...ONCE, payload: new RawJson(`"${'x'.repeat(limit - 1)}"`) }),
    /^payload must be at most 65536 bytes of JSON/,
  );
});

test('a lone surrogate is refused, not replaced', () => {
  assert.match(problemOf({ ...ONCE, wake_message: 'a\ud800b' }), /^wake_message must be well-formed Unicode/);
});

test('limits in a query are whole numbers within bounds', () => {
  for (const limit of ['0', '501', '-1', '1.5', 'ten', '']) {
    assert.throws(() => parseOrThrow(alarmListQuerySchema, { limit }), /limit must be a whole number from 1 to 500/);
  }
  assert.equal(parseOrThrow(alarmListQuerySchema, { limit: '500' }).limit, 500);
});
