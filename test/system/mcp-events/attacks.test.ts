/** Attacks by callbacks, by subscriptions of others, by replays and by floods: none gets through. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import type { Resolve } from '../../../src/kit/http/guarded-lookup.ts';
import { verifyWebhook } from '../../../src/kit/identity/webhook-signature.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { Callbacks } from '../../../src/mcp-http/events/callbacks.ts';
import { listSubscriptions } from '../../../src/mcp-http/events/listing.ts';
import { openEvents } from '../../../src/mcp-http/events/service.ts';
import type { RemoteMessage } from '../../../src/mcp-http/servers.ts';
import { completeWake } from '../../../src/wire/wake.ts';
import { eventually } from '../../support/eventually.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';
import { newSecret, openEventsBench, startReceiver } from './mcp-events-bench.ts';

const NUMERIC = [
  ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '127.0.0.1.'],
  ...['10.0.0.1', '172.16.3.4', '192.168.1.1', '100.64.0.1', '169.254.169.254', '0.0.0.0', '0', '255.255.255.255'],
  ...['224.0.0.1', '192.0.2.1', '198.18.0.1', '100.100.100.200', '168.63.129.16', '１２７.０.０.１'],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  ...['[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[fec0::1]', '[2001:db8::1]', '[ff02::1]'],
];

test('no private address is a callback, in any notation', async (t) => {
  const bench = await openEventsBench(t);
  const bearer = await bench.token();
  const refuse = (url: string) =>
    bench.refused(
      'events/subscribe',
      { name: 'alarm.due', delivery: { mode: 'webhook', url, secret: newSecret() } },
      { bearer },
    );
  for (const host of NUMERIC)
    for (const port of ['', ':8443']) {
      const error = await refuse(`https://${host}${port}/hook`);
      assert.deepEqual([error.code, error.data?.detail], [-32_015, 'address_not_public'], `${host} ${error.message}`);
    }
  const wrong = [
    ...['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'javascript:1', 'hook', '', 'https://'],
    ...['https://user:secret@example.com/', 'https://example.com/#part', `https://example.com/${'x'.repeat(3000)}`],
    `http://127.0.0.1:${new URL(bench.url).port}/`,
  ];
  for (const url of wrong) assert.equal((await refuse(url)).code, -32_602, url);
});

test('a name that resolves to a private address is refused, also when it does so at delivery only', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = new URL(receiver.url);
  let address = '93.184.216.34';
  const asked: string[] = [];
  const resolve: Resolve = (name, done) => {
    asked.push(name);
    done(null, [{ address, family: 4 }]);
  };
  const callbacks = new Callbacks({ allow: `allowed.example:${port}`, clock: systemClock, resolve });
  t.after(() => callbacks.close());
  const secrets = [receiver.secret];
  const at = (url: string) => ({ url, subscriptionId: 'sub_1', secrets });
  const never = new AbortController().signal;
  const message = { id: 'e1', body: '{"eventId":"e1"}' };
  for (const inner of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', '::ffff:10.0.0.1', 'fd00:ec2::254']) {
    address = inner;
    const failure = await callbacks.post(at(`https://rebound.example:${port}/hook`), message, never);
    assert.deepEqual(failure, { error: 'connection_refused', detail: 'address_not_public' }, inner);
    await assert.rejects(callbacks.challenge(at(`https://rebound.example:${port}/`), never), {
      data: { reason: 'connection_refused', detail: 'address_not_public' },
    });
  }
  // Each delivery resolves again: a verified name that moves is refused from then on, and metadata never are reached.
  address = '127.0.0.1';
  const url = callbacks.parse(`http://allowed.example:${port}/hook`);
  assert.equal(await callbacks.post(at(url), message, never), undefined);
  address = '169.254.169.254';
  assert.equal((await callbacks.post(at(url), message, never))?.detail, 'address_not_public');
  assert.equal(receiver.attempts.length, 1);
  assert.equal(asked.filter((name) => name === 'allowed.example').length, 2);
});

test('a callback that redirects, does not echo, is missing or fails is refused with its category alone', async (t) => {
  const receiver = await startReceiver(t);
  const secretPage = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: `${receiver.host},127.0.0.1:1` });
  const refuse = async (url = receiver.url) => {
    const delivery = { mode: 'webhook', url, secret: receiver.secret };
    const { code, data, message } = await bench.refused('events/subscribe', { name: 'alarm.due', delivery });
    assert.equal(message, 'CallbackEndpointError: delivery.url could not be verified; see data.reason');
    assert.equal(code, -32_015);
    return data;
  };
  receiver.state.redirect = secretPage.url;
  assert.deepEqual(await refuse(), { reason: 'challenge_failed', detail: 'redirect' });
  assert.equal(secretPage.attempts.length, 0);
  receiver.state.redirect = undefined;
  receiver.state.echoes = false;
  assert.deepEqual(await refuse(), { reason: 'challenge_failed' });
  receiver.state.secret = newSecret();
  const { secret } = receiver;
  receiver.state.secret = newSecret();
  const delivery = { mode: 'webhook', url: receiver.url, secret };
  const wrong = await bench.refused('events/subscribe', { name: 'alarm.due', delivery });
  assert.deepEqual(wrong.data, { reason: 'http_4xx' });
  assert.deepEqual(await refuse('http://127.0.0.1:1/'), { reason: 'connection_refused' });
  assert.equal((await bench.wake('f1')).status, 404, 'nothing was subscribed');
});

test('subscriptions of another subject, or of another client, cannot be seen, changed or ended', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const { id, cursor } = await bench.subscribe(receiver);
  const others = [
    await bench.token({ sub: 'subject-of-bob' }),
    await bench.token({ client_id: 'client-2' }),
    await bench.token({ sub: 'subject-of-bob', client_id: 'client-2' }),
  ];
  await bench.wake('f1');
  await eventually('ada has it', () => receiver.ids().length === 1);
  for (const bearer of others) {
    const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
    const ended = await bench.refused('events/unsubscribe', { name: 'alarm.due', delivery }, { bearer });
    assert.deepEqual([ended.code, ended.data], [-32_011, { kind: 'subscription' }]);
    // The same address and arguments are another subscription, with a challenge of its own.
    const own = await bench.subscribe(receiver, {}, { bearer });
    assert.notEqual(own.id, id);
    await bench.call('events/unsubscribe', { name: 'alarm.due', delivery }, { bearer });
  }
  const bob = await bench.token({ sub: 'subject-of-bob' });
  for (const given of [cursor, null, cursor.replace(/\d+$/, '0')]) {
    const { result } = await bench.call('events/poll', { name: 'alarm.due', cursor: given }, { bearer: bob });
    assert.deepEqual(result.events, [], String(given));
  }
  assert.equal((await bench.wake('f2')).status, 200, 'it goes on');
  await eventually('ada has it', () => receiver.ids().includes('f2:due'));
  const intents = await bench.refused('events/poll', { name: 'intent.waiting' });
  assert.deepEqual([intents.code, intents.data], [-32_011, { kind: 'event' }]);
});

test('wrong parameters are refused with their code, and no message has the secret', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const bearer = await bench.token();
  const secrets = [
    ...['', 'whsec_', 'secret', 'whsec_%%%', 'whsec_AAAA', newSecret(23), newSecret(65), `${newSecret()} `],
    ...[`WHSEC_${randomBytes(32).toString('base64')}`, `whsec_${randomBytes(40).toString('base64url')}-_`],
  ];
  for (const secret of secrets) {
    const delivery = { mode: 'webhook', url: receiver.url, secret };
    const { code, message } = await bench.refused('events/subscribe', { name: 'alarm.due', delivery }, { bearer });
    assert.equal(code, -32_602, secret);
    if (secret.length > 10) assert.ok(!message.includes(secret.slice(6)), message);
  }
  const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
  const wrong: [string, object, number][] = [
    ['events/subscribe', { name: 'alarm.none', delivery }, -32_011],
    ['events/subscribe', { name: '__proto__', delivery }, -32_011],
    ['events/subscribe', { name: 'alarm.due', delivery: { ...delivery, mode: 'push' } }, -32_014],
    ['events/subscribe', { name: 'alarm.due', delivery, arguments: { unknown: 1 } }, -32_602],
    ['events/subscribe', { name: 'alarm.due', delivery, arguments: { label: 'x'.repeat(300) } }, -32_602],
    ['events/subscribe', { name: 'alarm.due', delivery, arguments: { alarm_id: 'y'.repeat(500_000) } }, -32_602],
    ['events/subscribe', { name: 'alarm.due', delivery, arguments: [1] }, -32_602],
    ['events/subscribe', { name: 'alarm.due', delivery, ttlMs: -1 }, -32_602],
    ['events/subscribe', { name: 'alarm.due', delivery: { ...delivery, url: 7 } }, -32_602],
    ['events/subscribe', { name: 'alarm.due' }, -32_602],
    ['events/poll', { name: 'alarm.due', cursor: 7 }, -32_602],
    ['events/poll', { name: 'alarm.due', maxEvents: 0 }, -32_602],
    ['events/stream', { name: 'alarm.none' }, -32_011],
    ['events/stream', {}, -32_602],
  ];
  for (const [method, params, code] of wrong) {
    const error = await bench.refused(method, params, { bearer });
    assert.equal(error.code, code, `${method} ${JSON.stringify(params).slice(0, 200)} ${error.message}`);
    assert.ok(!error.message.includes(receiver.secret));
  }
  const many = await bench.call('events/poll', { name: 'alarm.due', maxEvents: 1e9 }, { bearer });
  assert.deepEqual(many.result.events, []);
  assert.deepEqual(receiver.attempts, [], 'nothing was posted');
});

test('a captured delivery is too old after five minutes, and its id stays the same', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  await bench.subscribe(receiver);
  receiver.state.status = 500;
  await bench.wake('f1');
  await eventually('it was tried', () => receiver.attempts.length === 2);
  receiver.state.status = 200;
  await eventually('it is repeated', () => receiver.delivered.length === 1);
  const { headers } = receiver.delivered[0]!;
  const [first, second] = receiver.attempts.slice(1);
  assert.equal(first, second, 'the same event');
  const given = headers as Record<string, string>;
  const about = { headers: given, body: second!, secrets: [receiver.secret] };
  assert.ok(verifyWebhook({ ...about, nowMs: Date.now() }).ok);
  assert.ok(!verifyWebhook({ ...about, nowMs: Date.now() + 301_000 }).ok);
});

/** The events of a service without a listener, for one caller. */
function openService(t: Parameters<typeof temporaryFolder>[0], given: Partial<Parameters<typeof openEvents>[0]>) {
  const revoked = { isRevoked: false, isDown: false };
  const user = { id: 'ada' };
  const issuer = {
    ...{ issuer: 'https://issuer.example', subjectClaim: 'sub', userOf: () => user.id },
    isRevoked: () => {
      if (revoked.isDown) throw new Error('the issuer is down');
      return revoked.isRevoked;
    },
  };
  const dataDir = temporaryFolder(t);
  const service = openEvents({
    ...{ dataDir, backends: {}, issuers: [issuer], allow: undefined },
    ...{ clock: systemClock, log: silentLogger },
    ...given,
  });
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= service.close());
  t.after(close);
  const grant = { subject: 'ada', clientId: 'c', tokenId: undefined, issuedAt: 1, claims: {} };
  const message = () => {
    const caller = {
      ...{ userId: user.id, subject: 'ada', issuer: issuer.issuer, clientId: 'c', expiresAt: 0 },
      scopes: new Set(['alarms:read'] as const),
    };
    return { endpoint: 'chronos', caller, grant, method: '', params: {}, argumentsText: '{}' } as RemoteMessage;
  };
  return {
    ...{ revoked, dataDir, user, close },
    call: (method: string, params: object) => service.methods[method]!(params, message(), {} as never),
    offer: (fireId: string, userId = 'ada') =>
      service.offer(completeWake({ user_id: userId, message: fireId } as never, fireId, 1)),
  };
}

