/** Attacks on the addresses of webhooks: each row is one, over the router's public listener to chronosd. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { type Created, createHookBench } from './hook-bench.ts';

type Bench = Awaited<ReturnType<typeof createHookBench>>;

const hubOf = (key: string, body: string) => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
const GITHUB_SECRET = 'a-secret-of-the-repository';

/** Sends bytes as they are, and returns the status of the answer; 0 when the connection ends without one. */
function raw(port: number, text: string | Buffer, { endAfterMs = 4000 } = {}): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let read = '';
    const done = () => {
      socket.destroy();
      resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(read)?.[1] ?? 0));
    };
    const timer = setTimeout(done, endAfterMs);
    socket.on('data', (chunk) => {
      read += String(chunk);
      clearTimeout(timer);
      done();
    });
    socket.on('error', () => {});
    socket.on('close', done);
  });
}

async function targets(bench: Bench) {
  const webhook = await bench.set({ event: { source: 'webhook', repeat: 'always' } });
  const github = await bench.set({
    event: { source: 'webhook', verify: 'github', secret: GITHUB_SECRET, repeat: 'always' },
  });
  const path = await bench.set({ event: { source: 'webhook', verify: 'path', repeat: 'always' } });
  const beat = await bench.set({ expect: { every: 'PT1H' } });
  return { webhook, github, path, beat };
}

test('a request that does not prove its sender is refused with the same answer, and nothing is stored', async (t) => {
  const bench = await createHookBench(t);
  const { webhook, github, path, beat } = await targets(bench);
  const { signed, send, waiting } = bench;
  const own = signed(webhook, '{}');
  const signature = own['webhook-signature'];
  const at = (seconds: number) => signed(webhook, '{}', 'msg_1', bench.clock.now() + seconds * 1000);
  const guessed = path.hook.address.replace(/[0-9a-f]{32}$/, '0'.repeat(32));
  const bare = path.hook.address.replace(/\.[0-9a-f]{32}$/, '');
  type Row = [what: string, to: string, headers: Record<string, string>, body?: string | undefined, method?: string];
  const rows: Row[] = [
    ['no headers', webhook.hook.address, {}],
    ['an empty signature', webhook.hook.address, { ...own, 'webhook-signature': '' }],
    ['only the version', webhook.hook.address, { ...own, 'webhook-signature': 'v1,' }],
    ['a truncated signature', webhook.hook.address, { ...own, 'webhook-signature': signature.slice(0, -6) }],
    ['another version', webhook.hook.address, { ...own, 'webhook-signature': signature.replace('v1,', 'v2,') }],
    ['asymmetric version', webhook.hook.address, { ...own, 'webhook-signature': signature.replace('v1,', 'v1a,') }],
    ['bytes beyond ASCII', webhook.hook.address, { ...own, 'webhook-signature': `v1,${'\u00e9'.repeat(44)}` }],
    [
      '17th of many signatures',
      webhook.hook.address,
      { ...own, 'webhook-signature': `${'v1,AAAA '.repeat(16)}${signature}` },
    ],
    ['6 minutes old', webhook.hook.address, at(-360)],
    ['6 minutes early', webhook.hook.address, at(360)],
    ['a time that is none', webhook.hook.address, { ...own, 'webhook-timestamp': 'NaN' }],
    ['a time with a sign', webhook.hook.address, { ...own, 'webhook-timestamp': `+${own['webhook-timestamp']}` }],
    ['a time in hex', webhook.hook.address, { ...own, 'webhook-timestamp': '0x6a000000' }],
    ['another body', webhook.hook.address, own, '{"a":1}'],
    ['the body with a space', webhook.hook.address, own, '{} '],
    ['the id in another place', webhook.hook.address, { ...own, 'webhook-id': `${own['webhook-id']}.1` }],
    [
      'a signature of another alarm',
      webhook.hook.address,
      signed({ ...webhook, hook: { ...webhook.hook, secret: 'whsec_AAAA' } }, '{}'),
    ],
    ['the secret as a bearer', webhook.hook.address, { authorization: `Bearer ${webhook.hook.secret}` }],
    ['its secret in the query', `${webhook.hook.address}?secret=${webhook.hook.secret}`, {}],
    [
      'GitHub’s scheme at a standard address',
      webhook.hook.address,
      { 'x-hub-signature-256': hubOf(webhook.hook.secret!, '{}') },
    ],
    ['a token of 32 zeros at a standard address', `${webhook.hook.address}.${'0'.repeat(32)}`, {}],
    [
      'GitHub’s SHA-1',
      github.hook.address,
      { 'x-hub-signature': hubOf(GITHUB_SECRET, '{}').replace('sha256', 'sha1') },
    ],
    [
      'GitHub’s digest in upper case',
      github.hook.address,
      { 'x-hub-signature-256': hubOf(GITHUB_SECRET, '{}').toUpperCase() },
    ],
    [
      'GitHub’s digest without its name',
      github.hook.address,
      { 'x-hub-signature-256': hubOf(GITHUB_SECRET, '{}').slice(7) },
    ],
    [
      'GitHub’s digest, truncated',
      github.hook.address,
      { 'x-hub-signature-256': hubOf(GITHUB_SECRET, '{}').slice(0, -1) },
    ],
    [
      'as long as GitHub’s, beyond ASCII',
      github.hook.address,
      { 'x-hub-signature-256': `${hubOf(GITHUB_SECRET, '{}').slice(0, -1)}\u00e9` },
    ],
    ['GitHub’s signature of an empty key', github.hook.address, { 'x-hub-signature-256': hubOf('', '{}') }],
    [
      'a standard signature at GitHub’s address',
      github.hook.address,
      signed({ ...github, hook: { ...github.hook, secret: GITHUB_SECRET } }, '{}'),
    ],
    ['a guessed path', guessed, {}],
    ['no token', bare, {}],
    ['a signature in place of the token', bare, own],
    ['a guessed heartbeat', beat.hook.address.replace(/[0-9a-f]{32}$/, 'f'.repeat(32)), {}, undefined, 'GET'],
    ['a guessed failure of a heartbeat', `${beat.hook.address.replace(/[0-9a-f]{32}$/, 'f'.repeat(32))}/fail`, {}],
  ];
  const texts = new Set<string>();
  for (const [what, to, headers, body = '{}', method = 'POST'] of rows) {
    const answer = await send(to, method === 'GET' ? undefined : body, headers, method);
    const text = await answer.text();
    assert.equal(answer.status, 401, `${what}: ${text}`);
    texts.add(text);
  }
  assert.equal(texts.size, 1, 'no answer says what was wrong');
  for (const alarm of [webhook, github, path]) assert.equal(await waiting(alarm), 0);
  t.diagnostic(`${rows.length} attacks`);
});

