import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { mintPrincipalToken } from '../../../src/chronos/auth/principal.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { ADMIN, type Answer, createHttpBench, refused, SECRET, TRANSPORT } from './http-bench.ts';

const UUID = '7d0f3c52-91A1-4C6f-8a7e-000000000001';
const NOT_PROVEN = 'the proof of identity was not accepted; ask for a new challenge and sign it';
const NO_PRINCIPAL =
  'X-Chronos-Agent must carry a principal token that is still valid; prove your identity again to get one';

/** One request to every route, for rules that apply to all of them. */
const ID = '01977777-0000-7000-8000-000000000001';
const ALARM_ROUTES: readonly [method: string, path: string, body?: object][] = [
  ['POST', '/v1/alarms', { kind: 'once', wake_message: 'x', delay_seconds: 60 }],
  ['GET', '/v1/alarms'],
  ['GET', `/v1/alarms/${ID}`],
  ['PATCH', `/v1/alarms/${ID}`, { label: 'x' }],
  ['DELETE', `/v1/alarms/${ID}`],
  ['POST', `/v1/alarms/${ID}/pause`],
  ['POST', `/v1/alarms/${ID}/resume`],
  ['POST', `/v1/alarms/${ID}/trigger`],
  ['POST', `/v1/alarms/${ID}/redrive`],
  ['GET', `/v1/alarms/${ID}/fires`],
];
const AGENT_ROUTES: typeof ALARM_ROUTES = [
  ['POST', '/v1/agent/auth/challenge', { did: `did:matrix:ada:${'0'.repeat(16)}` }],
  ['POST', '/v1/agent/auth/verify', {}],
  ['POST', '/v1/agent/auth/rotate', {}],
];
const ADMIN_ROUTES: typeof ALARM_ROUTES = [
  ['POST', '/v1/admin/agents', { label: 'ada', public_key: '0'.repeat(64) }],
  ['GET', '/v1/admin/agents'],
  ['DELETE', '/v1/admin/agents', { label: 'ada' }],
  ['GET', '/v1/admin/orphans'],
  ['POST', '/v1/admin/alarms/reown', { label: 'ada', to: 'bob' }],
];

describe('the transport layer', () => {
  test('every route requires its exact bearer token', async (t) => {
    const bench = await createHttpBench(t);
    const { principal } = await bench.agent('ada');
    // All at once: in sequence, each would be delayed longer and longer.
    const refusals: Promise<void>[] = [];
    for (const [method, path, body] of [...ALARM_ROUTES, ...AGENT_ROUTES, ...ADMIN_ROUTES]) {
      const token = path.startsWith('/v1/admin/') ? ADMIN : TRANSPORT;
      const foreign = token === ADMIN ? TRANSPORT : ADMIN;
      for (const authorization of [
        '',
        'Bearer',
        `Basic ${token}`,
        `Bearer ${token}x`,
        `Bearer ${token.slice(1)}`,
        token,
        `Bearer ${foreign}`,
      ]) {
        const call = bench.call(method, path, { bearer: '', headers: { authorization }, principal, body });
        refusals.push(
          call.then((answer) => {
            refused(answer, 401, 'unauthorized');
            assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
          }),
        );
      }
    }
    await Promise.all(refusals);
  });

  test('another spelling of the admin path needs the admin token too', async (t) => {
    const bench = await createHttpBench(t);
    for (const path of [
      '/v1/%61dmin/agents',
      '/v1//admin/agents',
      '/v1/./admin/agents',
      '/v1/x/../admin/agents',
      '/v1/ADMIN/agents',
    ]) {
      const { status } = await bench.call('GET', path, { bearer: TRANSPORT });
      assert.ok(status === 401 || status === 404, `${path}: ${status}`);
    }
  });

  test('health is open, and ready means that the store answers', async (t) => {
    const bench = await createHttpBench(t);
    assert.deepEqual((await bench.call('GET', '/healthz', { bearer: '' })).data, { status: 'ok' });
    assert.deepEqual((await bench.call('GET', '/readyz', { bearer: '' })).data, { status: 'ready' });
    assert.equal((await bench.call('GET', '/', { bearer: '' })).data.name, 'chronosd');
  });

  test('without tokens, for development, all routes except those of the identity are open', async (t) => {
    const bench = await createHttpBench(t, { auth: { transportToken: undefined, adminToken: undefined } });
    assert.equal((await bench.call('GET', '/v1/admin/agents', { bearer: '' })).status, 200);
    refused(await bench.call('GET', '/v1/alarms', { bearer: '' }), 401, 'unauthorized', NO_PRINCIPAL);
  });
});

