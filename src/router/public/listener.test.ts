/** The public listener with fixture machines: routing, wake-ups, back pressure and error messages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ADMIN_TOKEN, type Bench, eventsOf, fixtureMachine, startBench } from '../testing/bench.ts';
import { startPlainDaemon } from '../testing/plain-daemon.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Authorizes a user. */
async function tokenOf(router: Bench, userId: string): Promise<string> {
  const answer = await router.send('POST', '/admin/users', ADMIN_TOKEN, { user_id: userId });
  assert.equal(answer.status, 200, answer.text);
  return answer.json.data.token!;
}

type ListenerAnswer = {
  status: number;
  body: { data?: unknown; error?: { code: string; message: string } };
  headers: Headers;
};

async function call(
  { public: { url } }: Bench,
  token: string,
  path: string,
  init: RequestInit = {},
): Promise<ListenerAnswer> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(url + path, { headers, ...init });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : JSON.parse(text) };
}

const say = (router: Bench, token: string, body: object): Promise<ListenerAnswer> =>
  call(router, token, '/chat', { method: 'POST', body: JSON.stringify(body) });

/** An open stream of events of a user. */
async function openEvents({ public: { url } }: Bench, token: string, t: TestContext) {
  const events = request(`${url}/events`, { headers: { authorization: `Bearer ${token}`, 'last-event-id': '6' } });
  events.on('error', () => {}).end();
  t.after(() => events.destroy());
  const [answer] = await once(events, 'response');
  let text = '';
  const ended = new Promise<string>((resolve) => {
    answer.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    answer.on('close', () => resolve(text));
  });
  return {
    status: answer.statusCode,
    text: () => text,
    isWhole: () => answer.complete as boolean,
    ended,
    leave: () => events.destroy(),
  };
}

describe('a proxied request', () => {
  test('has the route, the body and the token of the machine, and nothing else from the user', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await router.put('ada', {
      provider: 'http',
      spec: { url: `${daemon.url}/base` },
      token: 'the-token-of-the-machine',
    });
    const token = await tokenOf(router, 'ada');
    const answer = await fetch(`${router.public.url}/chat`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8', cookie: 'a=b' },
        ...{ 'x-matrix-user': 'bob', 'x-matrix-wake-origin': 'chronos', 'x-matrix-wake-alarm': 'a' },
        ...{ 'x-matrix-wake-fire': 'a@1', 'idempotency-key': 'k', 'webhook-id': 'w', 'x-forwarded-for': '192.0.2.7' },
      },
      body: '{"message":"hello","conversation_id":"c","payload":{"n":1.0,"big":12345678901234567890}}',
    });
    assert.equal(answer.status, 202, await answer.text());
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    const [chat] = daemon.chats;
    assert.equal(chat!.url, '/base/chat');
    const { host: _, connection: __, 'content-length': ___, ...headers } = chat!.headers;
    assert.deepEqual(headers, {
      ...{ authorization: 'Bearer the-token-of-the-machine', accept: '*/*', 'x-matrix-user': 'ada' },
      'content-type': 'application/json; charset=utf-8',
    });
    const sent = '{"message":"hello","conversation_id":"c","payload":{"n":1.0,"big":12345678901234567890}}';
    assert.equal(String(chat!.body), sent);
    assert.ok(!JSON.stringify(chat).includes(token), 'the token of the user stays in the router');
  });

  test('is never an alarm', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await router.put('ada', { provider: 'http', spec: { url: daemon.url } });
    const token = await tokenOf(router, 'ada');
    const members = {
      origin: 'chronos',
      alarm_id: 'a',
      fire_id: 'a@1',
      scheduled_for: '2026-01-01T00:00:00Z',
      set_by: {},
    };
    for (const [name, value] of Object.entries(members)) {
      const { status, body } = await say(router, token, { message: 'hello', [name]: value });
      assert.equal(status, 400);
      assert.match(body.error!.message, new RegExp(name));
    }
    assert.equal(daemon.chats.length, 0);
  });

  test('a redirect of the daemon is not passed on, and an incomplete answer is not completed', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await router.put('ada', { provider: 'http', spec: { url: daemon.url } });
    const token = await tokenOf(router, 'ada');
    daemon.answer = (response) => response.writeHead(307, { location: 'http://192.0.2.1/' }).end();
    const { status, body } = await say(router, token, { message: 'hello' });
    assert.equal(status, 502);
    assert.match(
      body.error!.message,
      /did not answer \(it answered 307, which is not passed on\); it is unknown whether/,
    );
    daemon.answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
      response.write('{"ok":');
      setImmediate(() => response.destroy());
    };
    await assert.rejects(say(router, token, { message: 'hello' }));
  });
});

