import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { digestOf } from '../../../src/mcp-host/tool-definition.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { hostile, startPool, tame, textOf } from './bench.ts';
import { startHostileHttp, startTameHttp } from './http-servers.ts';

const rawOf = (text: string) => ({
  sha256: createHash('sha256').update(text).digest('hex'),
  bytes: Buffer.byteLength(text),
});

/** The answer of a hostile server over HTTP, spelt as no library would spell it. */
const spelt = (id: unknown) =>
  `{ "id":${JSON.stringify(id)},"jsonrpc" : "2.0", "result":{"content":[{"text":"\\u00e9 1.0e2","type":"text"}]}}`;

/** Over stdio: answers calls with a line of unusual spelling, and writes its bytes to a file. */
const SPELLER = `
const { createInterface } = require('node:readline');
const { appendFileSync } = require('node:fs');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const serverInfo = { name: 'speller', version: '0.1.0' };
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
    'tools/list': { tools: [{ name: 'work', inputSchema: { type: 'object' } }] },
  };
  const result = results[method] ?? { content: [{ type: 'text', text: 'é' + id }] };
  const text = '{"result" : ' + JSON.stringify(result) + ',  "id":"' + id + '","jsonrpc":"2.0"}';
  const exact = results[method] ? JSON.stringify({ jsonrpc: '2.0', id, result }) : text;
  if (!results[method]) appendFileSync(process.argv[2], exact + '\\n');
  process.stdout.write(exact + '\\r\\n');
});`;

describe('the digest of an answer', () => {
  test('over stdio covers its line, without the line end', async (t) => {
    const folder = temporaryFolder(t);
    const [program, file] = [join(folder, 'speller.cjs'), join(folder, 'lines')];
    writeFileSync(program, SPELLER);
    const pool = await startPool(t, [{ alias: 'speller', command: process.execPath, args: [program, file] }]);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => pool.call('speller', 'work', {}, { once: true })),
    );
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    assert.equal(lines.length, 8);
    for (const answer of answers) {
      const line = lines.find((one) => one.includes(`"${textOf(answer)}"`))!;
      assert.deepEqual(answer.raw, rawOf(line));
    }
  });

  test('over HTTP covers the body, or the event that carried it', async (t) => {
    const body = await startHostileHttp(t, (response, id) => {
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
      const text = spelt(id);
      response.write(text.slice(0, 20));
      setImmediate(() => response.end(text.slice(20)));
    });
    const events = await startHostileHttp(t, (response, id) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}';
      response.write(`data: ${notice}\n\n: still there\n\nid: 1\r\nevent: message\r\ndata: ${spelt(id).slice(0, 9)}`);
      setImmediate(() => response.end(`${spelt(id).slice(9)}\r\n\r\n`));
    });
    for (const { url } of [body, events]) {
      const pool = await startPool(t, [{ alias: 'web', url }]);
      const answer = await pool.call('web', 'work', {}, { once: true });
      assert.equal(textOf(answer), 'é 1.0e2');
      const digests = Array.from({ length: 20 }, (_, id) => rawOf(spelt(id)).sha256);
      assert.ok(digests.includes(answer.raw!.sha256), JSON.stringify(answer.raw));
      assert.equal((await pool.call('web', 'work', {})).raw, undefined);
    }
  });

  test('exists with both revisions of the official servers, and with refusals and broken results', async (t) => {
    const { url } = await startTameHttp(t, { legacy: 'reject' });
    const modern = { ...tame('modern'), args: [...(tame().args as string[]), 'modern'] };
    const pool = await startPool(t, [tame(), modern, { alias: 'web', url }]);
    for (const alias of ['tame', 'modern', 'web']) {
      const { raw, ...answer } = await pool.call(alias, 'echo', { text: 'hi' }, { once: true });
      assert.equal(textOf(answer), 'hi');
      assert.match(raw!.sha256, /^[0-9a-f]{64}$/);
      assert.ok(raw!.bytes > 40, alias);
    }
    const refusing = await startPool(t, [hostile('refuses-call')]);
    const refused = await refusing.call('hostile', 'work', {}, { once: true });
    assert.deepEqual([refused.withoutResult, refused.raw !== undefined], ['refused', true]);
    const breaking = await startPool(t, [hostile('wrong-result')]);
    const broken = await breaking.call('hostile', 'work', {}, { once: true });
    assert.deepEqual([broken.withoutResult, broken.raw !== undefined], ['unclear', true]);
  });

  test('covers the first answer when a server answers twice', async (t) => {
    const pool = await startPool(t, [hostile('answers-twice')]);
    const answer = await pool.call('hostile', 'work', {}, { once: true });
    assert.equal(textOf(answer), 'first');
    const digests = Array.from({ length: 20 }, (_, id) =>
      rawOf(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'first' }] } })),
    );
    assert.ok(digests.some(({ sha256 }) => sha256 === answer.raw!.sha256));
  });
});

describe('a single-attempt call', () => {
  test('is not repeated when the server asks for it, unlike other calls', async (t) => {
    const file = join(temporaryFolder(t), 'calls');
    const args = [join(import.meta.dirname, 'asking-server.ts'), file];
    const pool = await startPool(t, [{ alias: 'asking', command: process.execPath, args }]);
    const calls = () => readFileSync(file, 'utf8').trim().split('\n').length;
    const once = await pool.call('asking', 'work', {}, { once: true });
    assert.deepEqual([calls(), once.isError, once.withoutResult], [1, true, 'unclear']);
    await pool.call('asking', 'work', {});
    assert.ok(calls() > 2);
  });

  test("is not made when the tool's definition differs from the one known to the caller", async (t) => {
    const pool = await startPool(t, [tame()]);
    const [tool] = pool.tools().filter((one) => one.tool === 'echo');
    const definitionSha256 = digestOf(tool!.definition);
    assert.equal(textOf(await pool.call('tame', 'echo', { text: 'hi' }, { definitionSha256 })), 'hi');
    await assert.rejects(
      pool.call('tame', 'echo', { text: 'hi' }, { definitionSha256: 'f'.repeat(64) }),
      (thrown) => thrown instanceof Error && 'mayHaveRun' in thrown && thrown.mayHaveRun === false,
    );
  });
});
