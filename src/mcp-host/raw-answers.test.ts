import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { type AnswerSlot, RawAnswers } from './raw-answers.ts';

/** The stored answer to one request. */
async function sourceOf(text: string): Promise<string | undefined> {
  const answers = new RawAnswers();
  const slot: AnswerSlot = {};
  await answers.during(slot, async () => {
    answers.onSent({ jsonrpc: '2.0', id: 7, method: 'tools/call' } as JSONRPCMessage);
    answers.onReceived(JSON.parse(text), Buffer.from(text));
  });
  return slot.raw?.source;
}

const answer = (result: string) => `{"jsonrpc":"2.0","id":7,"result":${result}}`;
const saying = (text: string, more = '') =>
  answer(`{"content":[{"type":"text","text":${JSON.stringify(text)}}${more}]}`);

test('the text of a result is kept as the server wrote it, with all its digits', async () => {
  const digits = '{ "wei":115792089237316195423570985008687907853269984665640564039457584007913129639935,"x":4975.00 }';
  const structured = `{"content":[{"type":"text","text":"{}"}],"structuredContent":${digits}}`;
  assert.equal(await sourceOf(answer(structured)), digits);
  assert.equal(await sourceOf(`[{"jsonrpc":"2.0","id":6,"result":{}},${answer(structured)}]`), digits);
  assert.equal(
    await sourceOf(`{"result":{"structuredContent":{"n":1}},"jsonrpc":"2.0","id":7,"result":${structured}}`),
    digits,
  );
  assert.equal(await sourceOf(saying(`\n${digits} `)), digits);
  assert.equal(await sourceOf(saying('[1.0]')), '[1.0]');
  for (const none of [
    saying('4975.00'),
    saying('{"a":1'),
    saying('[1] and more'),
    saying('{}', ',{"type":"text","text":"{}"}'),
  ])
    assert.equal(await sourceOf(none), undefined, none);
  for (const none of [
    answer('{"content":[]}'),
    answer('{}'),
    answer('[]'),
    answer('null'),
    answer('{"content":{"text":"{}"}}'),
  ])
    assert.equal(await sourceOf(none), undefined, none);
});