describe('a machine in use', () => {
  test('stays awake while a stream is open, and goes to sleep after the reader disconnects', async (t) => {
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock });
    const folder = temporaryFolder(t);
    await router.put('ada', fixtureMachine(folder, undefined, { idle_seconds: 60 }));
    const token = await tokenOf(router, 'ada');
    const running = async () => (await router.admin('GET', '/ada')).json.data.running;
    const stream = await openEvents(router, token, t);
    assert.equal(stream.status, 200);
    await eventually('an event comes', () => stream.text() === 'id: 7\ndata: hello\n\n');
    assert.equal(eventsOf(folder, 'events')[0]!.headers!['last-event-id'], '6');
    for (let minute = 0; minute < 5; minute++) {
      clock.advance(61_000);
      assert.ok((await say(router, token, { message: 'hello' })).status <= 202);
      assert.equal(await running(), 'ready');
    }
    stream.leave();
    await eventually('the daemon notices', () => eventsOf(folder, 'left').length === 1);
    await eventually('it sleeps', async () => {
      clock.advance(30_000);
      return (await running()) === 'asleep';
    });
    assert.ok((await say(router, token, { message: 'again' })).status <= 202);
    assert.equal(eventsOf(folder, 'start').length, 2);
  });

  test('ends its stream at once when it is stopped, as a complete answer', async (t) => {
    const router = await startBench(t);
    await router.put('ada', fixtureMachine(temporaryFolder(t)));
    const stream = await openEvents(router, await tokenOf(router, 'ada'), t);
    assert.equal((await router.admin('POST', '/ada/suspend')).status, 200);
    await stream.ended;
    // The end of a daemon breaks its connections; this stream was ended before.
    assert.ok(stream.isWhole());
  });

  test('that does not start answers with the reason and a remedy', async (t) => {
    const router = await startBench(t);
    await router.put('ada', fixtureMachine(temporaryFolder(t), 'exit', {}, { FIXTURE_SAYS: 'no such model' }));
    const token = await tokenOf(router, 'ada');
    const { status, headers, body } = await say(router, token, { message: 'hello' });
    assert.deepEqual([status, headers.get('retry-after'), body.error!.code], [503, '5', 'unavailable']);
    assert.match(body.error!.message, /^your agent's machine does not start: .*no such model/);
    assert.match(body.error!.message, /Your request was not sent; .* reveille machine show ada$/);
  });

  test('that is missing or has no chat answers with a message for the user', async (t) => {
    const router = await startBench(t);
    const cases: [user: string, status: number, words: RegExp, prepare?: () => Promise<unknown>][] = [
      ['nobody', 404, /no machine has been set up for nobody; the operator of this router does it with/],
      ['off', 451, /suspended/, () => router.admin('POST', '/off/suspend')],
      ['gone', 410, /deleted/, () => router.admin('DELETE', '/gone')],
      ['later', 503, /provisioned/],
      ['cli', 409, /is a program that runs once for each turn, so it has no chat/],
    ];
    for (const user of ['off', 'gone']) await router.put(user, fixtureMachine(temporaryFolder(t)));
    await router.put('later', { ...fixtureMachine(temporaryFolder(t)), state: 'provisioning' });
    await router.put('cli', {
      provider: 'command',
      spec: { preset: 'webhook', url: 'http://127.0.0.1:1/', allow_private: true },
    });
    for (const [user, status, message, prepare] of cases) {
      await prepare?.();
      const answer = await say(router, await tokenOf(router, user), { message: 'hello' });
      assert.equal(answer.status, status, user);
      assert.match(answer.body.error!.message, message);
    }
  });
});

