import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { UsageError } from '../flags/usage-error.ts';
import { alarmOf, type SetFlags } from './alarm-set.ts';

/** The members that are set. */
const set = (message: string | undefined, flags: SetFlags) =>
  Object.fromEntries(Object.entries(alarmOf(message, flags)).filter(([, value]) => value !== undefined));

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

test('everything else is handed on, the payload as its source text', () => {
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
  });
});

test('a message from a file arrives byte for byte, its byte order mark and last line end included', (t) => {
  const file = join(temporaryFolder(t), 'message');
  writeFileSync(file, '\ufeffline\r\n\u0001 \n');
  assert.equal(alarmOf(undefined, { in: '1m', messageFile: file }).wake_message, '\ufeffline\r\n\u0001 \n');
});

test('what cannot be meant is refused with the flag, the value and the remedy', (t) => {
  const folder = temporaryFolder(t);
  const binary = join(folder, 'binary');
  writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x41]));
  const cases: [message: string | undefined, flags: SetFlags, said: RegExp][] = [
    ['m', {}, /give one of --in 10m, --at <instant> or --cron/],
    ['m', { in: '1m', at: '2036-01-01T00:00:00Z' }, /--in and --at exclude each other/],
    ['m', { in: '1m', at: '2036-01-01T00:00:00Z', cron: '@daily' }, /--in and --at and --cron exclude/],
    ['m', { in: '10' }, /--in must be a duration such as 90s, 10m.* \(got "10"\)/],
    ['m', { in: '500ms' }, /--in must be at least 1s \(got "500ms"\)/],
    ['m', { at: 'tomorrow' }, /--at must be an instant with an offset.* \(got "tomorrow"\)/],
    ['m', { at: '2036-02-30T00:00:00Z' }, /--at must be an instant/],
    ['m', { in: '1m', zone: 'UTC' }, /--zone goes only with --cron; leave it out with --in/],
    ['m', { at: '2036-01-01T00:00:00Z', times: '3' }, /--times goes only with --cron; leave it out with --at/],
    ['m', { cron: '@daily', times: '0' }, /--times must be a whole number from 1/],
    ['m', { cron: '@daily', until: 'never' }, /--until must be an instant/],
    ['m', { in: '1m', maxFailures: '1001' }, /--max-failures must be a whole number from 1 to 1000 \(got "1001"\)/],
    ['m', { in: '1m', maxLateness: 'soon' }, /--max-lateness must be a duration/],
    ['m', { in: '1m', jitter: '-5s' }, /--jitter must be a duration/],
    ['m', { in: '1m', payload: '{n:1}' }, /--payload must be JSON/],
    ['m', { in: '1m', payload: '{} {}' }, /--payload must be JSON/],
    ['m', { in: '1m', payload: '1', payloadFile: 'x' }, /--payload and --payload-file exclude/],
    ['m', { in: '1m', payloadFile: join(folder, 'none') }, /--payload-file .*none cannot be read: ENOENT/],
    ['m', { in: '1m', payloadFile: folder }, /--payload-file .* cannot be read: EISDIR/],
    ['m', { in: '1m', messageFile: 'x' }, /there twice/],
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