test('a subject has a limited number of subscriptions, and few new callbacks in a minute', async (t) => {
  const receiver = await startReceiver(t);
  const { call } = openService(t, { allow: new URL(receiver.url).hostname, limits: { mostOfSubject: 50 } });
  const subscribe = (n: number, url = receiver.url) =>
    call('events/subscribe', {
      name: 'alarm.due',
      arguments: { alarm_id: `a${n}` },
      delivery: { mode: 'webhook', url, secret: receiver.secret },
    });
  for (let n = 0; n < 50; n++) await subscribe(n);
  const refusal = { code: -32_013, data: { limit: 'subscriptions', max: 50 } };
  await assert.rejects(subscribe(50), refusal);
  await subscribe(49);
  const delivery = { url: receiver.url };
  await call('events/unsubscribe', { name: 'alarm.due', arguments: { alarm_id: 'a7' }, delivery });
  await subscribe(50);
  const challenges = receiver.attempts.filter((body) => body.includes('verification'));
  assert.equal(challenges.length, 1, 'arguments multiply no challenges');
  await call('events/unsubscribe', { name: 'alarm.due', arguments: { alarm_id: 'a8' }, delivery });
  receiver.state.echoes = false;
  const outcomes = await Promise.allSettled(
    Array.from({ length: 100 }, (_, n) => subscribe(1000, `${receiver.url}/${n}`)),
  );
  const codes = outcomes.map((one) => (one.status === 'rejected' ? one.reason.code : 0));
  assert.equal(codes.filter((code) => code === -32_015).length, 29);
  assert.equal(codes.filter((code) => code === -32_013).length, 71);
});