describe('the limits of a user', () => {
  test('a body is read after authentication, is bounded, and wakes no machine before it is complete', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put('ada', fixtureMachine(folder));
    const token = await tokenOf(router, 'ada');
    const head = (bearer: string, length: number) =>
      `POST /chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bearer}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const first = async (text: string) => {
      const socket = connect(router.public.port, '127.0.0.1');
      t.after(() => socket.destroy());
      socket.on('error', () => {}).write(text);
      const [chunk] = await once(socket, 'data');
      return String(chunk).split('\r\n', 1)[0];
    };
    assert.match((await first(head('wrong', 100)))!, /401/);
    assert.match((await first(head(token, 300 * 1024)))!, /413/);
    const open = connect(router.public.port, '127.0.0.1');
    t.after(() => open.destroy());
    open.write(`${head(token, 100)}{"message":`);
    assert.equal((await call(router, token, '/conversations/a/b')).status, 404);
    assert.equal((await call(router, token, '/nothing')).status, 404);
    assert.equal(eventsOf(folder, 'start').length, 0, 'nothing was started');
    open.destroy();
  });

  test('streams beyond the share of a user are rejected, and /metrics counts all outcomes', async (t) => {
    const settings = { ROUTER_PUBLIC_STREAMS_PER_USER: '2', ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '20' };
    const router = await startBench(t, { settings });
    await router.put('ada', fixtureMachine(temporaryFolder(t)));
    const token = await tokenOf(router, 'ada');
    const streams = [await openEvents(router, token, t), await openEvents(router, token, t)];
    const third = await call(router, token, '/events');
    assert.deepEqual([third.status, third.headers.get('retry-after')], [429, '1']);
    streams[0]!.leave();
    await eventually('there is room', () => router.public.figures().streams === 1);
    const statuses = [];
    for (let n = 0; n < 5; n++) statuses.push((await say(router, token, { message: 'hello' })).status);
    assert.deepEqual(statuses, [202, 200, 200, 429, 429]);
    assert.equal((await call(router, 'rvp_000000000000_x', '/tools')).status, 401);
    assert.equal((await call(router, token, '/a%2fb')).status, 400);
    const page = await (await fetch(`${router.url}/metrics`)).text();
    const result = (name: string) => Number(new RegExp(`requests_total{result="${name}"} (\\d+)`).exec(page)?.[1]);
    const names = ['carried', 'over_share', 'unauthorized', 'malformed', 'not_carried', 'locked'];
    assert.deepEqual(names.map(result), [4, 3, 1, 1, 0, 0]);
    assert.match(page, /router_public_streams 1\n/);
    assert.match(page, /router_wrong_tokens_total{listener="public"} 1\n/);
  });

  test('slow readers apply back pressure to the daemon without memory growth, and are disconnected', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    await router.put('ada', { provider: 'http', spec: { url: daemon.url } });
    const token = await tokenOf(router, 'ada');
    let sent = 0;
    const block = Buffer.alloc(64 * 1024, 'x');
    daemon.answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = () => {
        while (!response.destroyed && response.write(block)) sent += block.length;
        sent += block.length;
      };
      response.on('drain', more);
      more();
    };
    const memoryNow = () => {
      collectGarbage();
      const { external, heapUsed } = process.memoryUsage();
      return external + heapUsed;
    };
    const before = memoryNow();
    const readers = Array.from({ length: 30 }, () => {
      const socket = connect(router.public.port, '127.0.0.1');
      t.after(() => socket.destroy());
      socket.on('error', () => {}).pause();
      socket.write(`GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`);
      return socket;
    });
    await eventually('all are served', () => router.public.figures().streams === readers.length);
    let last = -1;
    await eventually('the daemon is paused', async () => {
      const still = sent === last;
      last = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return still;
    });
    const buffered = memoryNow() - before;
    // The daemon runs in this process as well; kernel buffers of a connection count on neither side.
    assert.ok(buffered < readers.length * 4 * 1024 * 1024, `${buffered} bytes for ${readers.length} readers`);
    t.diagnostic(
      `${Math.round(buffered / readers.length / 1024)} KiB for each of ${readers.length} readers that do not read`,
    );
    for (const reader of readers) reader.destroy();
    await eventually('they are gone', () => router.public.figures().streams === 0);
  });
});
