import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { differingFields, draftAlarm } from './definition.ts';
import { optionsOf } from './options.ts';
import { ALARM_ID, createInput, edit, LIMITS, NOW, OWNER, setAlarm } from './testing/alarm-state.ts';
import { readingOf } from './when.ts';

const BERLIN = 'Europe/Berlin';
const DAY_MS = 86_400_000;

/** The kind of an alarm that is set with words, and its time. */
function timeOf(body: Record<string, unknown>, now = NOW) {
  const { kind, fireAt, cronExpr, timezone, delaySeconds, ...alarm } = setAlarm(body, now).alarm;
  const { rrule, when } = optionsOf(alarm);
  const at = fireAt === null ? undefined : new Date(fireAt).toISOString();
  return { kind, at, cronExpr, rrule, timezone, delaySeconds, when };
}

const NONE = { at: undefined, cronExpr: null, rrule: undefined, timezone: null, delaySeconds: null };

describe('a time in words', () => {
  test('is read in the zone of the request, and kept', () => {
    assert.deepEqual(timeOf({ when: 'tomorrow 9am', timezone: BERLIN }), {
      ...{ ...NONE, kind: 'once', at: '2026-06-16T07:00:00.000Z', timezone: BERLIN, when: 'tomorrow 9am' },
    });
    assert.deepEqual(timeOf({ when: 'every weekday at 9', timezone: BERLIN }), {
      ...{ ...NONE, kind: 'cron', cronExpr: '0 9 * * 1-5', timezone: BERLIN, when: 'every weekday at 9' },
    });
  });

  test('needs no zone for a delay, an instant with an offset, an interval, or when it names one', () => {
    const delay = { ...NONE, kind: 'once', at: '2026-06-15T08:30:00.000Z', delaySeconds: 1200, when: 'in 20 minutes' };
    assert.deepEqual(timeOf({ when: 'in 20 minutes' }), delay);
    // Clients add the zone of the user to any words.
    assert.deepEqual(timeOf({ when: 'in 20 minutes', timezone: BERLIN }), delay);
    assert.equal(timeOf({ when: '2026-06-16T09:00:00+02:00' }).at, '2026-06-16T07:00:00.000Z');
    assert.equal(timeOf({ when: 'every 2 hours' }).cronExpr, '@every 2h');
    assert.equal(timeOf({ when: 'tomorrow 9am Asia/Tokyo' }).timezone, 'Asia/Tokyo');
    assert.equal(timeOf({ when: 'tomorrow 9am Asia/Tokyo', timezone: BERLIN }).at, '2026-06-16T00:00:00.000Z');
  });

  const refused: readonly [name: string, body: Record<string, unknown>, message: string][] = [
    [
      'a local time without a zone',
      { when: 'tomorrow 9am' },
      'when: "tomorrow 9am" needs timezone, such as Europe/Berlin',
    ],
    // It may have passed in the zone of the user, and not in UTC.
    [
      'a local time that has passed in UTC',
      { when: 'today at 8:00' },
      'when: "today at 8:00" needs timezone, such as Europe/Berlin',
    ],
    [
      'two readings',
      { when: 'tomorrow at 7', timezone: BERLIN },
      'when: "at 7" can be two times; write "tomorrow at 7:00" or "tomorrow at 19:00"',
    ],
    [
      'an unknown word',
      { when: 'tomorow 9am' },
      'when: "tomorow" is not understood in "tomorow 9am"; write "tomorrow 9am"',
    ],
    ['a kind beside it', { when: 'in 1 hour', kind: 'once' }, 'when and kind both give a time; omit kind'],
    [
      'an expression beside it',
      { when: 'every day at 9', cron_expr: '@daily' },
      'when and cron_expr both give a time; omit cron_expr',
    ],
    [
      'an unknown zone',
      { when: 'tomorrow 9am', timezone: 'Europe/Berlni' },
      'timezone "Europe/Berlni" is not an IANA zone; did you mean "Europe/Berlin"?',
    ],
    [
      'a field of a series beside one time',
      { when: 'tomorrow 9am', timezone: BERLIN, max_fires: 3 },
      'max_fires is only for a series (kind "cron" or "rrule"); this alarm is "once", omit max_fires',
    ],
  ];
  for (const [name, body, message] of refused)
    test(`${name} is refused`, () => assert.throws(() => setAlarm(body), { code: 'invalid_request', message }));

  test('is the same definition when it is repeated later, whatever it means then', () => {
    const draft = (body: Record<string, unknown>, now: number, earlier = first) =>
      draftAlarm(createInput(body), { id: ALARM_ID, owner: OWNER, now, limits: LIMITS, earlier });
    const body = { when: 'tomorrow 9am', timezone: BERLIN, idempotency_key: 'k' };
    const first = setAlarm(body).alarm;
    assert.deepEqual(differingFields(first, setAlarm(body, NOW + DAY_MS).alarm), []);
    const passing = { when: 'today at 23:00', timezone: BERLIN };
    const passed = setAlarm(passing).alarm;
    assert.deepEqual(differingFields(passed, draft(passing, NOW + 0.6 * DAY_MS, passed)), []);
    const elsewhere = { ...passing, timezone: 'Asia/Tokyo' };
    assert.deepEqual(differingFields(passed, draft(elsewhere, NOW + 0.6 * DAY_MS, passed)), ['timezone']);
    assert.deepEqual(differingFields(passed, draft({ ...passing, label: 'x' }, NOW + 0.6 * DAY_MS, passed)), ['label']);
  });
});