test('the hundred and first subscription of a subject is refused, also among many at once', async (t) => {
  const receiver = await startReceiver(t);
  const { call } = openService(t, { allow: new URL(receiver.url).hostname });
  const subscribe = (n: number) => {
    const delivery = { mode: 'webhook', url: `${receiver.url}?${n % 20}`, secret: receiver.secret };
    return call('events/subscribe', { name: 'alarm.due', arguments: { alarm_id: `a${n}` }, delivery });
  };
  for (let n = 0; n < 90; n++) await subscribe(n);
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => subscribe(100 + n)));
  const codes = outcomes.map((one) => (one.status === 'rejected' ? one.reason.code : 0));
  assert.deepEqual(
    [codes.filter((code) => code === 0).length, codes.filter((code) => code === -32_013).length],
    [10, 10],
  );
  await assert.rejects(subscribe(200), { code: -32_013, data: { limit: 'subscriptions', max: 100 } });
});

test('over HTTP a limit is 429 with the time of the next attempt, in both eras of the protocol', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  receiver.state.echoes = false;
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    authorization: `Bearer ${await bench.token()}`,
  };
  const subscribe = (n: number, version: string) => {
    const delivery = { mode: 'webhook', url: `${receiver.url}/${n}`, secret: receiver.secret };
    const _meta = version === '2026-07-28' && {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    return fetch(bench.resource('chronos'), {
      method: 'POST',
      headers: { ...headers, 'mcp-protocol-version': version, 'mcp-method': 'events/subscribe' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: n, method: 'events/subscribe' },
        params: { name: 'alarm.due', delivery, ...(_meta && { _meta }) },
      }),
    });
  };
  for (let n = 0; n < 30; n++) assert.equal((await subscribe(n, '2025-11-25')).status, 200, `attempt ${n}`);
  for (const [n, version] of [
    [31, '2025-11-25'],
    [32, '2026-07-28'],
  ] as const) {
    const refused = await subscribe(n, version);
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60'], version);
    const { id, error } = (await refused.json()) as { id: number; error: { code: number; data: object } };
    assert.deepEqual([id, error.code, error.data], [n, -32_013, { limit: 'challenges', max: 30 }]);
  }
  assert.equal((await bench.call('events/list')).error, undefined, 'other requests are answered');
});

