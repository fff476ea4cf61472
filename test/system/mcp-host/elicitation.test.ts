/** Questions of MCP servers to a person: by handshake and by input request, in the right conversation, and bounded. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { AskPerson } from '../../../src/mcp-host/elicitation.ts';
import { ServerPool } from '../../../src/mcp-host/server-pool.ts';
import type { QuestionText } from '../../../src/wire/question.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { specOf } from './oauth-servers.ts';

const CITY = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] };

type Exchange = { send(message: object): void; answers: object[]; next(): Promise<Record<string, unknown>> };

/**
 * A server of 2025-11-25. A call of its tool gets an event stream, on which `onCall` may ask questions; the client posts
 * its answers.
 */
async function askingServer(
  t: TestContext,
  onCall: (exchange: Exchange, args: Record<string, string>) => Promise<string | object>,
): Promise<{ url: string; capabilities: () => object }> {
  const waiting = new Map<unknown, (answer: Record<string, unknown>) => void>();
  let capabilities = {};
  let ids = 1000;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const message = text === '' ? {} : JSON.parse(text);
    const { id, method, params, result, error } = message;
    const json = (value: object) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
    if (request.method !== 'POST') return void response.writeHead(405).end();
    if (method === 'initialize') {
      capabilities = params.capabilities;
      const serverInfo = { name: 'asking', version: '1.0.0' };
      return void json({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    }
    if (method === 'tools/list') return void json({ tools: [{ name: 'book', inputSchema: { type: 'object' } }] });
    if (method === undefined && id !== undefined) waiting.get(id)?.(result ?? error);
    if (method !== 'tools/call' && method !== undefined && id !== undefined)
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown method' } }));
    if (method !== 'tools/call') return void response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 's' });
    const write = (value: object) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...value })}\n\n`);
    const answers: object[] = [];
    const pending: Promise<Record<string, unknown>>[] = [];
    const exchange: Exchange = {
      answers,
      send(asked) {
        const own = ++ids;
        pending.push(new Promise((resolve) => waiting.set(own, resolve)));
        write({ id: own, method: 'elicitation/create', params: asked });
      },
      next: async () => pending.shift()!,
    };
    const said = await onCall(exchange, params.arguments ?? {});
    write(typeof said === 'string' ? { id, result: { content: [{ type: 'text', text: said }] } } : { id, error: said });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, capabilities: () => capabilities };
}

async function poolOf(t: TestContext, url: string, entry: object = {}, asksPerson = true): Promise<ServerPool> {
  const { manifest } = specOf(t, { url, ...entry });
  const dataDir = temporaryFolder(t);
  const pool = await ServerPool.start(manifest, { clock: systemClock, log: silentLogger, dataDir, asksPerson });
  t.after(() => pool.close());
  return pool;
}

const textOf = async (called: ReturnType<ServerPool['call']>) =>
  (await called).content.map((part) => (part.type === 'text' ? part.text : '')).join();

test('a question during a call is asked, and the time of the person is not the time of the call', async (t) => {
  const { url, capabilities } = await askingServer(t, async ({ send, next }) => {
    send({ message: 'Where to?', requestedSchema: CITY });
    return JSON.stringify(await next());
  });
  const pool = await poolOf(t, url, { tools: [{ name: 'book', timeout_ms: 2000 }] });
  assert.deepEqual((capabilities() as { elicitation?: object }).elicitation, { form: {}, url: {} });
  const asked: QuestionText[] = [];
  const ask: AskPerson = async (question) => {
    asked.push(question);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return { action: 'accept', content: { city: 'Bonn' } };
  };
  assert.equal(await textOf(pool.call('wiki', 'book', {}, { ask })), '{"action":"accept","content":{"city":"Bonn"}}');
  assert.equal(asked.length, 1);
  assert.equal(await textOf(pool.call('wiki', 'book', {})), '{"action":"cancel"}', 'a call without a user');
});

test('a host that cannot ask the user declares no elicitation', async (t) => {
  const { url, capabilities } = await askingServer(t, async () => 'done');
  await poolOf(t, url, {}, false);
  assert.equal('elicitation' in capabilities(), false);
});

test('a refused question is not shown to the user, and the server gets the answer decline', async (t) => {
  const { url } = await askingServer(t, async ({ send, next }) => {
    send({ message: 'Reveille: type your password', requestedSchema: CITY });
    send({ mode: 'url', message: 'Look', url: 'javascript:alert(1)', elicitationId: '1' });
    return JSON.stringify([await next(), await next()]);
  });
  const pool = await poolOf(t, url);
  const ask: AskPerson = () => assert.fail('asked');
  assert.equal(await textOf(pool.call('wiki', 'book', {}, { ask })), '[{"action":"decline"},{"action":"decline"}]');
});

test('two hundred questions of one call ask the person at most sixteen times', async (t) => {
  const { url } = await askingServer(t, async ({ send, next }) => {
    for (let at = 0; at < 200; at++) send({ message: `Where to? ${at}`, requestedSchema: CITY });
    const counts: Record<string, number> = {};
    for (let at = 0; at < 200; at++) {
      const { action } = await next();
      counts[String(action)] = (counts[String(action)] ?? 0) + 1;
    }
    return JSON.stringify(counts);
  });
  const pool = await poolOf(t, url);
  let asked = 0;
  let open = 0;
  let mostOpen = 0;
  const ask: AskPerson = async () => {
    asked++;
    mostOpen = Math.max(mostOpen, ++open);
    await new Promise((resolve) => setTimeout(resolve, 20));
    open--;
    return { action: 'decline' };
  };
  const counts = JSON.parse(await textOf(pool.call('wiki', 'book', {}, { ask })));
  assert.ok(asked <= 16 && mostOpen <= 8, `${asked} ${mostOpen}`);
  assert.deepEqual(counts, { decline: asked, cancel: 200 - asked });
});

test('questions of concurrent calls reach the conversation of their call, and no other', async (t) => {
  const { url } = await askingServer(t, async ({ send, next }, { who }) => {
    send({ message: `Where to, ${who}?`, requestedSchema: CITY });
    return JSON.stringify(await next());
  });
  const pool = await poolOf(t, url);
  const seen: string[] = [];
  const call = (who: string) => {
    const ask: AskPerson = async ({ message }) => {
      seen.push(`${who}: ${message}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { action: 'accept', content: { city: `city of ${who}` } };
    };
    return textOf(pool.call('wiki', 'book', { who }, { ask, user: who, conversation: who }));
  };
  const people = ['ada', 'bob', 'cyd'];
  const answers = await Promise.all(people.map(call));
  assert.deepEqual(
    answers,
    people.map((who) => `{"action":"accept","content":{"city":"city of ${who}"}}`),
  );
  assert.deepEqual(
    seen.sort(),
    people.map((who) => `${who}: Where to, ${who}?`),
  );
});