describe('challenge and answer', () => {
  test('a proven key gets a token for the owner named by its label', async (t) => {
    const bench = await createHttpBench(t);
    const who = agentIdentity('Ada.L-1', generateKey());
    const challenge = await bench.call('POST', '/v1/agent/auth/challenge', { body: { did: who.did } });
    const { nonce } = challenge.data;
    assert.deepEqual(challenge.data, {
      did: who.did,
      nonce,
      message: `matrix-chronos-auth:${who.did}:${nonce}`,
      expires_in: 120,
    });
    const { data } = await bench.prove(who);
    assert.equal(data.owner_user_id, 'Ada.L-1');
    assert.equal(data.expires_in, 300);
    assert.equal((await bench.call('GET', '/v1/alarms', { principal: data.token })).status, 200);
  });

  test('a UUID is the same owner in any case, another label is not', async (t) => {
    const bench = await createHttpBench(t);
    const key = generateKey();
    const shouting = await bench.agent(UUID.toUpperCase(), key);
    const id = await shouting.set();
    const whispering = await bench.agent(UUID.toLowerCase(), key);
    assert.equal((await whispering.call('GET', `/v1/alarms/${id}`)).status, 200);
    refused(await bench.prove(agentIdentity(UUID, generateKey())), 403, 'forbidden');
    await bench.agent('ada');
    await bench.agent('Ada');
  });

  test('a nonce is valid for one answer, for its own DID, and for two minutes', async (t) => {
    const bench = await createHttpBench(t);
    const who = agentIdentity('ada', generateKey());
    const other = agentIdentity('bea', generateKey());
    const answer = async (nonce: string, as = who, over: object = {}): Promise<Answer> =>
      bench.call('POST', '/v1/agent/auth/verify', {
        body: {
          did: as.did,
          public_key: as.publicKeyHex,
          nonce,
          signature: as.sign(`matrix-chronos-auth:${as.did}:${nonce}`),
          ...over,
        },
      });

    const used = await bench.challenge(who.did);
    assert.equal((await answer(used)).status, 200);
    refused(await answer(used), 401, 'unauthorized', NOT_PROVEN);

    refused(await answer(await bench.challenge(other.did)), 401, 'unauthorized', NOT_PROVEN);
    refused(await answer('0'.repeat(64)), 401, 'unauthorized', NOT_PROVEN);

    const wasted = await bench.challenge(who.did);
    refused(await answer(wasted, who, { signature: '0'.repeat(128) }), 401, 'unauthorized', NOT_PROVEN);
    refused(await answer(wasted), 401, 'unauthorized', NOT_PROVEN);

    const late = await bench.challenge(who.did);
    await bench.clock.advance(120_000);
    refused(await answer(late), 401, 'unauthorized', NOT_PROVEN);
    const justInTime = await bench.challenge(who.did);
    await bench.clock.advance(119_999);
    assert.equal((await answer(justInTime)).status, 200);
  });

  test('key, DID and signature must belong together', async (t) => {
    const bench = await createHttpBench(t);
    const who = agentIdentity('ada', generateKey());
    const thief = agentIdentity('ada', generateKey());
    const tries: [name: string, body: (nonce: string) => object][] = [
      [
        'the DID of another key',
        (nonce) => ({
          public_key: thief.publicKeyHex,
          signature: thief.sign(`matrix-chronos-auth:${who.did}:${nonce}`),
        }),
      ],
      [
        'a signature by another key',
        (nonce) => ({ public_key: who.publicKeyHex, signature: thief.sign(`matrix-chronos-auth:${who.did}:${nonce}`) }),
      ],
      ['a signature of the nonce alone', (nonce) => ({ public_key: who.publicKeyHex, signature: who.sign(nonce) })],
      [
        'a signature of another DID',
        (nonce) => ({ public_key: who.publicKeyHex, signature: who.sign(`matrix-chronos-auth:${thief.did}:${nonce}`) }),
      ],
      [
        'a key that only begins alike',
        (nonce) => ({
          public_key: who.publicKeyHex.slice(0, 16) + thief.publicKeyHex.slice(16),
          signature: thief.sign(`matrix-chronos-auth:${who.did}:${nonce}`),
        }),
      ],
    ];
    for (const [name, body] of tries) {
      const nonce = await bench.challenge(who.did);
      const answer = await bench.call('POST', '/v1/agent/auth/verify', {
        body: { did: who.did, nonce, ...body(nonce) },
      });
      assert.equal(answer.error?.message, NOT_PROVEN, name);
      assert.equal(answer.status, 401, name);
    }
    assert.deepEqual(await bench.store.keysOf('ada'), [], 'nothing was pinned');
  });

  test('malformed values are refused without echoing keys and signatures', async (t) => {
    const bench = await createHttpBench(t);
    refused(
      await bench.call('POST', '/v1/agent/auth/challenge', { body: {} }),
      400,
      'invalid_request',
      'did is required',
    );
    refused(
      await bench.call('POST', '/v1/agent/auth/challenge', { body: { did: 'did:matrix:a b:0' } }),
      400,
      'invalid_request',
      'did must look like did:matrix:<label>:<16 hex digits> (got "did:matrix:a b:0")',
    );
    const body = {
      did: `did:matrix:ada:${'0'.repeat(16)}`,
      public_key: 'canary',
      nonce: '',
      signature: 'canary',
      also: 1,
    };
    const answer = await bench.call('POST', '/v1/agent/auth/verify', { body });
    refused(
      answer,
      400,
      'invalid_request',
      /public_key must be 64 hex digits; nonce .*; signature must be 128 hex digits/,
    );
    assert.match(answer.error.message, /unknown field "also"/);
    assert.ok(!answer.text.includes('canary'));
  });
});