test('a subscription whose access was revoked is terminated within seconds', async (t) => {
  const receiver = await startReceiver(t);
  const { call, offer, revoked } = openService(t, { allow: new URL(receiver.url).hostname });
  const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
  const { refreshBefore } = (await call('events/subscribe', { name: 'alarm.due', delivery, ttlMs: null })) as {
    refreshBefore: string | null;
  };
  assert.equal(refreshBefore, null, 'the issuer says when it ends');
  assert.equal(await offer('f1'), true);
  await eventually('it is delivered', () => receiver.ids().length === 1);
  revoked.isRevoked = true;
  let n = 2;
  await eventually('it counts no more', async () => !(await offer(`f${n++}`)), 10_000);
  await eventually('it is told', () => receiver.controls().length === 1);
  assert.deepEqual(receiver.controls()[0], {
    type: 'terminated',
    error: { code: -32_012, message: 'Forbidden', data: { reason: 'Access revoked' } },
  });
  assert.deepEqual(receiver.ids().slice(0, 1), ['f1:due']);
  const seen = receiver.ids().length;
  assert.equal(await offer('later'), false);
  assert.equal(receiver.ids().length, seen);
});

test('a subscription whose callback stays down is terminated, and its callback gets the reason', async (t) => {
  const receiver = await startReceiver(t);
  const { hostname } = new URL(receiver.url);
  const { call, offer, dataDir } = openService(t, { allow: hostname, limits: { giveUpMs: 3000 } });
  const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
  await call('events/subscribe', { name: 'alarm.due', delivery });
  receiver.state.status = 500;
  await offer('f1');
  await eventually('it was told', () => receiver.attempts.some((body) => body.includes('terminated')));
  const told = JSON.parse(receiver.attempts.find((body) => body.includes('terminated'))!) as { error: object };
  const error = { code: -32_015, message: 'CallbackEndpointError', data: { reason: 'http_5xx' } };
  assert.deepEqual(told.error, error);
  assert.ok(receiver.attempts.length < 12, `${receiver.attempts.length} attempts`);
  assert.equal(await offer('f2'), false);
  const [shown, ...others] = listSubscriptions(dataDir, 'ada');
  assert.deepEqual([shown!.status, shown!.event, others], ['ended', 'alarm.due', []]);
  assert.match(shown!.reason!, /^its callback has failed since .*: http_5xx$/);
  assert.deepEqual(listSubscriptions(dataDir, 'bob'), []);
  assert.ok(!JSON.stringify(shown).includes('whsec_'));
});

