import assert from 'node:assert/strict';
import { createPublicKey, randomBytes, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startStandInNtfy } from '../../../test/support/stand-ins/ntfy.ts';
import { pushBrowser } from '../../../test/support/stand-ins/push-browser.ts';
import { atEnd, listening, temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { GuardedClient } from '../../kit/http/guarded-client.ts';
import type { Resolve } from '../../kit/http/guarded-lookup.ts';
import { GUARD_WORDS, vapidOf } from '../daemon.ts';
import { NotifyStore } from '../store.ts';
import type { ChannelTools, Message } from './channel.ts';
import { CHANNELS, type ChannelName, readSpec } from './channels.ts';

type Post = { headers: IncomingHttpHeaders; body: Buffer; url: string };

/** A receiver that answers as the test says, and what it got. */
async function receiver(t: TestContext, status: () => number = () => 200, headers: Record<string, string> = {}) {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    posts.push({ headers: request.headers, body: await buffer(request), url: request.url! });
    response.writeHead(status(), headers).end('{"error":"no such topic, token tk_sesame"}');
  });
  return { posts, url: await listening(t, server) };
}

function toolsOf(t: TestContext, resolve?: Resolve): ChannelTools {
  const http = new GuardedClient(GUARD_WORDS, ...(resolve ? [resolve] : []));
  atEnd(t, () => http.close());
  const store = new NotifyStore({ dir: temporaryFolder(t), clock: systemClock, lock: 'shared' });
  atEnd(t, () => store.close());
  const vapid = vapidOf(store, 'https://console.example');
  const variables = { PATH: process.env.PATH, CHRONOS_ADMIN_TOKEN: 'not-for-programs' };
  return { http, clock: systemClock, signal: new AbortController().signal, variables, vapid };
}

const message: Message = {
  ...{ id: 'ntf_0123456789abcdef', kinds: ['approvals'], at: Date.parse('2026-11-23T02:00:00Z') },
  ...{ title: 'Approve? ledger/transfer', text: 'alice 5,000.00 → 4,975.00 EUR', about: { intent_id: 'i-1' } },
  links: [
    { label: 'Approve …', url: 'https://console.example/answer/yes' },
    { label: 'Deny …', url: 'https://console.example/answer/no' },
  ],
};

/** Reads the specification as an addition does, and tells. */
function tell(kind: ChannelName, spec: object, tools: ChannelTools, said: Message = message) {
  return CHANNELS[kind].tell(readSpec(kind, spec, tools), said, tools);
}

test('ntfy gets title, text, priority, buttons and an id by which it recognises a repetition, within its bounds', async (t) => {
  const { posts, url } = await receiver(t);
  const tools = toolsOf(t);
  const spec = { server: url, topic: 'reveille', token: 'tk_sesame', allow_private: true };
  assert.deepEqual(await tell('ntfy', spec, tools), { result: 'done' });
  await tell('ntfy', spec, tools, { ...message, text: '→'.repeat(5000), links: [] });
  const [first, second] = posts.map(({ body }) => JSON.parse(body.toString()));
  assert.deepEqual(first, {
    ...{ topic: 'reveille', title: message.title, message: message.text, priority: 4, tags: ['approvals'] },
    sequence_id: message.id,
    actions: message.links.map(({ label, url }) => ({ action: 'view', label, url })),
  });
  assert.equal(posts[0]!.headers.authorization, 'Bearer tk_sesame');
  assert.equal(posts[0]!.url, '/');
  assert.ok(Buffer.byteLength(second.message) <= 4096 && second.message.endsWith('→ … (cut)'));
  assert.equal(second.actions, undefined);
});

test('whatever a message holds, a server with the bounds of ntfy takes it', async (t) => {
  const server = await startStandInNtfy(t, 'tk_sesame');
  const tools = toolsOf(t);
  const spec = { server: server.url, topic: 'reveille', token: 'tk_sesame', allow_private: true };
  const texts = [
    '',
    'short',
    '"'.repeat(5000),
    '\\'.repeat(5000),
    '\u0001'.repeat(5000),
    '→'.repeat(5000),
    '\n'.repeat(5000),
  ];
  for (const text of texts) {
    const said = { ...message, title: text.slice(0, 300), text, kinds: ['approvals', 'failures'] as Message['kinds'] };
    assert.deepEqual(await tell('ntfy', spec, tools, said), { result: 'done' }, JSON.stringify(text.slice(0, 9)));
  }
  assert.equal(server.published.length, texts.length);
  assert.equal(server.shown().length, 1, 'a repetition takes the place of the first');
  const refused = await tell('ntfy', { ...spec, token: 'tk_wrong' }, tools);
  assert.match('why' in refused ? refused.why : '', /ntfy answered 401/);
  const { token: _, ...open } = spec;
  const forbidden = await tell('ntfy', open, tools);
  assert.match('why' in forbidden ? forbidden.why : '', /ntfy answered 403/);
});