describe('the principal token', () => {
  test('a missing, forged, expired, truncated or foreign-secret token is refused', async (t) => {
    const bench = await createHttpBench(t);
    const { principal, publicKeyHex: publicKey } = await bench.agent('ada');
    const [version, claims, signature] = principal.split('.') as [string, string, string];
    const now = bench.clock.now();
    const forgedClaims = Buffer.from(JSON.stringify({ owner: 'bea', key: publicKey, exp: now + 1e9 })).toString(
      'base64url',
    );
    const forged = [
      undefined,
      '',
      'x',
      'p1..',
      `${version}.${claims}`,
      `${version}.${claims}.`,
      `${version}.${claims}.${signature}.`,
      `${version}.${claims}.${signature}=`,
      `${version}.${claims}.${signature.slice(0, -1)}`,
      `p2.${claims}.${signature}`,
      `${version}.${forgedClaims}.${signature}`,
      mintPrincipalToken({ owner: 'ada', publicKey }, now + 60_000, 'another secret'),
      mintPrincipalToken({ owner: 'ada', publicKey }, now, SECRET),
      `${principal}, ${principal}`,
      `Bearer ${principal}`,
    ];
    for (const token of forged)
      refused(await bench.call('GET', '/v1/alarms', { principal: token }), 401, 'unauthorized', NO_PRINCIPAL);
    for (const [method, path, body] of ALARM_ROUTES)
      refused(await bench.call(method, path, { body }), 401, 'unauthorized', NO_PRINCIPAL);
    await bench.clock.advance(299_999);
    assert.equal((await bench.call('GET', '/v1/alarms', { principal })).status, 200);
    await bench.clock.advance(1);
    refused(await bench.call('GET', '/v1/alarms', { principal }), 401, 'unauthorized', NO_PRINCIPAL);
  });

  test('an unauthenticated caller learns nothing about bodies and ids', async (t) => {
    const bench = await createHttpBench(t);
    for (const [method, path] of ALARM_ROUTES.filter(([name]) => name !== 'GET'))
      refused(await bench.call(method, path, { body: '{"nonsense":' }), 401, 'unauthorized', NO_PRINCIPAL);
  });
});

