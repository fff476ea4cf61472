import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeOptions, optionsOf } from './options.ts';

const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;

test('the options of a plain alarm whose request was traced are its traceparent alone', () => {
  const options = encodeOptions({ traceparent });
  assert.equal(options, JSON.stringify({ traceparent }));
  assert.deepEqual(optionsOf({ options }), { traceparent });
});

test('beside other options it is read as they are', () => {
  for (const more of [{ model: 'x' }, { when: 'in 20 minutes', tools: [] }, { followers: ['a'] }]) {
    const options = encodeOptions({ traceparent, ...more });
    assert.deepEqual(optionsOf({ options }), { ...more, traceparent });
  }
  assert.deepEqual(optionsOf({ options: null }), {});
});