test('a receiver that refuses is tried again and told of without its token; one that is gone is not', async (t) => {
  let status = 403;
  const { url } = await receiver(t, () => status);
  const tools = toolsOf(t);
  const ntfy = { server: url, topic: 'reveille', token: 'tk_sesame', allow_private: true };
  const why = 'ntfy answered 403: {"error":"no such topic, token …"}';
  assert.deepEqual(await tell('ntfy', ntfy, tools), { result: 'later', why });
  status = 410;
  const hook = { url: `${url}/hook`, secret: 'whsec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', allow_private: true };
  assert.equal((await tell('webhook', hook, tools)).result, 'drop');
});

test('a webhook is signed so that another implementation believes it', async (t) => {
  const { posts, url } = await receiver(t);
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  assert.deepEqual(await tell('webhook', { url, secret, allow_private: true }, toolsOf(t)), { result: 'done' });
  const { headers, body } = posts[0]!;
  const read = new Webhook(secret).verify(body.toString(), headers as Record<string, string>);
  const { id, kinds, title, text, about, links } = message;
  assert.deepEqual(read, {
    type: 'reveille.notification',
    timestamp: '2026-11-23T02:00:00.000Z',
    data: { id, kinds, title, text, ...about, links },
  });
  assert.equal(headers['webhook-id'], message.id);
});