describe('enrolment', () => {
  const enroll = (bench: Awaited<ReturnType<typeof createHttpBench>>, body: object) =>
    bench.call('POST', '/v1/admin/agents', { bearer: ADMIN, body });

  test('trust on first use pins the first key; a second one is forbidden until an operator enrols it', async (t) => {
    const bench = await createHttpBench(t);
    const first = await bench.agent('ada');
    const second = agentIdentity('ada', generateKey());
    refused(
      await bench.prove(second),
      403,
      'forbidden',
      'this key is not enrolled for that label; an operator can enrol it with "reveille agent enroll"',
    );
    const enrolled = await enroll(bench, { label: 'ada', public_key: second.publicKeyHex.toUpperCase() });
    assert.deepEqual(enrolled.data, {
      label: 'ada',
      public_key: second.publicKeyHex,
      did: second.did,
      source: 'enrolled',
      enrolled_at: '2026-06-15T08:10:00.000Z',
    });
    assert.equal((await bench.prove(second)).status, 200);
    assert.equal((await first.call('GET', '/v1/alarms')).status, 200);
  });

  test('of many first keys at once one is pinned', async (t) => {
    const bench = await createHttpBench(t);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => bench.prove(agentIdentity('ada', generateKey()))),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(403)]);
  });

  test('where enrolment is required a key must have been enrolled, and a key that was only pinned has no effect', async (t) => {
    const bench = await createHttpBench(t, { auth: { enrollment: 'required' } });
    const who = agentIdentity('ada', generateKey());
    refused(await bench.prove(who), 403, 'forbidden');
    await bench.store.pinFirstKey({
      owner: 'ada',
      label: 'ada',
      publicKey: who.publicKeyHex,
      source: 'tofu',
      enrolledAt: 0,
      revokedAt: null,
    });
    refused(await bench.prove(who), 403, 'forbidden');
    await enroll(bench, { label: 'ada', public_key: who.publicKeyHex });
    assert.equal((await bench.prove(who)).status, 200);
  });

  test('a revoked key stops working at once, with its tokens, and another first key is not trusted in its place', async (t) => {
    const bench = await createHttpBench(t);
    const ada = await bench.agent('ada');
    const bea = await bench.agent('bea');
    const revoke = (body: object) => bench.call('DELETE', '/v1/admin/agents', { bearer: ADMIN, body });
    const revoked = await revoke({ label: 'ada', public_key: ada.publicKeyHex });
    assert.equal(revoked.data.count, 1);
    assert.equal(revoked.data.revoked[0]?.revoked_at, '2026-06-15T08:10:00.000Z');
    refused(await ada.call('GET', '/v1/alarms'), 401, 'unauthorized', NO_PRINCIPAL);
    refused(await bench.prove(ada), 403, 'forbidden');
    refused(await bench.prove(agentIdentity('ada', generateKey())), 403, 'forbidden');
    assert.equal((await bea.call('GET', '/v1/alarms')).status, 200);
    refused(await revoke({ label: 'ada' }), 404, 'not_found', 'no key that can be revoked is enrolled for ada');
    await enroll(bench, { label: 'ada', public_key: ada.publicKeyHex });
    assert.equal((await ada.call('GET', '/v1/alarms')).status, 200);
  });

  test('keys are listed page by page, revoked ones too', async (t) => {
    const bench = await createHttpBench(t);
    for (let n = 0; n < 502; n++)
      await bench.store.enrollKey({
        owner: `user-${n}`,
        label: `user-${n}`,
        publicKey: n.toString(16).padStart(64, '0'),
        source: 'enrolled',
        enrolledAt: n,
        revokedAt: null,
      });
    await bench.store.revokeKeys('user-7', undefined, 9);
    const list = (query = '') => bench.call('GET', `/v1/admin/agents${query}`, { bearer: ADMIN });
    const first = await list();
    const second = await list(`?cursor=${first.data.next_cursor}`);
    assert.deepEqual([first.data.count, second.data.count, second.data.next_cursor], [500, 2, undefined]);
    const labels = [...first.data.agents, ...second.data.agents].map(({ label }: { label: string }) => label);
    assert.equal(new Set(labels).size, 502);
    const all = [...first.data.agents, ...second.data.agents];
    assert.deepEqual(
      all.filter(({ revoked_at }) => revoked_at).map(({ label }) => label),
      ['user-7'],
    );
    refused(
      await list('?cursor=nonsense'),
      400,
      'invalid_request',
      'cursor must be the next_cursor of an earlier answer, unchanged',
    );
    refused(await list('?limit=3'), 400, 'invalid_request', 'unknown field "limit"; allowed here: cursor');
  });

  test('a wrong label or key is named, and the key is not echoed', async (t) => {
    const bench = await createHttpBench(t);
    const answer = await enroll(bench, { label: 'a b', public_key: 'canary' });
    refused(
      answer,
      400,
      'invalid_request',
      'label must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone (got "a b"); public_key must be 64 hex digits',
    );
    refused(await enroll(bench, { label: 'ada' }), 400, 'invalid_request', 'public_key is required');
  });
});

test('no secret reaches the log, whatever fails', async (t) => {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const bench = await createHttpBench(t, { log: pino({ level: 'trace' }, sink) });
  const { principal, key, call } = await bench.agent('ada');
  const nonce = await bench.challenge(agentIdentity('ada', key).did);
  await call('POST', '/v1/alarms', { body: { kind: 'once', wake_message: 'private-words-canary', token: 1 } });
  await call('GET', '/v1/alarms?cursor=private-cursor-canary');
  await bench.call('POST', '/v1/agent/auth/verify', {
    body: { did: 'x', public_key: key.publicKeyHex, nonce, signature: 'canary' },
  });
  await bench.call('GET', '/v1/alarms', { bearer: `${TRANSPORT}x`, principal });
  await bench.call('GET', '/v1/alarms', { principal: `${principal}x` });
  await bench.call('POST', '/v1/nowhere', { body: '{' });
  const log = lines.join('');
  assert.ok(lines.length >= 5, 'refusals are logged at this level');
  for (const secret of [
    TRANSPORT,
    ADMIN,
    SECRET,
    principal,
    key.seedHex(),
    nonce,
    'private-words-canary',
    'private-cursor-canary',
  ])
    assert.ok(!log.includes(secret), secret);
});
