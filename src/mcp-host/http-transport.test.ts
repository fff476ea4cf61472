import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { eventDataReader } from './http-transport.ts';

/** The data of the events in a text that arrives in pieces of this many bytes. */
function read(text: string, size = 1 << 20): string[] {
  const found: string[] = [];
  const feed = eventDataReader((data) => found.push(data.toString('utf8')));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) feed(bytes.subarray(at, at + size));
  return found;
}

test('the data of each event is passed on at its blank line, whatever else the event contains', () => {
  const text =
    ': a comment\nevent: message\nid: 7\ndata: {"a":1}\n\ndata:{"b":2}\nretry: 3\n\nid: 8\n\ndata: never ended\n';
  assert.deepEqual(read(text), ['{"a":1}', '{"b":2}']);
});

test('only one space after the colon is not data, and several lines are joined', () => {
  assert.deepEqual(read('data:  a\ndata\ndata:b \n\n'), [' a\n\nb ']);
  assert.deepEqual(read('database: x\ndata: y\n\n'), ['y']);
});

test('lines may end in LF, CR or both, and be cut anywhere', () => {
  const events = ['{"é":"ü 漢"}', 'b', ''];
  const ends = ['\n', '\r', '\r\n'] as const;
  fc.assert(
    fc.property(fc.constantFrom(...ends), fc.integer({ min: 1, max: 40 }), (end, size) => {
      const text = events.map((data) => `event: message${end}data: ${data}${end}${end}`).join('');
      assert.deepEqual(read(text, size), events);
    }),
  );
});

test('an event of endless lines is skipped, and the next one is read', () => {
  assert.deepEqual(read(`${'data: x\n'.repeat(5000)}\ndata: y\n\n`), ['y']);
});
