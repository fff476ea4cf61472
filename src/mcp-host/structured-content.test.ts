import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { blocksOf } from './output-cap.ts';

const text = (content: string): ContentBlock => ({ type: 'text', text: content });
const added = (content: ContentBlock[], structuredContent: CallToolResult['structuredContent']) =>
  blocksOf({ content, structuredContent }).slice(content.length);

test('structured content is added unless a text is its JSON, in any spelling', () => {
  const structured = { width: 1, of: ['a'] };
  assert.deepEqual(added([text('{"width":1,"of":["a"]}')], structured), []);
  assert.deepEqual(added([text('{ "width": 1,\n "of": ["a"] }')], structured), []);
  assert.deepEqual(added([text('one wide')], structured), [text('{"width":1,"of":["a"]}')]);
  assert.deepEqual(added([], structured), [text('{"width":1,"of":["a"]}')]);
});

test('content that the blocks contain word for word is not repeated, also a picture', () => {
  assert.deepEqual(added([text('hello\n')], { content: 'hello\n' }), []);
  const picture: ContentBlock = { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' };
  assert.deepEqual(added([picture], { content: [{ ...picture }] }), []);
});

test('a part that only looks similar is added', () => {
  assert.equal(added([text('hello\n')], { content: 'hello' }).length, 1);
  assert.equal(added([text('3')], { count: 3 }).length, 1);
  assert.equal(added([text('')], {}).length, 1);
  assert.equal(added([text('done')], { state: 'done', left: 0 }).length, 1);
});

test('without structured content the blocks stay unchanged', () => {
  const content = [text('a')];
  assert.equal(blocksOf({ content }), content);
});
