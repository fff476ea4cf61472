import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type ChronosClientOptions, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { RawJson } from '../../../src/wire/json.ts';
import { payloadTextOf, type StandInChronosd, startStandInChronosd } from '../../support/stand-ins/chronosd.ts';

const identity = agentIdentity('7D444840-9DC0-11D1-B245-5FFDCE74FAD2', generateKey());
const PAYLOAD = '{ "big": 12345678901234567890, "10": 1.0, "2": 1e400,\n "s": "\\u0000 ]}" }';

function failsWith(code: string, ...parts: (string | RegExp)[]) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.equal(thrown.code, code, thrown.message);
    for (const part of parts)
      assert.match(thrown.message, part instanceof RegExp ? part : new RegExp(RegExp.escape(part)));
    return true;
  };
}

describe('the chronosd client', () => {
  let chronosd: StandInChronosd;
  before(async () => {
    chronosd = await startStandInChronosd();
  });
  after(() => chronosd.close());
  beforeEach(() => {
    chronosd.misbehave = undefined;
    chronosd.tamperWithChallenge = undefined;
    chronosd.seen.length = 0;
    chronosd.issued.length = 0;
  });
  const client = (options: Partial<ChronosClientOptions> = {}) =>
    createChronosClient({ url: chronosd.url, token: chronosd.token, identity, ...options });

  test('sets, lists, shows and cancels an alarm, and its payload keeps every byte both ways', async () => {
    const created = await client().createAlarm({
      kind: 'once',
      wake_message: 'wake',
      delay_seconds: 60,
      payload: new RawJson(PAYLOAD),
    });
    assert.equal(created.status, 'active');
    assert.equal(payloadTextOf(chronosd.seen.at(-1)!), PAYLOAD);
    const shown = await client().getAlarm(created.id);
    assert.equal(shown.payload?.text, PAYLOAD);
    const page = await client().listAlarms({ limit: 5, status: 'active' });
    assert.equal(page.alarms.find(({ id }) => id === created.id)?.payload?.text, PAYLOAD);
    assert.equal(page.count, page.alarms.length);
    assert.equal((await client().cancelAlarm(created.id)).status, 'cancelled');
  });

  test('a lost or unreadable answer to a new alarm says that its outcome is unknown, and how to go on', async () => {
    for (const [status, body] of [
      ...[200, 502, 503, 504].map((code) => [code, '<h1>Bad Gateway</h1>'] as const),
      [200, '{"ok":true,"data":{}}'],
      [503, '{"message":"no upstream"}'],
    ] as const) {
      chronosd.misbehave = (request, response) => {
        if (request.method !== 'POST' || request.url !== '/v1/alarms') return false;
        response.writeHead(status).end(body);
        return true;
      };
      const alarm = { kind: 'once', wake_message: 'wake', delay_seconds: 60 } as const;
      const says = /it is unknown whether the request was carried out: .* same idempotency_key; .* list the alarms/;
      await assert.rejects(client().createAlarm(alarm), failsWith('unavailable', says), `${status} ${body}`);
    }
  });

  test('proves the identity again for every call', async () => {
    const api = client();
    await api.listAlarms();
    await api.listAlarms();
    assert.equal(chronosd.issued.length, 2);
    assert.notEqual(chronosd.issued[0], chronosd.issued[1]);
  });

  test('shares one proof between calls when it has a holder, and proves again when the token has expired', async () => {
    const api = client({ principal: holdPrincipal() });
    await api.listAlarms();
    await api.listAlarms();
    assert.equal(chronosd.issued.length, 1);
    chronosd.forgetPrincipals();
    await api.listAlarms();
    assert.equal(chronosd.issued.length, 2);
  });

  test('does not use a held token that expires soon', async () => {
    let monotonic = 0;
    const clock = { ...systemClock, monotonic: () => monotonic };
    const api = client({ principal: holdPrincipal(), clock });
    await api.listAlarms();
    monotonic = 296_000;
    await api.listAlarms();
    assert.equal(chronosd.issued.length, 2);
  });

  test('reports a refused proof once and does not retry', async () => {
    const unknownIdentity = { ...identity, sign: () => '0'.repeat(128) };
    await assert.rejects(
      client({ identity: unknownIdentity }).listAlarms(),
      failsWith('unauthorized', 'proof of identity'),
    );
    assert.deepEqual(
      chronosd.seen.map(({ path }) => path),
      ['/v1/agent/auth/challenge', '/v1/agent/auth/verify'],
    );
  });

  test('signs nothing but the proof for its own identity', async () => {
    const signed: string[] = [];
    const spy = {
      ...identity,
      sign: (message: string) => {
        signed.push(message);
        return identity.sign(message);
      },
    };
    chronosd.tamperWithChallenge = (challenge) => ({ ...challenge, message: 'I owe you a million' });
    await client({ identity: spy }).listAlarms();
    assert.match(signed[0]!, /^matrix-chronos-auth:did:matrix:/);
    chronosd.tamperWithChallenge = (challenge) => ({ ...challenge, did: 'did:matrix:other:0123456789abcdef' });
    await assert.rejects(client({ identity: spy }).listAlarms(), failsWith('unavailable', 'not for this identity'));
    chronosd.tamperWithChallenge = (challenge) => ({ ...challenge, nonce: 'a\nb' });
    await assert.rejects(client({ identity: spy }).listAlarms(), failsWith('unavailable', 'not for this identity'));
    assert.equal(signed.length, 1);
  });

  test('passes on the error of chronosd with its code', async () => {
    await assert.rejects(client().getAlarm('nope/../x'), failsWith('not_found'));
    await assert.rejects(
      client().createAlarm({ kind: 'once', wake_message: 'x' }),
      failsWith('invalid_request', 'needs delay_seconds or fire_at'),
    );
    await assert.rejects(client({ token: 'wrong' }).listAlarms(), failsWith('unauthorized', 'bearer'));
  });

  test('names the address that does not answer and the remedy', async () => {
    const closed = createTcpServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    const api = client({ url: `http://127.0.0.1:${port}/` });
    await assert.rejects(
      api.health(),
      failsWith('unavailable', `http://127.0.0.1:${port} (ECONNREFUSED)`, 'reveille up'),
    );
  });

  test('reports how long it waited, and that the outcome of a change is unknown', async () => {
    const fireTimer: (() => void)[] = [];
    const clock = {
      ...systemClock,
      after: (_delay: number, callback: () => void) => {
        fireTimer.push(callback);
        return () => {};
      },
    };
    chronosd.misbehave = (request) => {
      if (request.url !== '/v1/alarms' || request.method !== 'POST') return false;
      setImmediate(() => fireTimer[0]!());
      return true;
    };
    const setting = client({ clock, timeoutMs: 1234 }).createAlarm({
      kind: 'once',
      wake_message: 'x',
      delay_seconds: 1,
    });
    await assert.rejects(setting, failsWith('unavailable', 'within 1234 ms', 'it is unknown', 'idempotency_key'));
  });

  test('counts the proof in the timeout of a call', async () => {
    chronosd.misbehave = () => true;
    await assert.rejects(client({ timeoutMs: 30 }).listAlarms(), failsWith('unavailable', 'within 30 ms'));
  });

  test('can be cancelled by its caller', async () => {
    const controller = new AbortController();
    chronosd.misbehave = () => {
      controller.abort();
      return true;
    };
    await assert.rejects(
      client().listAlarms({}, { signal: controller.signal }),
      failsWith('unavailable', 'the caller aborted the call'),
    );
    await assert.rejects(
      client().listAlarms({}, { signal: controller.signal }),
      failsWith('unavailable', 'the caller aborted the call'),
    );
  });

  test('reports any body other than an envelope as unavailable: HTML, cut-off JSON, a redirect, wrong data, bad UTF-8', async () => {
    const answers: [status: number, body: string | Buffer, says: RegExp][] = [
      [200, '<html>hello</html>', /not an envelope/],
      [200, '{"ok":true,"data":{"alar', /not an envelope/],
      [302, '', /302/],
      [500, '{"ok":false,"error":{"code":"nonsense"}}', /not an envelope/],
      [200, '{"ok":true,"data":{"alarms":5}}', /alarms must be a list/],
      [200, '{"ok":true,"data":[1]}', /alarms must be a list|unexpected/],
      [200, '{"ok":true,"data":{"alarms":[{}]}}', /without an id/],
      [200, Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
    ];
    for (const [status, body, pattern] of answers) {
      chronosd.misbehave = (request, response) => {
        if (!request.url?.startsWith('/v1/alarms')) return false;
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body);
        return true;
      };
      await assert.rejects(client().listAlarms(), failsWith('unavailable', pattern));
    }
  });

  test('does not follow a redirect with its tokens', async () => {
    const elsewhere: string[] = [];
    const other = createServer((request, response) => {
      elsewhere.push(request.url ?? '');
      response.end();
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    chronosd.misbehave = (_request, response) => {
      const { port } = other.address() as AddressInfo;
      response.writeHead(307, { location: `http://127.0.0.1:${port}/` }).end();
      return true;
    };
    await assert.rejects(client().listAlarms(), failsWith('unavailable', '307'));
    assert.deepEqual(elsewhere, []);
    other.close();
  });

  test('survives a connection that is cut in the middle of an answer', async () => {
    chronosd.misbehave = (request, response) => {
      if (request.method !== 'DELETE') return false;
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"ok":true', () => response.destroy());
      return true;
    };
    await assert.rejects(
      client().cancelAlarm('x'),
      failsWith('unavailable', 'closed the connection before it answered', 'cancel it again'),
    );
  });

  test('refuses unusable addresses and tokens, without repeating a secret', () => {
    const secret = 'line one\nline two';
    for (const options of [
      { token: secret },
      { adminToken: secret },
      { url: 'ftp://x' },
      { url: 'not a url' },
      { url: 'http://me:line@127.0.0.1' },
    ]) {
      assert.throws(
        () => client(options),
        (thrown) => failsWith('invalid_request')(thrown) && !String(thrown).includes('line one'),
      );
    }
  });

  test('never shows a token that chronosd gave it', async () => {
    chronosd.misbehave = (request, response) => {
      if (!request.url?.endsWith('/verify')) return false;
      response.end('{"ok":true,"data":{"token":"s3cret\\ntoken","owner_user_id":5,"expires_in":300}}');
      return true;
    };
    await assert.rejects(
      client().listAlarms(),
      (thrown) => failsWith('unavailable')(thrown) && !/s3cret/.test(String(thrown)),
    );
  });

  test('needs an identity for alarms, an admin token for keys, and neither for health', async () => {
    await assert.rejects(client({ identity: undefined }).listAlarms(), failsWith('unauthorized', 'identity'));
    await assert.rejects(client().listAgents(), failsWith('unauthorized', 'CHRONOS_ADMIN_TOKEN'));
    assert.deepEqual(await client({ identity: undefined }).health(), { status: 'ok' });
  });
});
