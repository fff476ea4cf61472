import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelMessage } from '../../../kit/model/model.ts';
import { tokensOf, tokensOfMessages } from './tokens.ts';
import { contextWindow, type WindowOptions } from './window.ts';

const user = (content: string): ModelMessage => ({ role: 'user', content });
const step = (n: number, words = 200): ModelMessage[] => [
  { role: 'assistant', content: '', toolCalls: [{ id: `c${n}`, name: 'a', input: '{}' }] },
  { role: 'tool', callId: `c${n}`, name: 'a', content: `step ${n} ${'word '.repeat(words)}`, isError: false },
];

function windowOf(options: Partial<WindowOptions> = {}) {
  return contextWindow({
    limit: 4000,
    earlier: [user('earlier')],
    question: user('question'),
    summarize: () => Promise.resolve('summary'),
    onFailure: () => {},
    ...options,
  });
}

test('below the soft limit nothing changes', async () => {
  const window = windowOf();
  window.add(step(1));
  assert.equal(await window.fit(100), 'fits');
  assert.deepEqual(
    window.messages().map(({ role }) => role),
    ['user', 'user', 'assistant', 'tool'],
  );
});

test('beyond it a summary of the older part follows the question, and the newest steps stay', async () => {
  const window = windowOf();
  for (let n = 0; n < 9; n++) window.add(step(n));
  assert.equal(await window.fit(0), 'compacted');
  const messages = window.messages();
  assert.equal(messages[0]!.content, 'question');
  assert.match(messages[1]!.content, /^The program around you has replaced[\s\S]*\nsummary\n/);
  assert.match(messages.at(-1)!.content, /^step 8 /);
  assert.equal(messages[2]!.role, 'assistant', 'a result is never separated from its call');
  assert.ok(window.partTaken(0) < 0.5);
});

test("an endpoint's own count only lowers the limit", async () => {
  const window = windowOf();
  window.add(step(1, 800));
  const estimated = tokensOfMessages(window.messages());
  const before = window.partTaken(0);
  window.learn(estimated, estimated / 2);
  window.learn(0, 5);
  window.learn(estimated, undefined);
  assert.equal(window.partTaken(0), before);
  window.learn(estimated, estimated * 2);
  assert.ok(Math.abs(window.partTaken(0) - 2 * before) < 1e-9);
  window.learn(estimated, estimated * 1000);
  assert.ok(window.partTaken(0) <= 4 * before);
});

test('a question that is too large by itself is full, and no summary is requested', async () => {
  let asked = 0;
  const window = windowOf({
    question: user('word '.repeat(4000)),
    earlier: [],
    summarize: () => {
      asked++;
      return Promise.resolve('');
    },
  });
  assert.equal(await window.fit(0), 'full');
  assert.equal(asked, 0);
});

test('images are dropped once, and their replacement stays', () => {
  const window = windowOf();
  window.add([
    {
      role: 'tool',
      callId: 'c',
      name: 'a',
      content: 'x',
      isError: false,
      images: [{ mediaType: 'image/png', data: 'AA==' }],
    },
  ]);
  assert.equal(window.dropImages(), true);
  assert.equal(window.dropImages(), false);
  assert.match(window.messages().at(-1)!.content, /^x\n\(This model cannot be shown images\.\)$/);
});

test('the estimate errs high: prose at 2.5 characters a token, hashes at less than 1.5, other scripts at two tokens a character', () => {
  const prose = 'The quick brown fox jumps over the lazy dog, again and again. '.repeat(10);
  assert.ok(tokensOf(prose) >= prose.length / 2.5);
  const hash = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
  assert.ok(tokensOf(hash) >= hash.length / 1.5);
  const chinese = '订单已完成请查收';
  assert.ok(tokensOf(chinese) >= 2 * chinese.length);
  assert.equal(tokensOf(''), 0);
});
