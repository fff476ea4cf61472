import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUsage, NO_USAGE, readUsage, spendingText, usageBetween, usageText, usdText } from './usage.ts';

const of = (input_tokens: number, output_tokens: number, more: object = {}) => ({
  input_tokens,
  output_tokens,
  ...more,
});

test('the cost of a sum is known only if every cost is, and an incomplete part makes it incomplete', () => {
  assert.deepEqual(addUsage(of(1, 2, { cost_usd: 0.1 }), of(3, 4, { cost_usd: 0.2 })), of(4, 6, { cost_usd: 0.3 }));
  assert.deepEqual(addUsage(NO_USAGE, of(3, 4, { cost_usd: 0.2 })), of(3, 4, { cost_usd: 0.2 }));
  assert.deepEqual(addUsage(of(1, 2), of(3, 4, { cost_usd: 0.2 })), of(4, 6));
  assert.deepEqual(addUsage(of(1, 2, { incomplete: true }), of(3, 4)), of(4, 6, { incomplete: true }));
});

test('a counter that was reset says nothing about what was used in between', () => {
  assert.deepEqual(usageBetween(of(100, 10), of(150, 12)), of(50, 2));
  const priced = [of(100, 10, { cost_usd: 1 }), of(150, 12, { cost_usd: 1.5 })] as const;
  assert.deepEqual(usageBetween(...priced), of(50, 2, { cost_usd: 0.5 }));
  assert.equal(usageBetween(of(100, 10), of(20, 12)), undefined);
});

test('a stored text that is no usage is unknown', () => {
  assert.deepEqual(readUsage('{"input_tokens":1,"output_tokens":2}'), of(1, 2));
  for (const text of [null, undefined, '', 'unknown', '{}', '{"input_tokens":1.5,"output_tokens":2}', '[]'])
    assert.equal(readUsage(text), undefined);
});

test('usage is shown with few digits, and a turn without a model call shows none', () => {
  assert.equal(usageText(undefined), undefined);
  assert.equal(usageText(NO_USAGE), undefined);
  assert.equal(usageText(of(1, 0)), '1 token');
  assert.equal(usageText(of(1200, 34, { cost_usd: 0.012345 })), '1,234 tokens, $0.012');
  assert.equal(usageText(of(1_234_000, 5_678, { incomplete: true })), 'at least 1.24M tokens');
  assert.deepEqual([0, 0.5, 0.08, 0.00042, 1, 12.346].map(usdText), [
    '$0.00',
    '$0.50',
    '$0.08',
    '$0.00042',
    '$1.00',
    '$12.35',
  ]);
  const spending = { turns: 3, tokens: 45_600, cost_usd: 0.21, unknown: 1, under_way: 1 };
  assert.equal(spendingText(spending), '45.6k tokens and $0.21 by 3 turns; 1 under way; the usage of 1 is not known');
  assert.equal(spendingText({ turns: 1, tokens: 1, cost_usd: 0, unknown: 0, under_way: 0 }), '1 token by 1 turn');
});