test('a slow callback delays no other one', async (t) => {
  const slow = await startReceiver(t);
  const quick = await startReceiver(t);
  const { call, offer } = openService(t, { allow: new URL(slow.url).hostname });
  const subscribe = ({ url, secret }: typeof slow, label: string) =>
    call('events/subscribe', {
      ...{ name: 'alarm.due', arguments: label === '' ? {} : { alarm_id: label } },
      delivery: { mode: 'webhook', url, secret },
    });
  await subscribe(slow, '');
  await subscribe(quick, '');
  slow.state.onRequest = () => new Promise(() => {});
  for (let n = 0; n < 20; n++) await offer(`f${n}`);
  await eventually('the other one has all', () => quick.ids().length === 20, 10_000);
});

test('a server that answers without an end is cut off', async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(200);
    const more = setInterval(() => response.write('x'.repeat(10_000)), 5);
    response.on('close', () => clearInterval(more));
  });
  const url = await listening(t, server);
  const { call } = openService(t, { allow: new URL(url).hostname });
  const delivery = { mode: 'webhook', url, secret: newSecret() };
  await assert.rejects(call('events/subscribe', { name: 'alarm.due', delivery }), {
    code: -32_015,
    data: { reason: 'challenge_failed' },
  });
});

test('a page that repeats any request is no callback: its host has not agreed', async (t) => {
  const posts: string[] = [];
  const echo = createServer((request, response) => {
    posts.push(request.url!);
    response.writeHead(200, { 'content-type': request.headers['content-type']! });
    request.pipe(response);
  });
  const url = await listening(t, echo);
  const { call, offer } = openService(t, { allow: new URL(url).hostname });
  for (const path of ['/', '/anything', '/?challenge=1']) {
    const delivery = { mode: 'webhook', url: `${url}${path}`, secret: newSecret() };
    await assert.rejects(call('events/subscribe', { name: 'alarm.due', delivery }), {
      code: -32_015,
      data: { reason: 'challenge_failed' },
    });
  }
  assert.equal(await offer('f1'), false);
  assert.deepEqual(posts, ['/', '/anything', '/?challenge=1']);
});