describe('an edit by a time in words', () => {
  const series = setAlarm({ kind: 'cron', cron_expr: '0 7 * * *', timezone: BERLIN });
  const once = setAlarm({ when: 'tomorrow 9am', timezone: BERLIN });

  test('keeps the zone of the alarm', () => {
    const { alarm } = edit(series, { when: 'every weekday at 9' });
    assert.deepEqual(
      [alarm.cronExpr, alarm.timezone, optionsOf(alarm).when],
      ['0 9 * * 1-5', BERLIN, 'every weekday at 9'],
    );
    assert.equal(edit(once, { when: 'tomorrow 10am' }).alarm.fireAt, Date.UTC(2026, 5, 16, 8));
    assert.equal(edit(once, { when: 'tomorrow 10am', timezone: 'UTC' }).alarm.fireAt, Date.UTC(2026, 5, 16, 10));
  });

  test('of an alarm without a zone needs one', () => {
    const plain = setAlarm({ kind: 'once', delay_seconds: 60 });
    assert.throws(() => edit(plain, { when: 'tomorrow 9am' }), /"tomorrow 9am" needs timezone/);
    assert.equal(edit(plain, { when: 'in 2 hours' }).alarm.delaySeconds, 7200);
  });

  test('of another kind is refused', () => {
    assert.throws(() => edit(series, { when: 'tomorrow 9am' }), {
      message: 'when: "tomorrow 9am" is one time, but this alarm is a series by cron fields; set a new alarm',
    });
    assert.throws(
      () => edit(once, { when: 'every day at 9' }),
      /is a series by cron fields, but this alarm is one time/,
    );
  });

  test('by another field drops the words and their zone', () => {
    const { alarm } = edit(once, { delay_seconds: 60 });
    assert.deepEqual([optionsOf(alarm).when, alarm.timezone], [undefined, null]);
    const reworded = edit(once, { when: 'in 1 hour' }).alarm;
    assert.deepEqual([optionsOf(reworded).when, reworded.timezone], ['in 1 hour', null]);
  });
});

test('a reading has a text, the zone and the next three instants', () => {
  const readingOfBody = (body: Record<string, unknown>) =>
    readingOf(setAlarm(body).alarm, body.timezone as string | undefined, { now: NOW, calendars: undefined });
  assert.deepEqual(readingOfBody({ when: 'every weekday at 9', timezone: BERLIN }), {
    text: 'every weekday at 09:00 in Europe/Berlin',
    timezone: BERLIN,
    next: ['2026-06-16T09:00:00+02:00', '2026-06-17T09:00:00+02:00', '2026-06-18T09:00:00+02:00'],
  });
  assert.deepEqual(readingOfBody({ when: 'in 20 minutes', timezone: BERLIN }), {
    ...{ text: 'in 20 min', timezone: BERLIN, next: ['2026-06-15T10:30:00+02:00'] },
  });
  assert.equal(readingOfBody({ when: 'every day at 9', timezone: BERLIN, max_fires: 1 }).next.length, 1);
});