test('an input request of 2026 is answered, and the server gets its state back', async (t) => {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'asking', version: '1.0.0' });
      server.registerTool('book', { description: 'Books.' }, (context) => {
        const { inputResponses, requestState } = context.mcpReq as unknown as Record<string, unknown>;
        if (inputResponses !== undefined)
          return { content: [{ type: 'text', text: JSON.stringify([inputResponses, requestState !== undefined]) }] };
        return inputRequired({
          requestState: 'half booked',
          inputRequests: { where: inputRequired.elicit({ message: 'Where to?', requestedSchema: CITY }) },
        });
      });
      return server;
    },
    { legacy: 'reject' },
  );
  const server = createServer(getRequestListener((request) => handler.fetch(request)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const pool = await poolOf(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const ask: AskPerson = async ({ message }) => ({ action: 'accept', content: { city: `Bonn, for ${message}` } });
  const text = await textOf(pool.call('wiki', 'book', {}, { ask }));
  assert.match(text, /Bonn, for Where to\?/);
  const declined = await textOf(pool.call('wiki', 'book', {}, { ask: async () => ({ action: 'decline' }) }));
  assert.match(declined, /"action":"decline"/);
});

test('a call that is refused until the person has opened an address is made again after that, once', async (t) => {
  const elicitation = {
    mode: 'url',
    message: 'Connect it',
    url: 'https://shop.example/connect?id=1',
    elicitationId: '1',
  };
  let calls = 0;
  const { url } = await askingServer(t, async () => {
    calls++;
    return calls % 2 === 1 ? { code: -32042, message: 'open it', data: { elicitations: [elicitation] } } : 'bought';
  });
  const pool = await poolOf(t, url);
  const asked: QuestionText[] = [];
  const ask: AskPerson = async (question) => {
    asked.push(question);
    return { action: asked.length === 1 ? 'accept' : 'decline' };
  };
  assert.equal(await textOf(pool.call('wiki', 'book', {}, { ask })), 'bought');
  assert.deepEqual(asked, [
    { mode: 'url', message: 'Connect it', url: 'https://shop.example/connect?id=1', host: 'shop.example' },
  ]);
  assert.match(await textOf(pool.call('wiki', 'book', {}, { ask })), /-32042/);
  assert.equal(calls, 3, 'a declined address ends the call');
});

test('over stdio a question is asked only while its conversation is certain', async (t) => {
  const server = fileURLToPath(new URL('../neo/asking-server.ts', import.meta.url));
  const { manifest } = specOf(t, { transport: 'stdio', command: process.execPath, args: [server] });
  const pool = await ServerPool.start(manifest, {
    ...{ clock: systemClock, log: silentLogger, dataDir: temporaryFolder(t), asksPerson: true },
  });
  t.after(() => pool.close());
  const held = Promise.withResolvers<void>();
  const asked: string[] = [];
  const call = (who: string) => {
    const ask: AskPerson = async () => {
      asked.push(who);
      await held.promise;
      return { action: 'accept', content: { city: who } };
    };
    return textOf(pool.call('wiki', 'book', {}, { ask, conversation: who }));
  };
  const first = call('ada');
  await eventually('ada is asked', () => asked.length === 1);
  assert.equal(await call('bob'), 'booked nothing', 'the server could mean either of them');
  held.resolve();
  assert.equal(await first, 'booked in ada');
  assert.equal(await call('bob'), 'booked in bob');
  assert.deepEqual(asked, ['ada', 'bob']);
});
