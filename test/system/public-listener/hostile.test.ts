/**
 * The public listener under attack, with counts: ambiguous targets, smuggled requests, upgrades, forged credentials,
 * other hosts and origins. The counts are the requests received by the machines, and the answers with success.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, type TestContext, test } from 'node:test';
import { ADMIN_TOKEN, type Bench, startBench, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { type PlainDaemon, startPlainDaemon } from '../../../src/router/testing/plain-daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { diceOf, rounds } from '../../support/random/random.ts';
import { sharedOwner } from '../../support/temporary.ts';

/** The machine's normal requests, without an attack. */
const OWN_PATHS =
  /^\/(?:chat|tools|events|conversations|conversations\/[\w.%-]+|conversations\/[\w.%-]+\/turns\/[\w.%-]+|turns\/[\w.%-]+\/cancel|intents\/[\w.%-]+\/receipt|intents\/[\w.%-]+\/gates\/[\w.%-]+\/answer)(?:\?[^#\s]*)?$/;

let router: Bench;
let adas: PlainDaemon;
let bobs: PlainDaemon;
let ada: string;
let bob: string;
const shared = sharedOwner();

const tokenOf = async (userId: string): Promise<string> =>
  (await router.send('POST', '/admin/users', ADMIN_TOKEN, { user_id: userId })).json.data.token!;

before(async () => {
  const t = shared as unknown as TestContext;
  router = await startBench(t, { settings: { ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '1000000' } });
  [adas, bobs] = [await startPlainDaemon(t), await startPlainDaemon(t)];
  await router.put('ada', { provider: 'http', spec: { url: adas.url }, token: 'machine-of-ada-0000' });
  await router.put('bob', { provider: 'http', spec: { url: bobs.url }, token: 'machine-of-bob-0000' });
  [ada, bob] = [await tokenOf('ada'), await tokenOf('bob')];
});
after(() => shared.end());
beforeEach(() => {
  adas.chats.length = 0;
  bobs.chats.length = 0;
});

/** Writes bytes and returns the whole answer, once it has ended. */
function raw(bytes: string | Buffer, quietMs = 1000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(router.public.port, '127.0.0.1');
    let text = '';
    socket.setTimeout(quietMs, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {}).on('close', () => resolve(text));
    socket.write(bytes);
  });
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
const headOf = (method: string, target: string, more: string[] = [], bearer = ada) =>
  [`${method} ${target} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${bearer}`, ...more, '', ''].join('\r\n');
const once = (method: string, target: string, more: string[] = [], bearer = ada) =>
  // An answer to a wrong credential may be delayed for two seconds.
  raw(headOf(method, target, ['Connection: close', ...more], bearer), 10_000);

/** Runs attacks, several at a time. */
async function all<T, U>(attacks: readonly T[], attack: (one: T) => Promise<U>): Promise<U[]> {
  const results: U[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < attacks.length; at = next++) results[at] = await attack(attacks[at]!);
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return results;
}

test('path attacks on the proxied routes: none is accepted', async (t) => {
  const dice = diceOf(t);
  const upgrades = [
    '..',
    '%2e%2e',
    '.%2e',
    '%2E.',
    '%252e%252e',
    '..;',
    '..%00',
    '..%2f',
    '%2e%2e%2f',
    '..%5c',
    '%c0%ae%c0%ae',
  ];
  const slashes = ['/', '//', '%2f', '%2F', '%5c', '\\', '%252f', '/./', '/%2e/', '%c0%af', '/;/'];
  const heads = ['/conversations', '/conversations/c', '/turns', '/intents/i', '/chat', '/events', '/tools', ''];
  const goals = ['internal/wake', 'admin/machines', 'admin/users', 'metrics', 'conversations', 'healthz', 'chat'];
  const ends = ['', '?', '?x=..', '#', '%00', '%20', '%0d%0aX-Injected:1', ';/', '/', '.json'];
  const pick = (choices: readonly string[]) => choices[dice(choices.length)]!;
  const targets = Array.from({ length: rounds(1500, 20_000) }, () => {
    const steps = Array.from({ length: 1 + dice(3) }, () => pick(slashes) + pick(upgrades)).join('');
    return pick(heads) + steps + pick(slashes) + pick(goals) + pick(ends);
  });
  for (const place of [adas.url, router.url, 'http://localhost', 'https://localhost', 'http://[::1]', 'file://']) {
    for (const path of ['/chat', '/conversations', '/internal/wake', '/admin/machines']) targets.push(place + path);
  }
  targets.push('*', 'localhost:80', '', 'chat', '?', '/\u0000', '/conversations/\t', '//localhost/chat', '/%2fchat');
  const answers = await all(targets, (target) => once(dice(2) === 0 ? 'GET' : 'POST', target));
  const accepted = targets.filter((_, at) => statuses(answers[at]!).some((status) => status < 400));
  assert.deepEqual(accepted, []);
  const unexpected = [...adas.chats, ...bobs.chats].filter(({ url }) => !OWN_PATHS.test(url));
  assert.deepEqual(unexpected, []);
  assert.equal(adas.chats.length + bobs.chats.length, 0, 'no machine received a request');
  t.diagnostic(`${targets.length} targets: 0 accepted, 0 reached a machine`);
});

test('another user’s machine, the router’s own routes, and other methods are unreachable with a valid credential', async (t) => {
  const internal = [
    '/internal/wake',
    '/internal/receipt-keys/ada',
    '/admin/machines',
    '/admin/machines/bob',
    '/admin/users',
    '/v1/alarms',
    '/metrics',
  ];
  const own = ['/chat', '/events', '/conversations', '/conversations/c', '/tools', '/turns/t/cancel'];
  const attempts = [
    ...internal.flatMap((target) =>
      ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'].map((method) => [method, target] as const),
    ),
    ...own.flatMap((target) =>
      ['PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT'].map((m) => [m, target] as const),
    ),
  ];
  const answers = await all(attempts, ([method, target]) => once(method, target));
  assert.deepEqual(
    answers.flatMap(statuses).filter((status) => status < 400),
    [],
  );
  const claims = [
    'X-Matrix-User: bob',
    'X-Forwarded-User: bob',
    'X-User-Id: bob',
    'Cookie: user=bob',
    'Forwarded: for=bob',
  ];
  const asBob = await all(claims, (claim) => once('GET', '/tools', [claim]));
  assert.deepEqual(
    asBob.flatMap(statuses),
    claims.map(() => 202),
    'the fixture answers 202 to every request',
  );
  const twice = `GET /tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ada}\r\nAuthorization: Bearer ${bob}\r\nConnection: close\r\n\r\n`;
  await raw(twice);
  assert.equal(bobs.chats.length, 0);
  for (const { headers } of adas.chats) {
    assert.equal(headers['x-matrix-user'], 'ada');
    assert.equal(headers.authorization, 'Bearer machine-of-ada-0000');
    assert.equal(headers.cookie ?? headers.forwarded ?? headers['x-forwarded-user'], undefined);
  }
  t.diagnostic(`${attempts.length + claims.length + 1} requests: 0 accepted, 0 reached another user's machine`);
});

test('smuggled requests and upgrades: a machine sees only whole requests of the table', async (t) => {
  const hidden = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const body = '{"message":"x"}';
  const json = 'Content-Type: application/json';
  const post = (...more: string[]) => headOf('POST', '/chat', [json, ...more]);
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const attacks = [
    post(`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked') + chunked + hidden,
    post('Transfer-Encoding: chunked', `Content-Length: ${body.length}`) + body + hidden,
    post('Transfer-Encoding: xchunked') + chunked + hidden,
    post('Transfer-Encoding: chunked, identity') + chunked + hidden,
    post('Transfer-Encoding : chunked') + chunked + hidden,
    post('Transfer-Encoding:\u000bchunked') + chunked + hidden,
    post('Transfer-Encoding: chunked', 'Transfer-Encoding: cow') + chunked + hidden,
    post(`Content-Length: ${body.length}`, 'Content-Length: 0') + body + hidden,
    post(`Content-Length: ${body.length},0`) + body + hidden,
    post(`Content-Length: +${body.length}`) + body + hidden,
    post('Content-Length: 0x0f') + body + hidden,
    `${post('Transfer-Encoding: chunked')}f;a=\n${body}\r\n0\r\n\r\n${hidden}`,
    `${post('Transfer-Encoding: chunked')}fffffffffffffffff\r\n${body}\r\n0\r\n\r\n${hidden}`,
    post('X: a\nY: b', `Content-Length: ${body.length}`) + body + hidden,
    post('X: a\r\n b', `Content-Length: ${body.length}`) + body + hidden,
    post('X: a\u0000b', `Content-Length: ${body.length}`) + body + hidden,
    headOf('GET', '/tools', ['Content-Length: 44']) + hidden,
    `${headOf('GET', '/tools', ['Transfer-Encoding: chunked'])}0\r\n\r\n${hidden}`,
    ...['websocket', 'h2c', 'TLS/1.3', 'reveille'].map(
      (to) =>
        headOf('GET', '/events', [
          'Connection: Upgrade',
          `Upgrade: ${to}`,
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
        ]) + hidden,
    ),
    `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${hidden}`,
    `CONNECT 127.0.0.1:${new URL(adas.url).port} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ada}\r\n\r\n${hidden}`,
  ];
  const answers = await all(attacks, (attack) => raw(attack));
  assert.deepEqual(
    answers.flatMap(statuses).filter((status) => status === 101),
    [],
  );
  for (const { url, headers, body: received } of [...adas.chats, ...bobs.chats]) {
    assert.match(url, OWN_PATHS);
    assert.equal(headers['transfer-encoding'] ?? headers.upgrade, undefined);
    assert.ok(received.length === 0 || String(received) === body, String(received));
  }
  t.diagnostic(`${attacks.length} attacks: 0 upgraded, 0 smuggled requests reached a machine`);
});

test('forged credentials by the thousand: none is accepted, no other user is locked out, and all answers look the same', async (t) => {
  const dice = diceOf(t);
  const flipped = (token: string) => {
    const at = 4 + dice(token.length - 4);
    const other = 'abcdefABCDEF0123456789_-'[dice(24)]!;
    return token.slice(0, at) + (token[at] === other ? 'Z' : other) + token.slice(at + 1);
  };
  const expired = await router.send('POST', '/admin/users/ada/tokens', ADMIN_TOKEN, {
    expires_at: new Date(Date.now() + 300).toISOString(),
  });
  const revoked = await router.send('POST', '/admin/users/ada/tokens', ADMIN_TOKEN, {});
  const { id, token: ended } = revoked.json.data as { id: string; token: string };
  await router.send('DELETE', `/admin/users/ada/tokens/${id}`, ADMIN_TOKEN);
  const secret = () => randomBytes(32).toString('base64url');
  const kinds = [
    () => `rvp_${randomBytes(6).toString('hex')}_${secret()}`,
    () => `rvp_${bob.slice(4, 16)}_${secret()}`,
    () => flipped(bob),
    () => bob.slice(0, 4 + dice(bob.length - 4)),
    () => secret(),
    () => [ended, 'machine-of-ada-0000', ADMIN_TOKEN, WAKE_TOKEN, 'undefined', 'null', `${bob}x`][dice(7)]!,
  ];
  const forged = Array.from({ length: rounds(1200, 10_000) }, () => kinds[dice(kinds.length)]!());
  const answersSeen = new Map<string, number>();
  const answers = await all(forged, async (token) => {
    const answer = await fetch(`${router.public.url}/conversations`, { headers: { authorization: `Bearer ${token}` } });
    const { error } = (await answer.json()) as { error: { message: string } };
    answersSeen.set(
      `${answer.status} ${error?.message}`,
      (answersSeen.get(`${answer.status} ${error?.message}`) ?? 0) + 1,
    );
    return answer.status;
  });
  assert.deepEqual(
    answers.filter((status) => status !== 401 && status !== 429),
    [],
  );
  assert.equal(answersSeen.size, 2, JSON.stringify([...answersSeen]));
  assert.equal(adas.chats.length + bobs.chats.length, 0);
  // Guesses name bob's credential, and none of ada's valid ones: she signs in from the same address all the while.
  const status = async (bearer: string) => statuses(await once('GET', '/tools', [], bearer))[0];
  assert.equal(await status(ada), 202);
  // A pause may have just ended; a guess that is checked begins a longer one, before it is answered.
  const before = router.public.figures().unauthorized;
  const guesses: Promise<unknown>[] = [];
  await eventually('a guess is checked', () => {
    guesses.push(status(`rvp_${bob.slice(4, 16)}_${secret()}`));
    return router.public.figures().unauthorized > before;
  });
  assert.equal(await status(bob), 429);
  await Promise.all(guesses);
  assert.equal(await status(expired.json.data.token!), 401);
  const { unauthorized, locked } = router.public.figures();
  t.diagnostic(
    `${forged.length} forged credentials: 0 accepted; ${unauthorized} unauthorized, ${locked} met a lock, as /metrics counts them`,
  );
});

test('other hosts and origins are refused before anything else', async (t) => {
  const hosts = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    'evil.example:8087',
    '[::1].evil',
    '0.0.0.0',
    '',
  ];
  const origins = [
    'http://evil.example',
    'null',
    `http://127.0.0.1:${router.public.port}`,
    'http://localhost',
    'file://',
  ];
  const attempts = [
    ...hosts.map(
      (host) => `GET /tools HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${ada}\r\nConnection: close\r\n\r\n`,
    ),
    `GET /tools HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer ${ada}\r\nConnection: close\r\n\r\n`,
    `GET /tools HTTP/1.0\r\nAuthorization: Bearer ${ada}\r\n\r\n`,
    ...origins.map((origin) => headOf('GET', '/tools', [`Origin: ${origin}`, 'Connection: close'])),
  ];
  const answers = await all(attempts, (bytes) => raw(bytes));
  assert.deepEqual(
    answers.flatMap(statuses).filter((status) => status < 400),
    [],
  );
  assert.equal(adas.chats.length, 0);
  t.diagnostic(`${attempts.length} requests: 0 accepted`);
});

describe('with pages behind it', () => {
  test('pages get the requests that are not the daemon’s, and none that a target hides', async (t) => {
    const own = sharedOwner();
    t.after(() => own.end());
    const seen: string[] = [];
    const bench = await startBench(own as unknown as TestContext, {
      pagesOf:
        () =>
        async (request, { remoteAddress }) => {
          seen.push(`${request.method} ${new URL(request.url).pathname} ${remoteAddress} ${await request.text()}`);
          return new Response('a page', { headers: { 'content-type': 'text/html' } });
        },
    });
    const page = async (path: string, init: RequestInit = {}) => (await fetch(bench.public.url + path, init)).status;
    assert.equal(await page('/'), 200);
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: bench.public.url };
    assert.equal(await page('/alarms?x=1', { method: 'POST', headers: form, body: 'a=b' }), 200);
    assert.equal(await page('/big', { method: 'POST', body: 'x'.repeat(65 * 1024) }), 413);
    for (const path of ['/chat', '/events', '/conversations/x/y/z/w']) assert.equal(await page(path), 401, path);
    for (const path of ['/internal/wake', '/admin/machines', '/metrics']) assert.ok((await page(path)) >= 400, path);
    assert.deepEqual(seen, ['GET / 127.0.0.1 ', 'POST /alarms 127.0.0.1 a=b']);
  });
});
