/** Alarms that wait for MCP Events: the router asks a server of the machine's manifest, built with the official SDK. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, McpServer, ProtocolError, type ServerCapabilities } from '@modelcontextprotocol/server';
import { pino } from 'pino';
import { z } from 'zod';
import { SETTINGS_OF } from '../../../src/cli/home/settings-names.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { fixtureMachine, startBench, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { LOOK_MAX_BYTES, type LookAnswer } from '../../../src/wire/look.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const pollSchema = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  cursor: z.string().nullish(),
  maxEvents: z.int().optional(),
});

type Mail = { eventId: string; subject: string };

/** A server with one type of events, whose position is the number of events. */
async function startMailServer(
  t: TestContext,
  { legacy = 'reject' as 'reject' | 'stateless', offers = true, announces = true } = {},
) {
  const mails: Mail[] = [];
  const asked: { cursor?: string | null | undefined; authorization: string | undefined }[] = [];
  /** Addresses and headers of all requests. */
  const received: string[] = [];
  const state = {
    ...{ oldest: 0, authorization: undefined as string | undefined, nextPollMs: 30_000 },
    /** The HTTP status of every answer, in place of the answer. */
    failsWith: undefined as number | undefined,
  };
  const factory = () => {
    const extensions = { 'io.modelcontextprotocol/events': {} };
    const capabilities = (announces ? { extensions, tools: {} } : { tools: {} }) as ServerCapabilities;
    const server = new McpServer({ name: 'mail', version: '1.0.0' }, { capabilities });
    if (!offers) return server;
    server.server.setRequestHandler('events/poll', { params: pollSchema }, async ({ name, cursor, maxEvents = 50 }) => {
      asked.push({ cursor, authorization: state.authorization });
      if (name !== 'email.received') throw new ProtocolError(-32_602, `there is no event ${name}`);
      const truncated = typeof cursor === 'string' && Number(cursor) < state.oldest;
      const from = typeof cursor === 'string' ? Math.max(Number(cursor), state.oldest) : mails.length;
      const some = mails.slice(from, from + maxEvents);
      const events = some.map(({ eventId, subject }) => ({
        ...{ eventId, name, timestamp: '2026-11-27T12:00:00Z' },
        data: { subject },
      }));
      const to = from + some.length;
      const more = { truncated, hasMore: to < mails.length, nextPollMs: state.nextPollMs };
      return { resultType: 'complete', events, cursor: String(to), ...more };
    });
    return server;
  };
  const handler = createMcpHandler(factory, { legacy });
  const respond = getRequestListener((request) => handler.fetch(request));
  const server = createServer((request, response) => {
    state.authorization = request.headers.authorization;
    received.push(JSON.stringify([request.url, request.rawHeaders]));
    if (state.failsWith !== undefined) response.writeHead(state.failsWith).end();
    else void respond(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { mails, asked, received, state, url: `http://127.0.0.1:${port}/mcp`, server };
}

const reference = (name: string) => `\${${name}}`;

/** A router with a machine whose manifest has the server, and looks at it. */
async function createMailbox(t: TestContext, url: string, { own = {}, log = silentLogger } = {}) {
  const environment = { ...process.env, MAIL_SECRET: 'secret-of-the-mail', ...own };
  const router = await startBench(t, { environment, log });
  const folder = temporaryFolder(t);
  const manifest = join(temporaryFolder(t), 'agent.json');
  const servers = [
    { alias: 'mail', transport: 'http', url, headers: { authorization: `Bearer ${reference('MAIL_TOKEN')}` } },
    { alias: 'local', transport: 'stdio', command: 'true' },
  ];
  const manifestText = { schema_version: '1', agent: 'a', allowed_side_effects: ['read'], servers };
  writeFileSync(manifest, JSON.stringify(manifestText));
  const { spec, ...more } = fixtureMachine(
    folder,
    undefined,
    {},
    {
      NEO_MANIFEST: manifest,
      MAIL_TOKEN: reference('MAIL_SECRET'),
    },
  );
  await router.put('ada', { ...more, spec });
  const ask = (event: object, seen?: string) =>
    router.send('POST', '/internal/look', WAKE_TOKEN, { user_id: 'ada', alarm_id: 'a', event, seen });
  const mail = { source: 'mcp', server: 'mail', name: 'email.received' };
  const look = async (seen?: string) => {
    const answer = await ask(mail, seen);
    assert.equal(answer.status, 200, answer.text);
    return answer.json.data as unknown as LookAnswer;
  };
  return { router, ask, look, mail, manifest, manifestText, machine: { ...more, spec } };
}

for (const legacy of ['reject', 'stateless'] as const)
  test(`events since the last look, in order, with the server's cursor (legacy: ${legacy})`, async (t) => {
    const server = await startMailServer(t, { legacy });
    const { look } = await createMailbox(t, server.url);
    server.mails.push({ eventId: 'old', subject: 'before' });
    const first = await look();
    assert.deepEqual(first.events, []);
    assert.equal(first.wait_ms, 30_000);
    for (let n = 0; n < 250; n++) server.mails.push({ eventId: `m${n}`, subject: `mail ${n}` });
    const ids: string[] = [];
    let { seen } = first;
    for (let turns = 0; ; turns++) {
      const answer = await look(seen);
      ids.push(...answer.events.map(({ id }) => id));
      seen = answer.seen;
      assert.ok(turns < 5);
      if (!answer.more) break;
    }
    assert.deepEqual(
      ids,
      server.mails.slice(1).map(({ eventId }) => `mcp-${eventId}`),
    );
    assert.deepEqual((await look(seen)).events, []);
    assert.ok(server.asked.every(({ authorization }) => authorization === 'Bearer secret-of-the-mail'));
    server.state.oldest = 251;
    const gap = await look(first.seen);
    assert.equal((JSON.parse(gap.events[0]!.data) as { truncated: boolean }).truncated, true);
  });

test('an event reaches the alarm as the server wrote it, and one that is too long is named', async (t) => {
  const server = await startMailServer(t);
  const { look } = await createMailbox(t, server.url);
  const { seen } = await look();
  server.mails.push({ eventId: 'a'.repeat(2000), subject: 'long id' }, { eventId: 'b', subject: 'x'.repeat(70_000) });
  const { events } = await look(seen);
  assert.deepEqual(
    events.map(({ id }) => id.length),
    [71, 5],
  );
  assert.deepEqual(JSON.parse(events[0]!.data).data, { subject: 'long id' });
  const { data, ...rest } = JSON.parse(events[1]!.data);
  assert.equal(data, undefined);
  assert.deepEqual([rest.eventId, rest.name], ['b', 'email.received']);
});

test('the events of a look have a budget of bytes; those beyond it are only named', async (t) => {
  const server = await startMailServer(t);
  const { look } = await createMailbox(t, server.url);
  const { seen } = await look();
  for (let n = 0; n < 100; n++) server.mails.push({ eventId: `m${n}`, subject: 'x'.repeat(60_000) });
  const { events, more } = await look(seen);
  assert.deepEqual([events.length, more], [100, undefined]);
  const sizes = events.map(({ data }) => Buffer.byteLength(data));
  assert.ok(sizes.reduce((sum, size) => sum + size) < LOOK_MAX_BYTES + 100 * 300);
  assert.ok(sizes[0]! > 60_000);
  assert.deepEqual(JSON.parse(events[99]!.data), {
    ...{ eventId: 'm99', name: 'email.received', bytes: JSON.parse(events[99]!.data).bytes },
    note: 'the event is too long for a wake; ask the server for it',
  });
});

test('what cannot be asked is refused with the reason, and no secret is shown', async (t) => {
  const server = await startMailServer(t);
  const { ask, mail, router, manifest } = await createMailbox(t, server.url);
  const refusal = async (event: object) => {
    const { status, json, text } = await ask(event);
    assert.ok(!text.includes('secret-of-the-mail'));
    return `${status} ${json.error.message}`;
  };
  assert.match(
    await refusal({ ...mail, server: 'none' }),
    /^400 event: the manifest of ada has no server none; .*mail/,
  );
  assert.match(await refusal({ ...mail, server: 'local' }), /^400 event: the server local is a program that only/);
  assert.match(await refusal({ ...mail, name: 'other' }), /^400 event: the server mail has refused: .*no event other/);
  writeFileSync(manifest, '{');
  assert.match(await refusal(mail), /^503 event: the manifest of ada cannot be read/);
  await router.put('bob', { provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
  const ofBob = await router.send('POST', '/internal/look', WAKE_TOKEN, { user_id: 'bob', alarm_id: 'a', event: mail });
  assert.match(ofBob.json.error.message, /need a machine of provider process/);
  const unauthorized = await router.send('POST', '/internal/look', 'wrong', {
    user_id: 'ada',
    alarm_id: 'a',
    event: mail,
  });
  assert.equal(unauthorized.status, 401);
});

for (const legacy of ['reject', 'stateless'] as const)
  test(`a server without events is refused, whatever it announces (legacy: ${legacy})`, async (t) => {
    for (const announces of [false, true]) {
      const server = await startMailServer(t, { legacy, offers: false, announces });
      const { ask, mail } = await createMailbox(t, server.url);
      const { status, json } = await ask(mail);
      assert.equal(status, 400);
      assert.match(json.error.message, /the server mail does not offer events/);
    }
  });

test('a server that does not announce the extension may fail, and refuse, as any other', async (t) => {
  const server = await startMailServer(t, { announces: false });
  const { ask, look, mail } = await createMailbox(t, server.url);
  const { seen } = await look();
  for (const failsWith of [404, 500]) {
    server.state.failsWith = failsWith;
    const { status, json } = await ask(mail, seen);
    assert.equal(status, 503);
    assert.match(json.error.message, /the server mail cannot be asked/);
  }
  server.state.failsWith = undefined;
  assert.match((await ask({ ...mail, name: 'other' })).json.error.message, /the server mail has refused: .*no event/);
  server.mails.push({ eventId: 'again', subject: '' });
  assert.equal((await look(seen)).events.length, 1);
});

test('a server that is gone, and comes back', async (t) => {
  const server = await startMailServer(t);
  const other = await createMailbox(t, server.url);
  const { seen } = await other.look();
  const { port } = server.server.address() as AddressInfo;
  server.server.closeAllConnections();
  server.server.close();
  const gone = await other.ask(other.mail, seen);
  assert.equal(gone.status, 503);
  assert.match(gone.json.error.message, /the server mail cannot be asked/);
  server.server.listen(port, '127.0.0.1');
  await once(server.server, 'listening');
  server.mails.push({ eventId: 'again', subject: '' });
  assert.equal((await other.look(seen)).events.length, 1);
});

test('a manifest is resolved with what the machine gets: no variable of the router reaches the server', async (t) => {
  const server = await startMailServer(t);
  const names = Object.values(SETTINGS_OF).flatMap((schemas) => schemas.flatMap(({ shape }) => Object.keys(shape)));
  const ofRouter = names.filter((name) => name !== 'NEO_MANIFEST');
  const planted = [...ofRouter, 'REVEILLE_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'MAIL_SECRET', 'DATABASE_URL'];
  const canary = 'canary-0c8d4f';
  const lines: string[] = [];
  const { ask, look, mail, manifest, manifestText } = await createMailbox(t, server.url, {
    own: Object.fromEntries(planted.map((name) => [name, `${canary}-${name}`])),
    log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
  });
  const answers: string[] = [];
  for (const name of planted) {
    const otherwise = `\${${name}:-none}`;
    const servers = [
      { alias: 'mail', transport: 'http', url: `${server.url}?x=${otherwise}`, headers: { 'x-value': otherwise } },
      { alias: 'program', command: `true ${otherwise}`, env: { VALUE: otherwise } },
    ];
    writeFileSync(manifest, JSON.stringify({ ...manifestText, servers }));
    const before = server.received.length;
    const { status, text } = await ask(mail);
    answers.push(text);
    if (status === 200) assert.match(server.received.slice(before).join(), /x=none.*none/, name);
    else assert.match(text, /is reserved for the daemons of Reveille/, name);
  }
  writeFileSync(manifest, JSON.stringify(manifestText));
  await look();
  const arrived = [...server.received, ...answers, ...lines].filter((text) => text.includes(canary));
  // The machine itself has MAIL_TOKEN, which refers to MAIL_SECRET.
  assert.deepEqual(
    [...new Set(arrived.flatMap((text) => text.match(/canary-0c8d4f-\w+/g)))],
    [`${canary}-MAIL_SECRET`],
  );
});

test('a manifest that the machine may write, or may exchange by a link, is not read', async (t) => {
  const server = await startMailServer(t);
  const { router, ask, mail, manifest, manifestText, machine } = await createMailbox(t, server.url);
  const [own, further, data] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)];
  const trusted = temporaryFolder(t);
  mkdirSync(join(own, 'below'));
  symlinkSync(join(own, 'below'), join(trusted, 'link'));
  symlinkSync(manifest, join(own, 'to-trusted.json'));
  const text = JSON.stringify(manifestText);
  const written = [own, join(own, 'below'), further, data].map((folder) => join(folder, 'agent.json'));
  for (const path of written) writeFileSync(path, text);
  for (const path of [...written, join(trusted, 'link', 'agent.json'), join(own, 'to-trusted.json')]) {
    const env = { ...machine.spec.env, NEO_MANIFEST: path, NEO_DATA_DIR: data };
    await router.put('ada', { ...machine, spec: { ...machine.spec, cwd: own, writable: [further], env } });
    const { status, json } = await ask(mail);
    assert.equal(status, 400, path);
    assert.match(json.error.message, /the manifest of ada is in a folder that its machine may write/, path);
  }
  assert.deepEqual(server.received, []);
  const env = { ...machine.spec.env, NEO_DATA_DIR: data };
  await router.put('ada', { ...machine, spec: { ...machine.spec, cwd: own, writable: [further], env } });
  assert.equal((await ask(mail)).status, 200);
});