/** The claims of a VAPID header whose signature is right (RFC 8292). */
function vapidClaims(header: string): Record<string, unknown> {
  const [, jwt, key] = /^vapid t=([^,]+), ?k=(.+)$/.exec(header)!;
  const [head, claims, signature] = jwt!.split('.') as [string, string, string];
  const point = Buffer.from(key!, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' });
  const signed = Buffer.from(signature, 'base64url');
  assert.ok(verify('sha256', Buffer.from(`${head}.${claims}`), { key: publicKey, dsaEncoding: 'ieee-p1363' }, signed));
  return JSON.parse(Buffer.from(claims, 'base64url').toString());
}

test('a browser can decrypt what its push service got, and nobody else: RFC 8291, signed by our key', async (t) => {
  let status = 201;
  const { posts, url } = await receiver(t, () => status);
  const tools = toolsOf(t);
  const { subscription, decrypt } = pushBrowser(`${url}/push/abc`);
  const spec = { ...subscription, allow_private: true };
  assert.deepEqual(await tell('webpush', spec, tools), { result: 'done' });
  await tell('webpush', spec, tools);
  // JSON writes each of these with six characters.
  await tell('webpush', spec, tools, { ...message, text: '\u0001'.repeat(20_000) });
  const [first, again, long] = posts as [Post, Post, Post];
  assert.equal(first.headers['content-encoding'], 'aes128gcm');
  assert.equal(first.headers.urgency, 'high');
  assert.equal(first.body.includes('alice'), false);
  const { title, text, links } = message;
  const payload = JSON.parse(decrypt(first.body));
  assert.deepEqual([payload.id, payload.title, payload.text, payload.links], [message.id, title, text, links]);
  // A repetition takes the place of the first one at the push service, and the browser knows it by its id.
  assert.match(first.headers.topic as string, /^[A-Za-z0-9_-]{1,32}$/);
  assert.equal(again.headers.topic, first.headers.topic);
  assert.ok(long.body.length <= 4096, `${long.body.length} bytes`);
  assert.match(JSON.parse(decrypt(long.body)).text, /\(cut\)$/);
  const { aud, sub, exp } = vapidClaims(first.headers.authorization!);
  assert.deepEqual([aud, sub], [url, 'https://console.example']);
  assert.ok(Number(exp) > Date.now() / 1000 && Number(exp) <= Date.now() / 1000 + 86_400);
  status = 410;
  assert.equal((await tell('webpush', spec, tools)).result, 'drop');
});

test('an address that is private is refused unless it is allowed, however it is written, and a redirect is not followed', async (t) => {
  const inside = await receiver(t);
  const outside = await receiver(t, () => 302, { location: inside.url });
  const resolve: Resolve = (_, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  const tools = toolsOf(t, resolve);
  const secret = 'a-secret-for-the-webhook';
  const hosts = ['127.0.0.1', '10.1.2.3', '[::1]', '[::ffff:10.0.0.1]', '2130706433', '192.168.1.1', '[fd00::1]'];
  for (const host of hosts) {
    const refused = /a notification may not call this address: .* is an address of .*; to allow it, .* --allow-private$/;
    assert.throws(() => readSpec('webhook', { url: `http://${host}/x`, secret }, tools), refused, host);
    assert.throws(() => readSpec('ntfy', { server: `http://${host}`, topic: 'x' }, tools), refused, host);
    const keys = pushBrowser('http://x').subscription.keys;
    assert.throws(() => readSpec('webpush', { endpoint: `http://${host}/`, keys }, tools), refused, host);
  }
  // Never, whatever is allowed.
  const metadata = { url: 'http://169.254.169.254/latest', secret, allow_private: true };
  assert.throws(() => readSpec('webhook', metadata, tools), /a link-local address/);
  // A name is looked at when a connection is made.
  const { port } = new URL(inside.url);
  const named = await tell('webhook', { url: `http://hooks.example:${port}/`, secret }, tools);
  assert.ok(named.result === 'later' && named.slow === true);
  assert.match(named.why, /hooks\.example resolves to 127\.0\.0\.1, an address of this computer/);
  const redirected = await tell('webhook', { url: outside.url, secret, allow_private: true }, tools);
  assert.ok(redirected.result === 'later');
  assert.match(redirected.why, /^the webhook answered 302 \(redirects are not followed\)/);
  assert.equal(inside.posts.length, 0);
});

test('what is wrong with a channel is said by its member, without its secrets', (t) => {
  const tools = toolsOf(t);
  const wrong: [ChannelName, object, RegExp][] = [
    ['ntfy', { topic: 'a b' }, /^topic: must be 1 to 64 of A-Z a-z 0-9 _ -$/],
    ['ntfy', { topic: 'a', token: 'tk sesame' }, /^token: must be printable ASCII without spaces$/],
    ['ntfy', { topic: 'a', server: 'ftp://x' }, /^server: must be an http:\/\/ or https:\/\/ address$/],
    [
      'webhook',
      { url: 'https://ada:sesame@x.example', secret: 'a-long-secret-it-is' },
      /^url: .*user name or password$/,
    ],
    ['webhook', { url: 'https://x.example', secret: 'short' }, /^secret: must have at least 16 characters$/],
    [
      'webpush',
      { endpoint: 'https://x.example', keys: { p256dh: 'AA', auth: 'AA' } },
      /^keys\.p256dh: must be 65 bytes/,
    ],
    ['command', { command: [''] }, /^command/],
  ];
  for (const [kind, spec, expected] of wrong)
    assert.throws(
      () => readSpec(kind, spec, tools),
      (error: Error) => expected.test(error.message) && !error.message.includes('sesame'),
      JSON.stringify(spec),
    );
  const hook = readSpec('webhook', { url: 'https://x.example/a-secret-path', secret: 'a-long-secret-it-is' }, tools);
  assert.equal(CHANNELS.webhook.place(hook), 'https://x.example');
});

test('a program gets the notification on its standard input and none of our secrets', async (t) => {
  const file = join(temporaryFolder(t), 'told.json');
  const script = `const fs = require('node:fs'); fs.writeFileSync(process.argv[1],
    JSON.stringify({ told: JSON.parse(fs.readFileSync(0, 'utf8')), secret: process.env.CHRONOS_ADMIN_TOKEN }))`;
  const spec = { command: [process.execPath, '-e', script, file] };
  assert.deepEqual(await tell('command', spec, toolsOf(t)), { result: 'done' });
  const { told, secret } = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(told.data.id, message.id);
  assert.equal(secret, undefined);
  const failed = await tell('command', { command: [process.execPath, '-e', 'process.exit(3)'] }, toolsOf(t));
  assert.ok(failed.result === 'later' && /ended with status 3/.test(failed.why));
});
