import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { InvalidArgument, readIntent, readSummary, readThreshold } from './definitions.ts';

const BOAT = '⛵';
const FACE = '\u{1f642}';

describe('an intent', () => {
  test('is returned unchanged, spaces included, up to 16 KiB', () => {
    for (const intent of ['x', '  spaced\tout \n', 'x'.repeat(16_384), FACE.repeat(4096), `${BOAT}\u0000${BOAT}`])
      assert.equal(readIntent({ intent }), intent);
  });

  test('is required: a missing value, another type, empty text and white space are refused', () => {
    for (const intent of [undefined, null, 7, true, {}, ['x'], '', ' ', '\t\n\u00a0\u3000\ufeff', 'half \ud83d'])
      assert.throws(() => readIntent({ intent }), { code: 'INTENT_REQUIRED' }, JSON.stringify(intent));
    assert.throws(() => readIntent({}), { code: 'INTENT_REQUIRED' });
  });

  test('that is too long is refused without being repeated', () => {
    assert.throws(() => readIntent({ intent: `${FACE.repeat(4096)}x` }), {
      code: 'INTENT_TOO_LONG',
      message: 'intent must have at most 16384 bytes of UTF-8 (it has 16385); shorten it',
    });
  });
});

describe('a summary', () => {
  test('may be omitted, and is returned unchanged', () => {
    for (const absent of [{}, { summary: undefined }, { summary: null }, { summary: '' }])
      assert.equal(readSummary(absent), undefined);
    for (const summary of ['  ', FACE.repeat(4096)]) assert.equal(readSummary({ summary }), summary);
  });

  test('that is too long is refused without being repeated', () => {
    assert.throws(
      () => readSummary({ summary: 'secret '.repeat(3000) }),
      (thrown: Error & { code?: string }) => {
        assert.equal(thrown.code, 'SUMMARY_TOO_LONG');
        assert.ok(!thrown.message.includes('secret'));
        return true;
      },
    );
  });

  test('of another type is an invalid argument without an error code', () => {
    for (const summary of [1, false, [], {}, 'half \udc00'])
      assert.throws(() => readSummary({ summary }), InvalidArgument);
  });
});

test('a threshold is an integer of at least 1, as a number or in digits, and nothing else', () => {
  for (const threshold of [1, 45, 2 ** 31, Number.MAX_SAFE_INTEGER])
    for (const written of [threshold, String(threshold), `${threshold}.0`])
      assert.equal(readThreshold({ threshold_minutes: written }), threshold);
  const wrong = [
    undefined,
    null,
    0,
    -1,
    -0,
    0.5,
    1.5,
    1e300,
    2 ** 53,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '',
    '0',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    ' 45',
    '45 minutes',
    '9'.repeat(400),
    true,
    [45],
    {},
  ];
  for (const threshold of wrong)
    assert.throws(
      () => readThreshold({ threshold_minutes: threshold }),
      { code: 'INVALID_THRESHOLD' },
      String(threshold),
    );
});
