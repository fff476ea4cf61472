import assert from 'node:assert/strict';
import { test } from 'node:test';
import { priced, pricesSetting } from './prices.ts';

const USAGE = { input_tokens: 2_000_000, output_tokens: 100_000 };

test('a price gives the cost of known tokens, the first known name counts, and a reported cost stays', () => {
  const prices = pricesSetting.parse('openai/gpt-5=1.25/10, codex = 2/8,*=0.5/0');
  assert.deepEqual(priced(USAGE, prices, ['openai/gpt-5', 'codex']), { ...USAGE, cost_usd: 3.5 });
  assert.deepEqual(priced(USAGE, prices, [undefined, 'codex']), { ...USAGE, cost_usd: 4.8 });
  assert.deepEqual(priced(USAGE, prices, ['another']), { ...USAGE, cost_usd: 1 });
  assert.deepEqual(priced({ ...USAGE, cost_usd: 7 }, prices, ['codex']), { ...USAGE, cost_usd: 7 });
  assert.deepEqual(priced(USAGE, pricesSetting.parse('codex=2/8'), ['another']), USAGE);
  assert.deepEqual(priced(USAGE, new Map(), ['codex']), USAGE);
});

test('a malformed price is refused with an example', () => {
  for (const text of ['', 'gpt-5', 'gpt-5=1', 'gpt-5=1/x', 'gpt-5=-1/2', 'a b=1/2', 'a=1/2,,']) {
    const { error } = pricesSetting.safeParse(text);
    assert.match(error?.issues[0]?.message ?? '', /must be prices such as gpt-5=1\.25\/10/, text);
  }
});
