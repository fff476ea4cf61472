import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import type { AlarmView } from '../wire/alarm.ts';
import { encodeJson, RawJson } from '../wire/json.ts';
import { ANSWER_TOKENS, boundedAlarm, briefAlarm, fittingRows, tokensAtMost } from './brief.ts';

const alarm = (fields: Partial<AlarmView>): AlarmView => ({
  ...{ id: '01a206a3-09b9-75e1-9cfa-bb6341bc3a57', kind: 'cron', label: '', wake_message: 'x', status: 'active' },
  ...{ created_at: '2026-11-28T09:00:00.000Z', fire_count: 0, failure_count: 0, max_failures: 100, in_flight: false },
  ...fields,
});

const tokens = (value: unknown) => encode(encodeJson(value)).length;

test('the estimate of the tokens of a text is not exceeded but for a few short words', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefghijklmnopqrstuvwxyz '), maxLength: 300 }),
    fc.string({ unit: fc.constantFrom(...'qxzjkvw0123456789'), maxLength: 300 }),
    fc.uuid(),
  );
  fc.assert(
    fc.property(texts, (text) => encode(text).length <= tokensAtMost(text) * 1.05 + 4),
    { numRuns: 3_000 },
  );
});

test('a row has the label, or the start of the message, on one line', () => {
  const row = (fields: Partial<AlarmView>) => briefAlarm(alarm(fields), 'every day', 'shop');
  assert.deepEqual(row({ label: 'tests', wake_message: 'y'.repeat(500), next_fire_at: '2026-11-29T09:00:00.000Z' }), {
    ...{ id: '01a206a3-09b9-75e1-9cfa-bb6341bc3a57', label: 'tests', next_fire_at: '2026-11-29T09:00:00.000Z' },
    ...{ schedule: 'every day', status: 'active', agent: 'shop' },
  });
  const { message, label } = row({ wake_message: `one\n two ${'😀'.repeat(200)}` });
  assert.equal(label, undefined);
  assert.equal(message, `one two ${'😀'.repeat(111)}…`);
});

test('an answer is below the bound, whatever its texts are', () => {
  for (const text of ['a word and another ', '漢字', '😀', '"\\', '0a1b'])
    for (const most of [20, 500]) {
      const rows = Array.from({ length: most }, (_, n) =>
        briefAlarm(
          alarm({
            label: n % 2 ? text.repeat(90) : '',
            wake_message: text.repeat(9000),
            next_fire_at: '2026-11-29T09:00:00.000Z',
          }),
          text.repeat(90),
          'an-agent',
        ),
      );
      const shown = rows.slice(0, fittingRows(rows));
      assert.ok(shown.length > 0);
      const answer = { alarms: shown, count: shown.length, next_cursor: 'x'.repeat(200) };
      assert.ok(tokens(answer) < ANSWER_TOKENS, `${text}: ${tokens(answer)}`);
    }
});

test('twenty ordinary rows fit', () => {
  const rows = Array.from({ length: 20 }, () =>
    briefAlarm(
      alarm({ label: 'weekly report of the shop', next_fire_at: '2026-11-29T09:00:00.000Z' }),
      'every 2 weeks on Monday at 10:00 in Europe/Berlin',
      'default',
    ),
  );
  assert.equal(fittingRows(rows), 20);
});

test('one alarm is whole, and cut only when it does not fit', () => {
  const payload = new RawJson('{"n": 12345678901234567890}');
  const small = alarm({ wake_message: 'x'.repeat(1000), payload });
  assert.equal(boundedAlarm(small), small);
  for (const large of [
    alarm({ wake_message: '漢'.repeat(20_000), payload }),
    alarm({ payload: new RawJson(`"${'y'.repeat(60_000)}"`) }),
  ]) {
    const shown = boundedAlarm(large) as Record<string, unknown>;
    assert.ok(tokens(shown) < ANSWER_TOKENS);
    assert.equal(shown.id, large.id);
    assert.match(String(shown.cut), /full/);
  }
});
