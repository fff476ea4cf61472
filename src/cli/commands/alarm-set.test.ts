import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { UsageError } from '../flags/usage-error.ts';
import { alarmOf as alarmTyped, changesOf, type EditFlags, type SetFlags, type Typed } from './alarm-set.ts';

/** A Sunday evening in Berlin. */
const TYPED: Typed = { now: Date.UTC(2026, 10, 22, 21, 30), zone: 'Europe/Berlin' };

const alarmOf = (message: string | undefined, flags: SetFlags, words?: string, typed = TYPED) =>
  alarmTyped(message, flags, typed, words).alarm;

/** The given members. */
const set = (message: string | undefined, flags: SetFlags, words?: string) =>
  Object.fromEntries(Object.entries(alarmOf(message, flags, words)).filter(([, value]) => value !== undefined));

test('a delay, an instant and a cron expression become their fields', () => {
  assert.deepEqual(set('m', { in: '1h30m' }), { kind: 'once', delay_seconds: 5400, wake_message: 'm' });
  assert.deepEqual(set('m', { in: '1500ms' }), { kind: 'once', delay_seconds: 1.5, wake_message: 'm' });
  const fire_at = '2036-06-15T10:10:00+02:00';
  assert.deepEqual(set('m', { at: fire_at }), { kind: 'once', fire_at, wake_message: 'm' });
  const cron = { cron: '0 9 * * 1-5', zone: 'Europe/Berlin', until: '2036-01-01T00:00:00Z', times: '7' };
  assert.deepEqual(set('m', cron), {
    kind: 'cron',
    cron_expr: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
    ends_at: '2036-01-01T00:00:00Z',
    max_fires: 7,
    wake_message: 'm',
  });
});

test('all other options are passed on, the payload as its source text', () => {
  const flags = {
    in: '10m',
    label: 'l',
    conversation: 'c',
    payload: ' {"n":12345678901234567890, "f":1.0} ',
    key: 'k',
    maxFailures: '3',
    maxLateness: '5m',
    jitter: '0s',
    urgent: true,
    wakeComputer: true,
  };
  const { payload, ...others } = alarmOf(' spaces stay \n', flags);
  assert.equal(payload?.text, '{"n":12345678901234567890, "f":1.0}');
  assert.deepEqual(Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined)), {
    kind: 'once',
    delay_seconds: 600,
    wake_message: ' spaces stay \n',
    label: 'l',
    conversation_id: 'c',
    idempotency_key: 'k',
    max_failures: 3,
    max_lateness_seconds: 300,
    jitter_seconds: 0,
    urgent: true,
    wake_computer: true,
  });
});

test('a message from a file arrives byte for byte, its byte order mark and last line end included', (t) => {
  const file = join(temporaryFolder(t), 'message');
  writeFileSync(file, '\ufeffline\r\n\u0001 \n');
  assert.equal(alarmOf(undefined, { in: '1m', messageFile: file }).wake_message, '\ufeffline\r\n\u0001 \n');
});

test('an impossible option is refused with the flag, the value and the remedy', (t) => {
  const folder = temporaryFolder(t);
  const binary = join(folder, 'binary');
  writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x41]));
  const broken = join(folder, 'broken');
  writeFileSync(broken, '{');
  const cases: [message: string | undefined, flags: SetFlags, said: RegExp][] = [
    ['m', {}, /write it after the message, such as "tomorrow 9am".* or give --in, --at, --cron or --rrule/],
    ['m', { in: '1m', at: '2036-01-01T00:00:00Z' }, /--in and --at exclude each other/],
    ['m', { in: '1m', at: '2036-01-01T00:00:00Z', cron: '@daily' }, /--in and --at and --cron exclude/],
    ['m', { in: '10' }, /--in must be a duration such as 90s, 10m.* \(got "10"\)/],
    ['m', { in: '500ms' }, /--in must be at least 1s \(got "500ms"\)/],
    ['m', { at: 'tomorrow at 7' }, /--at: "at 7" can be two times; write "tomorrow at 7:00" or/],
    ['m', { rrule: 'every monday at 9' }, /--rrule must be rules of RFC 5545/],
    ['m', { rrule: 'RRULE:FREQ=OFTEN' }, /--rrule: FREQ must be one of/],
    ['m', { at: 'every day at 9:00' }, /--at must be one instant; write "every day at 9:00" after the message/],
    ['m', { at: '2036-02-30T00:00:00Z' }, /--at: .*no day 30|--at: .*not understood/],
    ['m', { at: 'tomorrow 9am', zone: 'Mars/Base' }, /^--zone must be an IANA time zone such as Europe\/Berlin/],
    ['m', { in: '1m', zone: 'UTC' }, /--zone needs a time of day; omit it/],
    ['m', { in: 'every 2 hours' }, /--in: /],
    ['m', { cron: 'tomorrow 9am' }, /--cron must be a schedule/],
    ['m', { at: '2036-01-01T00:00:00Z', times: '3' }, /--times needs a series/],
    ['m', { cron: '@daily', times: '0' }, /--times must be a whole number from 1/],
    [
      'm',
      { cron: '@daily', until: 'friday' },
      /--until: "friday" does not have a time of day; write "friday at 18:00"/,
    ],
    ['m', { cron: '@daily', until: 'never' }, /--until: "never" is not understood/],
    ['m', { in: '1m', maxFailures: '1001' }, /--max-failures must be a whole number from 1 to 1000 \(got "1001"\)/],
    ['m', { in: '1m', maxLateness: 'soon' }, /--max-lateness must be a duration/],
    ['m', { in: '1m', jitter: '-5s' }, /--jitter must be a duration/],
    ['m', { in: '1m', payload: '{n:1}' }, /--payload must be JSON/],
    ['m', { in: '1m', payload: '{} {}' }, /--payload must be JSON/],
    ['m', { in: '1m', payload: '1', payloadFile: 'x' }, /--payload and --payload-file exclude/],
    ['m', { in: '1m', payloadFile: join(folder, 'none') }, /--payload-file .*none cannot be read: ENOENT/],
    ['m', { in: '1m', payloadFile: folder }, /--payload-file .* cannot be read: EISDIR/],
    ['m', { in: '1m', payloadFile: binary }, /--payload-file .*binary must be /],
    ['m', { in: '1m', payloadFile: broken }, /--payload-file .*broken must be JSON \((?!.*quotes)/],
    ['m', { in: '1m', messageFile: 'x' }, /given twice/],
    [undefined, { in: '1m' }, /the message is missing/],
    [undefined, { in: '1m', messageFile: binary }, /--message-file .*binary must be UTF-8 text/],
    [undefined, { in: '1m', messageFile: '-', payloadFile: '-' }, /cannot both be -/],
  ];
  for (const [message, flags, said] of cases) {
    assert.throws(
      () => alarmOf(message, flags),
      (error) => error instanceof UsageError && said.test(error.message),
      JSON.stringify(flags),
    );
  }
});

