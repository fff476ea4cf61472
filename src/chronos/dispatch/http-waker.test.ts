import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { verifyWebhook } from '../../kit/identity/webhook-signature.ts';
import { parseJsonObject, RawJson } from '../../wire/json.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { RAW_WAKE_FIELDS, wakeRequestSchema } from '../../wire/wake.ts';
import { ALARM_ID, type Body, claim, NOW, scheduled, setAlarm } from '../alarm/testing/alarm-state.ts';
import type { Claim } from '../store/store.ts';
import { createHttpWaker, type HttpWakerOptions } from './http-waker.ts';

const TOKEN = 'wake-token-canary-0123456789';
const TIMEOUT_MS = 60_000;

type Received = { headers: IncomingMessage['headers']; method: string; url: string; body: string };
type Respond = (response: ServerResponse, received: Received, socket: Socket) => void;

/** The channel on which undici publishes that the head of an answer has been read. */
const HEADERS_READ = 'undici:request:headers';

function once(channel: string): Promise<void> {
  return new Promise((resolve) => {
    const listener = () => {
      unsubscribe(channel, listener);
      resolve();
    };
    subscribe(channel, listener);
  });
}

/** A router with the test's behaviour, and a waker that calls it. */
async function setUp(t: TestContext, respond: Respond, options: Partial<HttpWakerOptions> = {}) {
  const received: Received[] = [];
  let arrived = () => {};
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    received.push({ headers: request.headers, method: request.method!, url: request.url!, body });
    arrived();
    respond(response, received.at(-1)!, request.socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const clock = new ManualClock(NOW);
  const url = `http://127.0.0.1:${port}/internal/wake?from=test`;
  const waker = createHttpWaker({ url, token: TOKEN, clock, timeoutMs: TIMEOUT_MS, connections: 4, ...options });
  t.after(async () => {
    await waker.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    waker,
    clock,
    url,
    received,
    /** Resolves when the router has received the next request completely. */
    arrival: () =>
      new Promise<void>((resolve) => {
        arrived = resolve;
      }),
  };
}

function claimOf(body: Body = {}): Claim {
  const state = claim(setAlarm({ kind: 'once', delay_seconds: 60, ...body }), undefined, NOW + 60_000);
  return { alarm: state.alarm, occurrence: scheduled(state) };
}

const answer =
  (status: number, body = '', headers: Record<string, string> = {}): Respond =>
  (response) =>
    void response.writeHead(status, headers).end(body);

describe('the request', () => {
  const message = ' trailing \u0000\u0007 ünï 日本 👩‍🚀\u2028\r\n';
  const payload = '{"b":12345678901234567890, "a":[1.0,1e400,-0]}';

  test('contains message and payload as stored, and owner, fire and due time', async (t) => {
    const { waker, received } = await setUp(t, answer(202));
    await waker.wake(claimOf({ wake_message: message, payload, conversation_id: 'c:1', label: 'plants' }));
    const [{ method, url, headers, body }] = received as [Received];
    assert.deepEqual([method, url, headers['content-type']], ['POST', '/internal/wake?from=test', 'application/json']);
    assert.ok(body.endsWith(`"payload":${payload}}`));
    const wake = parseOrThrow(wakeRequestSchema, parseJsonObject(body, RAW_WAKE_FIELDS));
    assert.deepEqual(wake, {
      user_id: 'ada',
      conversation_id: 'c:1',
      message,
      payload: new RawJson(payload),
      alarm_id: ALARM_ID,
      origin: 'chronos',
      fire_id: `${ALARM_ID}@${NOW + 60_000}`,
      scheduled_for: NOW + 60_000,
      attempt: 1,
      missed_count: 0,
      label: 'plants',
      set_at: NOW,
    });
  });

  test('has the model, the tools and the channels that the alarm names, and no such member without one', async (t) => {
    const { waker, received } = await setUp(t, answer(202));
    await waker.wake(claimOf({ model: 'small', tools: [], deliver: ['phone'] }));
    await waker.wake(claimOf());
    const [named, plain] = received.map(({ body }) => JSON.parse(body));
    assert.deepEqual([named.model, named.tools, named.deliver], ['small', [], ['phone']]);
    for (const name of ['model', 'tools', 'deliver']) assert.ok(!(name in plain), name);
  });

  test('of a plain alarm has these bytes and no others', async (t) => {
    const { waker, received } = await setUp(t, answer(202));
    const plain = claimOf({ wake_message: 'water', label: 'plants' });
    assert.equal(plain.alarm.options, null);
    await waker.wake(plain);
    const [set, due] = [NOW, NOW + 60_000].map((at) => new Date(at).toISOString());
    assert.equal(
      received[0]?.body,
      `{"user_id":"ada","message":"water","alarm_id":"${ALARM_ID}","origin":"chronos","fire_id":"${ALARM_ID}@${NOW + 60_000}","scheduled_for":"${due}","attempt":1,"missed_count":0,"label":"plants","set_at":"${set}"}`,
    );
  });

  test('is signed with the wake token, over the exact bytes', async (t) => {
    const { waker, received } = await setUp(t, answer(202));
    await waker.wake(claimOf({ wake_message: message, payload }));
    const [{ headers, body }] = received as [Received];
    const signed = headers as Record<string, string>;
    assert.equal(headers.authorization, `Bearer ${TOKEN}`);
    assert.equal(headers['webhook-id'], `${ALARM_ID}@${NOW + 60_000}`);
    assert.deepEqual(verifyWebhook({ headers: signed, body, secrets: [TOKEN], nowMs: NOW }), { ok: true });
    assert.equal(verifyWebhook({ headers: signed, body: `${body} `, secrets: [TOKEN], nowMs: NOW }).ok, false);
  });

  test('is unsigned without a token', async (t) => {
    const { waker, received } = await setUp(t, answer(202), { token: undefined });
    await waker.wake(claimOf());
    const { headers } = received[0]!;
    assert.deepEqual([headers.authorization, headers['webhook-signature']], [undefined, undefined]);
  });
});

describe('the result', () => {
  for (const status of [200, 202, 204])
    test(`${status} means delivered`, async (t) => {
      const { waker } = await setUp(t, answer(status));
      assert.deepEqual(await waker.wake(claimOf()), { outcome: 'delivered', httpStatus: status });
    });

  for (const status of [302, 400, 404, 451, 500, 502, 504])
    test(`${status} is a failure that may be retried`, async (t) => {
      const { waker, received } = await setUp(t, answer(status, 'because', { location: '/elsewhere' }));
      assert.deepEqual(await waker.wake(claimOf()), {
        outcome: 'failed',
        httpStatus: status,
        error: `the router answered ${status}: because`,
        final: false,
      });
      assert.equal(received.length, 1);
    });

  test("another server's 2xx is accepted with any body; other answers are quoted", async (t) => {
    const bodies = ['', 'OK', '<!doctype html><p>woken</p>', '{"result":[1]}', '{"ok":false}', '\u0000\u{fffd}{'];
    let body = '';
    let status = 200;
    const { waker } = await setUp(t, (response) => void response.writeHead(status).end(body));
    for (body of bodies) assert.deepEqual(await waker.wake(claimOf()), { outcome: 'delivered', httpStatus: 200 });
    status = 500;
    for (body of bodies) {
      const result = await waker.wake(claimOf());
      assert.ok(result.outcome === 'failed' && !result.final && result.retryAfterSeconds === undefined);
      assert.equal(result.error, `the router answered 500: ${body.replace('\0', '\u{fffd}')}`);
    }
  });

  test('410 is final', async (t) => {
    const { waker } = await setUp(t, answer(410));
    const result = await waker.wake(claimOf());
    assert.ok(result.outcome === 'failed' && result.final);
  });

  for (const [header, seconds] of [
    ['7', 7],
    ['0', 1],
    ['999999', 999_999],
    ['-1', undefined],
    ['soon', undefined],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ] as const)
    test(`Retry-After: ${header} is read as ${seconds ?? 'nothing'}`, async (t) => {
      const { waker } = await setUp(t, answer(503, '', { 'retry-after': header }));
      const result = await waker.wake(claimOf());
      assert.equal(result.outcome === 'failed' && result.retryAfterSeconds, seconds);
    });

  test('the error keeps the first 300 characters of the answer, as text that any store accepts', async (t) => {
    const { waker } = await setUp(t, answer(500, `\u0000${'x'.repeat(298)}👩 and ${'more '.repeat(100_000)}`));
    const result = await waker.wake(claimOf());
    assert.ok(result.outcome === 'failed');
    assert.equal(result.error, `the router answered 500: \u{fffd}${'x'.repeat(298)}\u{fffd}`);
  });

  test('the message of an envelope is kept instead of its JSON, and is cut at the end of a sentence', async (t) => {
    const sentence =
      'The machine cannot be started: its program is not there. Install it, or name another with --bin. ';
    const refusal = (message: string) => ({ ok: false, error: { code: 'unavailable', message, retryable: true } });
    const whole = await setUp(t, answer(503, JSON.stringify(refusal(sentence.trim()))));
    const short = await whole.waker.wake(claimOf());
    assert.ok(short.outcome === 'failed');
    assert.equal(short.error, `the router answered 503: ${sentence.trim()}`);
    const long = await setUp(t, answer(503, JSON.stringify(refusal(sentence.repeat(50)))));
    const cut = await long.waker.wake(claimOf());
    assert.ok(cut.outcome === 'failed');
    assert.match(cut.error, /^the router answered 503: The machine [^{}]*--bin\.…$/);
    assert.ok(cut.error.length < 330);
  });

  test('an unreachable router got no wake', async (t) => {
    const gone = await setUp(t, answer(200), { url: 'http://127.0.0.1:1/internal/wake' });
    const result = await gone.waker.wake(claimOf());
    assert.ok(result.outcome === 'failed' && !result.final && result.httpStatus === null);
    assert.match(result.error, /could not be reached \(ECONNREFUSED/);
  });

  test('a connection that breaks after the request has an unknown outcome', async (t) => {
    const { waker } = await setUp(t, (_, __, socket) => void socket.resetAndDestroy());
    const result = await waker.wake(claimOf());
    assert.equal(result.outcome, 'unknown');
    assert.match(result.outcome === 'unknown' ? result.error : '', /whether it accepted the wake is not known/);
  });

  test('a request without an answer within the timeout has an unknown outcome', async (t) => {
    const { waker, clock, arrival } = await setUp(t, () => {});
    const arrived = arrival();
    const waking = waker.wake(claimOf());
    await arrived;
    await clock.advance(TIMEOUT_MS - 1);
    assert.equal(clock.timers, 1);
    await clock.advance(1);
    const result = await waking;
    assert.equal(result.outcome, 'unknown');
    assert.match(result.outcome === 'unknown' ? result.error : '', /it took more than 60000 ms/);
    assert.equal(clock.timers, 0);
  });

  test('an answer that never ends keeps its slot no longer than the timeout, and its status counts', async (t) => {
    for (const [status, outcome] of [
      [202, 'delivered'],
      [500, 'failed'],
    ] as const) {
      const { waker, clock } = await setUp(t, (response) => void response.writeHead(status).write('drip'));
      const headersRead = once(HEADERS_READ);
      const waking = waker.wake(claimOf());
      await headersRead;
      await clock.advance(TIMEOUT_MS);
      const result = await waking;
      assert.deepEqual([result.outcome, 'httpStatus' in result && result.httpStatus], [outcome, status]);
    }
  });

  test('a long answer to an accepted wake does not make it fail and is not read completely', async (t) => {
    const { waker, received } = await setUp(t, (response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
        response.once('drain', more);
      };
      more();
    });
    assert.equal((await waker.wake(claimOf())).outcome, 'delivered');
    assert.equal((await waker.wake(claimOf())).outcome, 'delivered');
    assert.equal(received.length, 2);
  });

  test('a running wake has an unknown outcome when the waker closes', async (t) => {
    const { waker, arrival } = await setUp(t, () => {});
    const arrived = arrival();
    const waking = waker.wake(claimOf());
    await arrived;
    await waker.close();
    assert.equal((await waking).outcome, 'unknown');
  });

  test('the router may report when the machine was ready, also for a failed wake', async (t) => {
    const said = { 'x-reveille-machine-ready-ms': '850' };
    const read = async (status: number, headers: Record<string, string>) => {
      const result = await (await setUp(t, answer(status, '', headers))).waker.wake(claimOf());
      return 'machineReadyMs' in result ? result.machineReadyMs : undefined;
    };
    assert.equal(await read(202, said), 850);
    assert.equal(await read(502, said), 850);
    assert.equal(await read(202, {}), undefined);
    for (const garbage of ['-1', '1.5', 'soon', '', '99999999999'])
      assert.equal(await read(202, { 'x-reveille-machine-ready-ms': garbage }), undefined);
  });

  test('no error contains the token', async (t) => {
    const { waker } = await setUp(
      t,
      (response, { headers }) => void response.writeHead(401).end(JSON.stringify(headers.host)),
    );
    const refused = await waker.wake(claimOf());
    await waker.close();
    for (const result of [refused, await waker.wake(claimOf())]) assert.ok(!JSON.stringify(result).includes('canary'));
  });
});
