import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { atEnd } from '../../test/support/temporary.ts';
import { webhookSigner } from '../kit/identity/webhook-signature.ts';
import { sliceAt } from '../wire/json.ts';
import { WAKE_BODY_MAX_BYTES } from '../wire/wake.ts';
import { ALARM_ID, type Bench, startBench, WAKE_TOKEN, wakeBody } from './testing/bench.ts';
import { startPlainDaemon } from './testing/plain-daemon.ts';
import { retryAfter } from './wake.ts';

const USER = 'alice';
const TOKEN = 'the-token-of-alices-daemon';

const put = (router: Bench, url: string, more: object = {}) =>
  router.put(USER, { provider: 'http', spec: { url }, token: TOKEN, ...more });

describe('a wake for an always-on daemon', () => {
  test('has the headers and the body that the daemon expects, and returns its answer', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, `${daemon.url}/base/`);
    daemon.answer = (response) => {
      const text = '{"ok":true,"data":{"conversation_id":"c","turn_id":"t","deduped":false}}';
      response.writeHead(202, { 'content-type': 'application/json', 'retry-after': '7', 'x-secret': 'kept' }).end(text);
    };
    const body = wakeBody(USER, {
      missed_count: 3,
      label: 'a label',
      set_at: '2026-06-15T08:00:00.5Z',
      payload: { a: 1 },
    });
    const answer = await router.send('POST', '/internal/wake', WAKE_TOKEN, body);
    assert.equal(answer.status, 202);
    assert.deepEqual(answer.json.data, { conversation_id: 'c', turn_id: 't', deduped: false });
    assert.equal(answer.headers.get('x-reveille-machine-start-ms'), '0');
    assert.match(answer.headers.get('x-reveille-machine-ready-ms') ?? '', /^\d+$/);
    assert.equal(answer.headers.get('x-reveille-answered-by'), 'daemon');
    assert.equal(answer.headers.get('retry-after'), '7');
    assert.equal(answer.headers.get('x-secret'), null);
    const [chat] = daemon.chats;
    assert.equal(chat?.url, '/base/chat');
    assert.equal(chat.headers.authorization, `Bearer ${TOKEN}`);
    assert.equal(chat.headers['x-matrix-user'], USER);
    assert.equal(chat.headers['x-matrix-wake-origin'], 'chronos');
    assert.equal(chat.headers['x-matrix-wake-alarm'], ALARM_ID);
    assert.equal(chat.headers['x-matrix-wake-fire'], body.fire_id);
    assert.deepEqual(JSON.parse(chat.body.toString()), {
      message: 'resume the work',
      conversation_id: 'conv-1',
      payload: { a: 1 },
      origin: 'chronos',
      alarm_id: ALARM_ID,
      fire_id: body.fire_id,
      scheduled_for: '2026-06-15T08:10:00.000Z',
      missed_count: 3,
      label: 'a label',
      set_at: '2026-06-15T08:00:00.500Z',
    });
    const [{ acceptedAt, ...notice }] = router.notices as [Bench['notices'][0]];
    assert.ok(acceptedAt > 1_700_000_000_000);
    assert.deepEqual(notice, {
      fire_id: body.fire_id,
      user_id: USER,
      machineStartMs: 0,
      status: 202,
      conversation_id: 'c',
      turn_id: 't',
      daemon_url: `${daemon.url}/base/`,
    });
  });

  test('passes on message and payload byte for byte', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    const message = ' \u0000\u0001\u001f\t\r\n"\\/\u007f\u2028 中文 العربية 🛰️ é ';
    const payloads = [
      '12345678901234567890',
      '1.0',
      '1e400',
      '-0',
      'null',
      '"\\u0000\\ud83d\\ude00 \\/"',
      '{ "b" : 1.0 ,\n\t"a":12345678901234567890, "a" : 1E+2,"10":0,"2":[ 1 , {"x":"}\\"]"} ] }',
    ];
    for (const payload of payloads) {
      const { message: _, ...rest } = wakeBody(USER);
      const members = JSON.stringify(rest).slice(1, -1);
      const text = `{"payload":  ${payload} ,${members},"message":${JSON.stringify(message)}}`;
      assert.equal((await router.send('POST', '/internal/wake', WAKE_TOKEN, text)).status, 202);
      const body = daemon.chats.at(-1)!.body.toString('utf8');
      assert.equal(sliceAt(body, ['payload']), payload);
      assert.equal(JSON.parse(body).message, message);
    }
  });

  test('delivers the longest message and payload of an alarm', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    // Each NUL takes six bytes of JSON: a body of nearly 256 KiB that chronosd accepted, and a payload from a later
    // edit.
    const message = '\u0000'.repeat(43_000);
    const answer = await router.wake(USER, { message, payload: 'p'.repeat(65_000), label: 'l'.repeat(200) });
    assert.equal(answer.status, 202, answer.text);
    assert.equal(JSON.parse(daemon.chats[0]!.body.toString()).message, message);
  });

  test('passes on the status and body of the daemon, also when the router uses that status itself', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    for (const status of [200, 401, 403, 404, 409, 410, 413, 429, 500, 503]) {
      daemon.answer = (response) => response.writeHead(status, { 'content-type': 'text/plain' }).end(`said ${status}`);
      const answer = await router.wake(USER);
      assert.equal(answer.status, status);
      assert.equal(answer.text, `said ${status}`);
      assert.equal(answer.headers.get('x-reveille-answered-by'), 'daemon');
    }
    daemon.answer = (response) => response.writeHead(204).end();
    assert.equal((await router.wake(USER)).status, 204);
  });

  test('follows no redirect and limits an endless answer', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    daemon.answer = (response) => response.writeHead(307, { location: `${daemon.url}/elsewhere` }).end();
    const redirect = await router.wake(USER);
    assert.equal(redirect.status, 502);
    assert.match(redirect.json.error.message, /redirects are not followed/);
    assert.deepEqual(
      daemon.chats.map((chat) => chat.url),
      ['/chat'],
    );
    daemon.answer = (response) => {
      response.writeHead(202, { 'content-type': 'text/plain' });
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(16 * 1024)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    };
    const endless = await router.wake(USER);
    assert.equal(endless.status, 202);
    assert.equal(endless.text.length, 64 * 1024);
  });

  test('reports that it may have been accepted when the daemon closes the connection, and is not sent twice', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    daemon.answer = (response) => response.destroy();
    const dropped = await router.wake(USER);
    assert.equal(dropped.status, 502);
    assert.equal(dropped.json.error.code, 'unavailable');
    assert.equal(dropped.json.error.retryable, true);
    assert.match(dropped.json.error.message, /may or may not have been accepted/);
    assert.equal(dropped.headers.get('x-reveille-answered-by'), null);
    assert.equal(daemon.chats.length, 1);
    assert.equal(router.notices[0]?.status, 502);
    assert.match(router.notices[0]?.error ?? '', /may or may not/);
  });

  test('reports the same when the daemon does not answer in time', async (t) => {
    const router = await startBench(t, { settings: { ROUTER_WAKE_TIMEOUT_MS: '200' } });
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    daemon.answer = () => {};
    const answer = await router.wake(USER);
    assert.equal(answer.status, 502);
    assert.match(answer.json.error.message, /no answer within 200 ms.*may or may not have been accepted/);
  });

  test('fails at once with 503 and the reason when the connection is refused', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await daemon.close();
    await put(router, daemon.url);
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    assert.match(answer.json.error.message, /ECONNREFUSED/);
    assert.equal(answer.headers.get('retry-after'), null, 'the alarm has its own retries for that');
  });

  test('checks a known daemon again when it refuses the connection, and fails with its message', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    assert.equal((await router.wake(USER)).status, 202);
    await daemon.close();
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    assert.match(answer.json.error.message, /cannot be reached.*ECONNREFUSED/);
    assert.equal(daemon.healthChecks, 1);
  });

  test('is not sent to an unhealthy daemon', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    daemon.healthStatus = 500;
    await put(router, daemon.url);
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    assert.match(answer.json.error.message, /\/healthz answered 500/);
    assert.equal(daemon.chats.length, 0);
  });

  test('is answered with 503 and a retry time when the daemon does not get ready in time', async (t) => {
    const router = await startBench(t, { settings: { ROUTER_WAKE_TIMEOUT_MS: '150' } });
    const mute = createServer();
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    atEnd(t, () => mute.close());
    await put(router, `http://127.0.0.1:${(mute.address() as AddressInfo).port}`);
    const answer = await router.wake(USER, { attempt: 3 });
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('retry-after'), '20');
    assert.match(answer.json.error.message, /not ready within 150 ms/);
  });

  test('is completed when the caller disconnects', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    let finish = () => {};
    daemon.answer = (response) => {
      finish = () => response.writeHead(202).end();
    };
    const caller = new AbortController();
    const call = fetch(`${router.url}/internal/wake`, {
      method: 'POST',
      headers: { authorization: `Bearer ${WAKE_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(wakeBody(USER)),
      signal: caller.signal,
    });
    await eventually('the daemon has the wake', () => daemon.chats.length === 1);
    caller.abort();
    await assert.rejects(call);
    finish();
    await eventually('the wake is done', () => router.notices.length === 1);
    assert.equal(router.notices[0]?.status, 202);
  });
});

describe('an undeliverable wake', () => {
  test('distinguishes unknown, deleted, suspended and provisioning machines', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    const unknown = await router.wake('nobody');
    assert.deepEqual([unknown.status, unknown.json.error.code], [404, 'not_found']);
    await put(router, daemon.url, { state: 'provisioning' });
    const provisioning = await router.wake(USER);
    assert.deepEqual([provisioning.status, provisioning.json.error.code], [503, 'unavailable']);
    assert.equal(provisioning.headers.get('retry-after'), '5');
    await put(router, daemon.url);
    assert.equal((await router.wake(USER)).status, 202);
    await router.admin('POST', `/${USER}/suspend`);
    const suspended = await router.wake(USER);
    assert.deepEqual([suspended.status, suspended.json.error.code], [451, 'forbidden']);
    await router.admin('POST', `/${USER}/restore`);
    assert.equal((await router.wake(USER)).status, 202);
    await router.admin('DELETE', `/${USER}`);
    const deleted = await router.wake(USER);
    assert.deepEqual([deleted.status, deleted.json.error.code], [410, 'not_found']);
    assert.equal(deleted.json.error.retryable, false);
    assert.equal(daemon.chats.length, 2);
  });

  test('is rejected without the token, with an invalid signature, and when it is malformed', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await put(router, daemon.url);
    const path = '/internal/wake';
    const body = JSON.stringify(wakeBody(USER));
    const sign = ({
      secret = WAKE_TOKEN,
      ...over
    }: {
      body?: string;
      secret?: string;
      timestampSeconds?: number;
    } = {}) => ({
      ...webhookSigner(secret)({ id: 'fire', timestampSeconds: Date.now() / 1000, body, ...over }),
    });
    assert.equal((await router.send('POST', path, 'another-token-entirely', body)).status, 401);
    assert.equal((await router.send('POST', path, WAKE_TOKEN, body, sign({ secret: 'another' }))).status, 401);
    assert.equal((await router.send('POST', path, WAKE_TOKEN, body, sign({ body: `${body} ` }))).status, 401);
    assert.equal((await router.send('POST', path, WAKE_TOKEN, body, sign({ timestampSeconds: 1 }))).status, 401);
    const { 'webhook-id': _, ...incomplete } = sign();
    assert.equal((await router.send('POST', path, WAKE_TOKEN, body, incomplete)).status, 401);
    assert.equal(daemon.chats.length, 0);
    assert.equal((await router.send('POST', path, WAKE_TOKEN, body, sign())).status, 202);

    const wrong: [object, RegExp][] = [
      [{ user_id: '../../etc' }, /user_id must be 1 to 64 of/],
      [{ message: '' }, /message must not be empty/],
      [{ message: undefined }, /message is required/],
      [{ origin: 'me' }, /origin must be "chronos"/],
      [{ fire_id: 'a b' }, /fire_id must be 1 to 128 visible ASCII/],
      [{ alarm_id: 'a\r\nx-evil: 1' }, /alarm_id must be 1 to 64 visible ASCII/],
      [{ scheduled_for: 'tomorrow' }, /scheduled_for must be an RFC 3339 instant/],
      [{ attempt: 0 }, /attempt must be at least 1/],
      [{ surprise: 1 }, /unknown field "surprise"/],
    ];
    for (const [more, message] of wrong) {
      const answer = await router.wake(USER, more);
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.json.error.message, message);
    }
    assert.equal((await router.send('POST', path, WAKE_TOKEN, '{')).status, 400);
    assert.equal((await router.send('POST', path, WAKE_TOKEN, 'x'.repeat(WAKE_BODY_MAX_BYTES + 1))).status, 413);
    assert.equal(daemon.chats.length, 1);
  });

  test('finds the machine of a UUID in any case', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    const user = 'AAAAAAAA-2222-4333-8444-555555555555';
    await router.put(user, { provider: 'http', spec: { url: daemon.url } });
    assert.equal((await router.wake(user.toLowerCase())).status, 202);
    assert.equal((await router.wake(user)).status, 202);
    assert.deepEqual(
      daemon.chats.map((chat) => chat.headers['x-matrix-user']),
      [user.toLowerCase(), user.toLowerCase()],
    );
  });
});

test('the retry time grows, and a hundred attempts last for about a day', () => {
  assert.deepEqual([1, 2, 3, 4].map(retryAfter), [5, 10, 20, 40]);
  let seconds = 0;
  for (let attempt = 1; attempt <= 100; attempt++) seconds += retryAfter(attempt);
  assert.ok(seconds > 20 * 3600 && seconds < 26 * 3600, `${seconds}`);
});