test('answers that are packed or slow cost nothing more than their bytes', async (t) => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb);
  });
  const url = await listening(t, server);
  const { call } = openService(t, { allow: new URL(url).hostname });
  const before = process.memoryUsage().rss;
  const delivery = { mode: 'webhook', url, secret: newSecret() };
  await assert.rejects(call('events/subscribe', { name: 'alarm.due', delivery }), { code: -32_015 });
  assert.ok(process.memoryUsage().rss - before < 32 * 1024 * 1024);
});

test('a subject that becomes another user takes no subscription and no event of the earlier one along', async (t) => {
  const receiver = await startReceiver(t);
  const { call, offer, user, dataDir } = openService(t, { allow: new URL(receiver.url).hostname });
  const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
  await call('events/subscribe', { name: 'alarm.due', delivery });
  await offer('f1');
  await eventually('ada has it', () => receiver.ids().length === 1);
  user.id = 'bob';
  const { cursor } = (await call('events/subscribe', { name: 'alarm.due', delivery })) as { cursor: string };
  assert.match(cursor, /\.0$/, 'the position of ada says nothing to bob');
  assert.deepEqual(
    listSubscriptions(dataDir, 'bob').map(({ status }) => status),
    ['active'],
  );
  assert.equal(await offer('f2', 'bob'), true);
  await eventually('bob has his', () => receiver.ids().includes('f2:due'));
  assert.equal(await offer('f3', 'ada'), false);
  const polled = (await call('events/poll', { name: 'alarm.due', cursor: cursor.replace(/\d+$/, '0') })) as {
    events: { eventId: string }[];
  };
  assert.deepEqual(
    polled.events.map(({ eventId }) => eventId),
    ['f2:due'],
  );
  assert.deepEqual(receiver.ids(), ['f1:due', 'f2:due']);
});

test('a slow delivery of an ended subscription changes nothing of a new one with its address', async (t) => {
  const receiver = await startReceiver(t);
  const folder = temporaryFolder(t);
  const allow = new URL(receiver.url).hostname;
  const { call, offer, close } = openService(t, { allow, dataDir: folder });
  const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
  const subscribe = () => call('events/subscribe', { name: 'alarm.due', delivery });
  await subscribe();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  receiver.state.onRequest = () => held;
  await offer('f1');
  await eventually('it is under way', () => receiver.attempts.length === 2);
  await offer('f2');
  await call('events/unsubscribe', { name: 'alarm.due', delivery });
  await subscribe();
  receiver.state.onRequest = undefined;
  release();
  await eventually('the earlier one is over', () => receiver.ids().length === 1);
  await close();
  const next = openService(t, { allow, dataDir: folder });
  await next.offer('f3');
  await eventually('it goes on', () => receiver.ids().includes('f3:due'));
  assert.deepEqual(receiver.ids(), ['f1:due', 'f3:due'], 'f2 is before the new subscription');
});