test("a time is read as people type it, in the user's zone", () => {
  const fire_at = '2026-11-23T08:00:00.000Z';
  const once = { kind: 'once', fire_at, wake_message: 'm' };
  assert.deepEqual(set('m', {}, 'tomorrow 9am'), once);
  assert.deepEqual(set('m', { at: 'tomorrow 9am' }), once);
  assert.deepEqual(set('m', { at: 'tomorrow' }), once);
  assert.deepEqual(set('m', { at: '2026-11-23T09:00' }), once);
  assert.deepEqual(set('m', { at: 'today 5pm', zone: 'Asia/Tokyo' }), once);
  assert.deepEqual(set('m', { in: '2 hours' }), { kind: 'once', delay_seconds: 7200, wake_message: 'm' });
  assert.deepEqual(set('m', {}, 'in 2 hours'), { kind: 'once', delay_seconds: 7200, wake_message: 'm' });
  const weekdays = { kind: 'cron', cron_expr: '0 9 * * 1-5', timezone: 'Europe/Berlin', wake_message: 'm' };
  assert.deepEqual(set('m', {}, 'every weekday at 9'), weekdays);
  assert.deepEqual(set('m', { cron: '0 9 * * 1-5' }), weekdays);
  assert.deepEqual(set('m', { until: '2026-12-31 18:00' }, 'every weekday at 9'), {
    ...weekdays,
    ends_at: '2026-12-31T17:00:00.000Z',
  });
  assert.deepEqual(set('m', {}, 'every 15 minutes'), { kind: 'cron', cron_expr: '@every 15m', wake_message: 'm' });
});

test('without a known zone of the machine, a time of day requires one', () => {
  const nowhere = { ...TYPED, zone: undefined };
  for (const words of ['tomorrow 9am', 'every weekday at 9'])
    assert.throws(() => alarmOf('m', {}, words, nowhere), /time zone of this computer is not known.* --zone/);
  assert.throws(() => alarmOf('m', { cron: '@daily' }, undefined, nowhere), /--zone/);
  for (const words of ['in 2 hours', 'every 15 minutes', '2026-12-01T09:00:00Z', 'tomorrow 9am UTC'])
    assert.ok(alarmOf('m', {}, words, nowhere));
});

test('an edit of the expression alone keeps the zone of the alarm, in any zone of the machine', () => {
  const changes = (flags: EditFlags) =>
    Object.fromEntries(Object.entries(changesOf(flags, TYPED)).filter(([, value]) => value !== undefined));
  assert.deepEqual(changes({ cron: '0 8 * * *' }), { cron_expr: '0 8 * * *' });
  assert.deepEqual(changes({ cron: 'every day at 8:00' }), { cron_expr: '0 8 * * *' });
  assert.deepEqual(changes({ cron: '0 8 * * *', clear: 'zone' }), { cron_expr: '0 8 * * *', timezone: null });
  const berlin = { cron_expr: '0 8 * * *', timezone: 'Europe/Berlin' };
  assert.deepEqual(changes({ cron: '0 8 * * *', zone: 'Europe/Berlin' }), berlin);
  assert.deepEqual(changes({ cron: 'every day at 8:00 Europe/Berlin' }), berlin);
  assert.deepEqual(changes({ zone: 'Asia/Tokyo' }), { timezone: 'Asia/Tokyo' });
});

test('an edit takes the time in words after the id', () => {
  const changes = (words: string, flags: EditFlags = {}) => changesOf(flags, TYPED, words);
  assert.deepEqual(changes('tomorrow 9am'), { fire_at: '2026-11-23T08:00:00.000Z' });
  assert.deepEqual(changes('every day at 8:00'), { cron_expr: '0 8 * * *' });
  const tokyo = { cron_expr: '0 8 * * *', timezone: 'Asia/Tokyo' };
  assert.deepEqual(changes('every day at 8:00 Asia/Tokyo'), tokyo);
  assert.deepEqual(changes('every day at 8:00', { zone: 'Asia/Tokyo' }), tokyo);
  assert.throws(() => changes('tomorrow 9am', { in: '2h' }), /"tomorrow 9am" and --in both give a time/);
});

test('an edit with a series as its instant is refused with the accepted forms', () => {
  assert.throws(() => changesOf({ at: 'every monday at 9' }, TYPED), {
    message: '--at must be one instant; write "every monday at 9" after the id, or give --cron',
  });
  assert.equal(changesOf({ cron: 'every monday at 9' }, TYPED).cron_expr, '0 9 * * 1');
});
