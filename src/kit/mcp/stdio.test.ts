import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Server } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { eventually } from '../../../test/support/eventually.ts';
import { serveUntilDisconnect } from './serve.ts';
import { lineCutter } from './stdio.ts';

function cut(maxBytes: number, chunks: readonly Buffer[], hasEnded = false): (string | null)[] {
  const seen: (string | null)[] = [];
  const cutter = lineCutter(maxBytes, {
    line: (bytes) => seen.push(bytes.toString()),
    tooLong: () => seen.push(null),
  });
  for (const chunk of chunks) cutter.feed(chunk);
  if (hasEnded) cutter.end();
  return seen;
}

test('lines are complete for any split of the bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat({ max: 40 })), (texts, cuts) => {
      const lines = texts.map((text) => text.replaceAll('\n', ''));
      let rest = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const chunks = cuts.map((length) => {
        const chunk = rest.subarray(0, length);
        rest = rest.subarray(length);
        return chunk;
      });
      assert.deepEqual(cut(1000, [...chunks, rest]), lines);
    }),
  );
});

test('a line beyond the limit is reported once, and the next lines are read', () => {
  const long = Buffer.alloc(25, 'x');
  assert.deepEqual(cut(10, [Buffer.from('a\n'), long, long, Buffer.from('yy\nb\n')]), ['a', null, 'b']);
  assert.deepEqual(cut(10, [Buffer.from(`${'x'.repeat(11)}\n${'y'.repeat(10)}\n`)]), [null, 'y'.repeat(10)]);
});

test('text after the last line feed waits for more, or for the end', () => {
  assert.deepEqual(cut(10, [Buffer.from('a\nb')]), ['a']);
  assert.deepEqual(cut(10, [Buffer.from('a\nb')], true), ['a', 'b']);
  assert.deepEqual(cut(10, [Buffer.from('a\n')], true), ['a']);
});

/** A server whose calls end when the test answers them. */
function serve() {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const calls = new Map<string, { signal: AbortSignal; answer: () => void }>();
  const factory = () => {
    const server = new Server({ name: 'test', version: '0' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', ({ params: { name } }, { mcpReq: { signal } }) => {
      const { promise, resolve } = Promise.withResolvers<{ content: { type: 'text'; text: string }[] }>();
      calls.set(name, { signal, answer: () => resolve({ content: [{ type: 'text', text: name }] }) });
      return promise;
    });
    return server;
  };
  const { closed } = serveUntilDisconnect({ factory, onerror: () => {}, callLimitMs: 1000, input, output });
  let written = '';
  output.setEncoding('utf8').on('data', (text: string) => {
    written += text;
  });
  const call = (id: string, name: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}"}}`;
  const arrived = async (name: string) => {
    await eventually(`the call of ${name}`, () => calls.has(name));
    return calls.get(name)!;
  };
  return { input, output, closed, call, arrived, written: () => written };
}

const cancel = (id: string) => `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
const textsOf = (answers: { result: { content: { text: string }[] } }[]) =>
  answers.map(({ result }) => result.content[0]!.text);

test('after the end of the input each call is answered, and then the connection ends', async () => {
  const { input, closed, call, arrived, written } = serve();
  input.end(`${call('1', 'a')}\n${call('1', 'b')}`);
  (await arrived('b')).answer();
  await eventually('the answer of b', () => written().includes('"b"'));
  (await arrived('a')).answer();
  await closed;
  assert.deepEqual(
    textsOf(
      written()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
    ['b', 'a'],
  );
});

test('a call that does not end is aborted after the time limit of a call', async (t) => {
  const { input, closed, call, arrived } = serve();
  input.write(`${call('1', 'a')}\n`);
  const { signal } = await arrived('a');
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ended = new Promise((resolve) => input.once('end', resolve));
  input.end();
  await ended;
  assert.equal(signal.aborted, false);
  t.mock.timers.tick(6000);
  await closed;
  assert.equal(signal.aborted, true);
});

test('a broken output ends the connection, also after the end of the input', async () => {
  const { input, output, closed, call, arrived } = serve();
  input.end(call('1', 'a'));
  const { signal } = await arrived('a');
  output.destroy();
  await closed;
  assert.equal(signal.aborted, true);
});

test('a cancelled call is not awaited, alone and in a batch, whatever its id', async () => {
  const { input, closed, call, arrived, written } = serve();
  input.write(`${call('12345678901234567891', 'a')}\n`);
  input.write(`[${call('12345678901234567892', 'b')},${call('"x"', 'c')},${call('3', 'd')}]\n`);
  input.end([cancel('12345678901234567891'), cancel('"\\u0078"'), cancel('12345678901234567892')].join('\n'));
  for (const name of ['a', 'b', 'c']) {
    const { signal } = await arrived(name);
    await eventually(`the end of ${name}`, () => signal.aborted);
  }
  (await arrived('d')).answer();
  await closed;
  assert.deepEqual(textsOf(JSON.parse(written())), ['d']);
});