test('an address is one plain path of the public listener: nothing leads elsewhere', async (t) => {
  const bench = await createHookBench(t);
  const { webhook, path } = await targets(bench);
  const { port } = bench.router.public;
  const [id, owner] = webhook.hook.address.slice('/hooks/'.length).split('.') as [string, string];
  const secret = path.hook.address;
  const targetsOf: string[] = [
    '/hooks/../healthz',
    '/hooks/../v1/alarms',
    '/hooks/..%2fhealthz',
    '/hooks/%2e%2e/healthz',
    '/hooks/%2e%2e%2fv1%2falarms',
    '/hooks/%252e%252e/healthz',
    '/hooks/./healthz',
    '/hooks//healthz',
    '//hooks/x',
    '/hooks/..;/healthz',
    '/hooks/\\..\\healthz',
    '/hooks/x\\..\\..\\v1/alarms',
    `http://127.0.0.1:${bench.port}/healthz`,
    `http://127.0.0.1:${bench.port}${secret}`,
    `http://169.254.169.254/hooks/x`,
    '*',
    '/hooks/',
    '/hooks/x',
    `/hooks/${id}`,
    `/hooks/${id}.`,
    `/hooks/${id}.${owner}.`,
    `/hooks/${id.toUpperCase()}.${owner}`,
    `/hooks/${id}.${'A'.repeat(200)}`,
    `/hooks/${id}.${'A'.repeat(4000)}`,
    `/hooks/${id}.Li4vLi4v`,
    `/hooks/${id}.${Buffer.from('ada\n').toString('base64url')}`,
    `/hooks/${id}.${Buffer.from('bob').toString('base64url')}`,
    `/hooks/${id}.${owner}/fail`,
    `/hooks/${id}.${owner}/__proto__`,
    `/hooks/${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}.${owner}`,
    `${secret}/constructor`,
    `${secret}#x`,
  ];
  for (const target of targetsOf) {
    const status = await raw(
      port,
      `POST ${target} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`,
    );
    assert.ok([400, 401, 404, 405].includes(status), `${target}: ${status}`);
  }
  for (const method of ['PUT', 'DELETE', 'PATCH', 'HEAD', 'TRACE', 'OPTIONS', 'GET'])
    assert.ok(
      [404, 405, 501].includes(
        await raw(port, `${method} ${secret} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n\r\n`),
      ),
      method,
    );
  assert.equal(await bench.waiting(path), 0);
  assert.equal(await bench.waiting(webhook), 0);
  t.diagnostic(`${targetsOf.length + 7} attacks`);
});

