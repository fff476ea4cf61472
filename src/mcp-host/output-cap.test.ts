import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { ContentBlock } from '@modelcontextprotocol/client';
import fc from 'fast-check';
import { capOutput, SpillFolder } from './output-cap.ts';

const root = mkdtempSync(join(tmpdir(), 'reveille-cap-'));
after(() => rmSync(root, { recursive: true }));
const folder = new SpillFolder(join(root, 'spill'));

const text = (content: string): ContentBlock => ({ type: 'text', text: content });
const image: ContentBlock = { type: 'image', data: 'x'.repeat(10_000), mimeType: 'image/png' };

test('a text below the cap stays unchanged', () => {
  const content = [text('a'.repeat(300)), image, text('b')];
  assert.deepEqual(capOutput({ content, isError: true, structuredContent: { said: 'b' } }, 100, folder), {
    content,
    isError: true,
    structuredContent: { said: 'b' },
  });
});

test('structured content that no text block contains is capped like any other', () => {
  const structuredContent = { count: 1, said: 'a'.repeat(10_000) };
  const {
    content,
    spilled,
    structuredContent: kept,
  } = capOutput({ content: [text('b')], structuredContent }, 50, folder);
  assert.equal(kept, structuredContent);
  assert.equal(readFileSync(spilled![0]!, 'utf8'), `b\n\n${JSON.stringify(structuredContent)}`);
  assert.ok(JSON.stringify(content).length < 600);
});

test('text over the cap keeps beginning and end, and the file contains the whole text', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 400 }), { minLength: 1, maxLength: 8 }), (texts) => {
      const whole = texts.join('\n\n');
      const { content, spilled } = capOutput({ content: [image, ...texts.map(text)] }, 50, folder);
      assert.equal(content[0], image);
      if (!spilled) return assert.deepEqual(content.slice(1), texts.map(text));
      assert.equal(readFileSync(spilled[0]!, 'utf8'), whole);
      assert.equal(content.length, 2);
      const [, shown] = content;
      assert.ok(shown?.type === 'text');
      const notice = /\n\n\[\d+ bytes are left out here; the whole output is in .*\]\n\n/s.exec(shown.text)!;
      const [head, tail] = [shown.text.slice(0, notice.index), shown.text.slice(notice.index + notice[0].length)];
      assert.ok(whole.startsWith(head) && whole.endsWith(tail));
      assert.ok(Buffer.byteLength(head + tail) <= 200 + 4);
    }),
    { numRuns: 200 },
  );
});

test('a long binary resource becomes a file, a short one stays', () => {
  const blob = (bytes: number): ContentBlock => ({
    type: 'resource',
    resource: { uri: 'file:///a.zip', blob: Buffer.alloc(bytes, 1).toString('base64'), mimeType: 'application/zip' },
  });
  const { content, spilled } = capOutput({ content: [blob(10), blob(3000)] }, 100, folder);
  assert.deepEqual(content[0], blob(10));
  assert.match(
    (content[1] as { text: string }).text,
    /^\[file:\/\/\/a\.zip: 3000 bytes of application\/zip; the whole output is in .*\.bin\]$/,
  );
  assert.deepEqual(readFileSync(spilled![0]!), Buffer.alloc(3000, 1));
});

test('a full disk does not turn a result into a failure', () => {
  const file = join(root, 'a-file');
  writeFileSync(file, '');
  const { content, isError, spilled } = capOutput(
    { content: [text('x'.repeat(5000))] },
    10,
    new SpillFolder(join(file, 'sub')),
  );
  assert.deepEqual([isError, spilled], [false, undefined]);
  assert.match((content[0] as { text: string }).text, /the whole output could not be stored: /);
});

test('the oldest files go when the folder is full, never the newest', () => {
  const path = join(root, 'full');
  mkdirSync(path);
  const small = new SpillFolder(path, 250);
  const kept = ['a', 'b', 'c', 'd'].map((letter) => small.store(letter.repeat(100), 'txt'));
  assert.deepEqual(
    readdirSync(path).sort(),
    kept.slice(2).map((file) => file.slice(path.length + 1)),
  );
  const large = small.store('e'.repeat(1000), 'txt');
  assert.deepEqual(readdirSync(path), [large.slice(path.length + 1)]);
});
