import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { answerOf, type HostContent } from './tool-set.ts';

const texts = (content: HostContent[]) =>
  answerOf({ content }).content.map((part) => (part.type === 'text' ? part.text : part.mediaType));

test('text and supported images stay unchanged', () => {
  const picture = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'IMAGE/PNG' };
  assert.deepEqual(answerOf({ content: [{ type: 'text', text: 'a' }, picture] }), {
    content: [
      { type: 'text', text: 'a' },
      { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
    ],
    isError: false,
  });
});

test('content that cannot be shown is described for the model', () => {
  assert.deepEqual(
    texts([
      { type: 'image', data: 'AAAA', mimeType: 'image/tiff' },
      { type: 'audio', data: 'AAA=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'file:///a', name: 'A' },
      { type: 'resource', resource: { uri: 'file:///b', text: 'B' } },
      { type: 'resource', resource: { uri: 'file:///c', blob: 'AA==', mimeType: 'application/zip' } },
      { type: 'hologram' },
    ]),
    [
      '[a picture, image/tiff, 3 bytes; not shown]',
      '[a sound, audio/wav, 2 bytes; not shown]',
      '[resource file:///a (A)]',
      '[resource file:///b]\nB',
      '[resource file:///c, application/zip, 1 bytes; not shown]',
      '[content of the type "hologram"; not shown]',
    ],
  );
});

test('an empty result is described as text', () => {
  assert.deepEqual(texts([]), ['done; the tool said nothing']);
  assert.match(JSON.stringify(answerOf({ content: [], isError: true })), /failed and gave no reason/);
});

test('whatever a server sends, the result is well-formed', () => {
  const member = fc.anything();
  const kind = fc.oneof(fc.constantFrom('text', 'image', 'audio', 'resource', 'resource_link'), fc.string());
  const block = fc.record({ type: kind, text: member, data: member, mimeType: member, uri: member, resource: member });
  fc.assert(
    fc.property(fc.array(block), (content) => {
      const answer = answerOf({ content });
      assert.ok(answer.content.length > 0);
      for (const part of answer.content) assert.ok(part.type === 'image' || part.text.isWellFormed());
    }),
  );
});