test('bodies and headers that are hostile to their reader', async (t) => {
  const bench = await createHookBench(t);
  const { webhook, path, github } = await targets(bench);
  const { port } = bench.router.public;
  const head = (to: string, more: string[]) =>
    [`POST ${to} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'connection: close', ...more, '', ''].join('\r\n');
  const secret = path.hook.address;
  const chunk = `${(64 * 1024).toString(16)}\r\n${'x'.repeat(64 * 1024)}\r\n`;
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const own = Object.entries(bench.signed(webhook, '{}')).map(([name, value]) => `${name}: ${value}`);
  const rows: [string, string | Buffer, readonly number[]][] = [
    ['10 MB by its length', head(secret, ['content-length: 10000000']), [413]],
    ['10 MB in chunks', head(secret, ['transfer-encoding: chunked']) + chunk.repeat(160), [413, 0]],
    ['a length that is none', head(secret, ['content-length: x']), [400]],
    ['two lengths', `${head(secret, ['content-length: 2', 'content-length: 3'])}{} `, [400]],
    ['a length and chunks', `${head(secret, ['content-length: 2', 'transfer-encoding: chunked'])}{}`, [400]],
    ['headers of 64 KB', head(secret, [`x-a: ${'a'.repeat(65_536)}`]), [431]],
    ['a header with a line end', head(secret, ['idempotency-key: a\rb: c', 'content-length: 0']), [400]],
    ['a folded header', head(secret, ['idempotency-key: a\r\n b', 'content-length: 0']), [200, 400]],
    ['two hosts', head(secret, ['host: evil.example', 'content-length: 0']), [400, 403, 421]],
    ['no host', `POST ${secret} HTTP/1.1\r\ncontent-length: 0\r\n\r\n`, [400]],
    ['the signature twice', `${head(webhook.hook.address, [...own, own.at(-1)!, 'content-length: 2'])}{}`, [200, 401]],
    ['a body that never comes', head(secret, ['content-length: 100']), [0, 408]],
  ];
  for (const [what, bytes, expected] of rows) {
    const status = await raw(port, bytes, { endAfterMs: 1500 });
    assert.ok(expected.includes(status), `${what}: ${status}`);
  }
  // Compressed bodies are data as they are, and are not unpacked.
  for (const [coding, packed] of [
    ['gzip', bomb.subarray(0, 48_000)],
    ['br', brotliCompressSync(Buffer.alloc(50_000_000))],
  ] as const) {
    const before = process.memoryUsage().rss;
    const answer = await fetch(`http://127.0.0.1:${port}${secret}`, {
      ...{ method: 'POST', body: new Uint8Array(packed), headers: { 'content-encoding': coding } },
    });
    assert.ok([200, 413, 415].includes(answer.status), `${coding}: ${answer.status}`);
    assert.ok(process.memoryUsage().rss - before < 45e6, coding);
  }
  // JSON that no later reader would survive is one text.
  const texts = [
    `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    `{"a":${'{"a":'.repeat(5000)}1${'}'.repeat(5001)}`,
    '\u0000',
    '\ufeff{}',
    '"\\ud800"',
    '{"__proto__":{"polluted":1}}',
    '{"a":1,"a":2}',
  ];
  for (const [index, text] of texts.entries()) {
    const answer = await bench.send(secret, text, { 'idempotency-key': `t${index}` });
    assert.equal(answer.status, 200, text.slice(0, 20));
  }
  const events = await bench.store.eventsOf('ada', path.id, { from: 1, to: 1000, maxBytes: 1e9 });
  for (const { data } of events) assert.doesNotThrow(() => JSON.parse(data));
  assert.equal(events.find(({ data }) => data.startsWith('"[[')) !== undefined, true, 'too deep is text');
  assert.equal(({} as { polluted?: number }).polluted, undefined);
  // Names from GitHub's headers cannot leave their place in the event.
  const injected = '","body":"forged","x":"';
  const answer = await bench.send(github.hook.address, '{"real":true}', {
    ...{
      'x-hub-signature-256': hubOf(GITHUB_SECRET, '{"real":true}'),
      'x-github-event': injected,
      'x-github-delivery': '}',
    },
  });
  assert.equal(answer.status, 200);
  const [event] = await bench.store.eventsOf('ada', github.id, { from: 1, to: 1, maxBytes: 1e6 });
  assert.deepEqual(JSON.parse(event!.data), { event: injected, delivery: '}', body: { real: true } });
  t.diagnostic(`${rows.length + 2 + texts.length + 1} attacks`);
});

test('replays, and ids that are made to collide, are one event each', async (t) => {
  const bench = await createHookBench(t);
  const { webhook, github, path } = await targets(bench);
  const { send, signed, waiting } = bench;
  const own = signed(webhook, '{}');
  for (let n = 0; n < 20; n++) assert.equal((await send(webhook.hook.address, '{}', own)).status, 200);
  assert.equal(await waiting(webhook), 1);
  // The same id again with another body, signed: the sender says that it is the same event.
  assert.equal((await send(webhook.hook.address, '{"b":1}', signed(webhook, '{"b":1}'))).status, 200);
  assert.equal(await waiting(webhook), 1);
  // GitHub signs only the body: other names of a captured one are the same event.
  for (const event of ['push', 'delete', 'x'.repeat(500)])
    await send(github.hook.address, '{}', {
      'x-hub-signature-256': hubOf(GITHUB_SECRET, '{}'),
      'x-github-event': event,
      'x-github-delivery': event.slice(0, 9),
    });
  assert.equal(await waiting(github), 1);
  // An id of one scheme or place is none of another: neither can occupy the other's.
  const keys = ['a', 'A', ' a', 'a\u00e9', `standard:${'0'.repeat(40)}`, 'x'.repeat(8000)];
  for (const key of keys)
    assert.equal((await send(path.hook.address, '{}', { 'idempotency-key': key.trim() })).status, 200, key.slice(0, 9));
  assert.equal(await waiting(path), new Set(keys.map((key) => key.trim())).size);
  t.diagnostic(`${20 + 1 + 3 + keys.length} attacks`);
});

test('the address of an alarm that was paused, edited, cancelled or given to another owner', async (t) => {
  const bench = await createHookBench(t);
  const { set, send, signed, waiting, ada, store, clock } = bench;
  const paused = await set({ event: { source: 'webhook', repeat: 'always' } });
  await ada.call('POST', `/v1/alarms/${paused.id}/pause`);
  assert.equal((await send(paused.hook.address, '{}', signed(paused, '{}'))).status, 200);
  assert.equal((await store.get('ada', paused.id))!.occurrences.filter(({ dueAt }) => dueAt !== null).length, 0);
  // It becomes an alarm with another source, or another scheme: the old signature proves nothing.
  const edited = await set({ event: { source: 'webhook', repeat: 'always' } });
  const { status, text } = await ada.call('PATCH', `/v1/alarms/${edited.id}`, {
    body: { event: { source: 'webhook', verify: 'github', repeat: 'always' } },
  });
  assert.equal(status, 200, text);
  assert.equal((await send(edited.hook.address, '{}', signed(edited, '{}'))).status, 401);
  const cancelled = await set({ event: { source: 'webhook' } });
  await ada.call('DELETE', `/v1/alarms/${cancelled.id}`);
  assert.equal((await send(cancelled.hook.address, '{}', signed(cancelled, '{}'))).status, 410);
  assert.equal(
    (await send(cancelled.hook.address, '{}', signed(paused, '{}'))).status,
    401,
    'only its sender learns that',
  );
  // Another owner: the old address is none, and the new one needs the secret.
  const moved = await set({ event: { source: 'webhook', repeat: 'always' } });
  const limits = { maxActive: 1000, maxStored: 1000, maxBytes: 1e9 };
  assert.equal((await store.moveAlarms({ from: 'ada', to: 'eve', limits, now: clock.now() })).result, 'moved');
  assert.equal((await send(moved.hook.address, '{}', signed(moved, '{}'))).status, 404);
  assert.equal((await send(`/hooks/${moved.id}.${Buffer.from('eve').toString('base64url')}`, '{}', {})).status, 401);
  assert.equal(await waiting(moved, 'eve'), 0);
  t.diagnostic('7 attacks');
});

test('no answer, event, list, log line or error shows a secret or a secret address', async (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const bench = await createHookBench(t, undefined, { log });
  const { webhook, github, path, beat } = await targets(bench);
  const { ada, send, signed } = bench;
  await send(webhook.hook.address, '{}', signed(webhook, '{}'));
  await send(webhook.hook.address, '{}', {});
  await send(path.hook.address, '{}', {});
  await send(path.hook.address, 'x'.repeat(70_000), {});
  await send(beat.hook.address, undefined, {}, 'GET');
  await send(`${beat.hook.address}/fail`, 'x', {});
  await send(`${beat.hook.address}/nothing`, 'x', {});
  await send(path.hook.address, undefined, {}, 'GET');
  await bench.clock.advance(20);
  const shown: string[] = [];
  for (const { id } of [webhook, github, path, beat]) {
    shown.push((await ada.call('GET', `/v1/alarms/${id}`)).text);
    shown.push((await ada.call('PATCH', `/v1/alarms/${id}`, { body: { label: 'x' } })).text);
    shown.push((await ada.call('GET', `/v1/alarms/${id}/fires`)).text);
  }
  shown.push((await ada.call('GET', '/v1/alarms')).text, (await ada.call('GET', `/v1/alarms?q=whsec`)).text);
  shown.push(
    (
      await ada.call('POST', '/v1/alarms/preview', {
        body: { wake_message: 'x', event: { source: 'webhook', secret: GITHUB_SECRET } },
      })
    ).text,
  );
  const secrets = [webhook.hook.secret!, github.hook.secret ?? GITHUB_SECRET];
  for (const secret of secrets)
    for (const text of [...shown, ...lines]) assert.ok(!text.includes(secret), text.slice(0, 300));
  // The owner may see a secret address; a log may not.
  const token = (alarm: Created) => alarm.hook.address.slice(-32);
  for (const line of lines) for (const alarm of [path, beat]) assert.ok(!line.includes(token(alarm)), line);
  assert.ok(lines.length > 0, 'something was logged');
  const eve = await bench.agent('eve');
  for (const { id } of [webhook, path]) assert.equal((await eve.call('GET', `/v1/alarms/${id}`)).status, 404);
  t.diagnostic(`${shown.length + lines.length} texts`);
});

test('a flood of one owner, of its waiting events, and of its failures leaves the others their part', async (t) => {
  const many = { perMinute: 1e6, inAll: 1e7 };
  const floods = {
    ...{ challenges: many, creates: many, triggers: many, events: { perMinute: 10_000, inAll: 4000 } },
    pins: { perHour: 1000, keysInAll: 1000 },
    stored: { maxActive: 1000, maxStored: 1000, maxBytes: 1_000_000, maxTriggers: 20 },
    bytesInAll: 1e9,
  };
  const bench = await createHookBench(t, floods);
  const { set, send, store, clock } = bench;
  const old = await set({ event: { source: 'webhook', verify: 'path', repeat: 'always' } }, await bench.agent('bob'));
  await clock.advance(61 * 60_000);
  const ada = await bench.agent('ada', bench.ada.key);
  const alarm = await set({ event: { source: 'webhook', verify: 'path', repeat: 'always' } }, ada);
  await ada.call('POST', `/v1/alarms/${alarm.id}/pause`);
  const large = JSON.stringify('x'.repeat(60_000));
  const count = async (address: string, body: string, times: number) => {
    const statuses: number[] = [];
    for (let n = 0; n < times; n += 20)
      statuses.push(...(await Promise.all(Array.from({ length: 20 }, async () => (await send(address, body)).status))));
    return statuses.filter((status) => status === 200).length;
  };
  // The waiting events are part of what the owner stores.
  const stored = await count(alarm.hook.address, large, 60);
  assert.ok(stored >= 10 && stored <= 17, String(stored));
  assert.equal(await bench.waiting(alarm), stored);
  const beat = await set({ expect: { every: 'PT1H' } }, ada);
  assert.ok((await count(`${beat.hook.address}/fail`, 'x', 60)) <= 21);
  assert.ok((await store.get('ada', beat.id))!.occurrences.length <= 22);
  // Alarms that are new share half of what all may send; the rest is for older ones.
  const next = await set({ expect: { every: 'PT1H' } }, await bench.agent('carol'));
  assert.ok((await count(next.hook.address, '{}', 2200)) < 2000);
  assert.equal((await send(next.hook.address, '{}')).status, 429);
  assert.equal((await send(old.hook.address, '{}')).status, 200);
  t.diagnostic('3 floods');
});
