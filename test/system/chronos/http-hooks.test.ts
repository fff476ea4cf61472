import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { startBench } from '../../../src/router/testing/bench.ts';
import { HOOK_SCHEMES } from '../../../src/wire/conditions.ts';
import { answerOf, type Created, createHookBench } from './hook-bench.ts';

test('a signed webhook is recorded once, over the public listener', async (t) => {
  const { set, send, signed, waiting, ada, store, due } = await createHookBench(t);
  const alarm = await set({ event: { source: 'webhook', repeat: 'always' } });
  assert.match(alarm.hook.secret!, /^whsec_/);
  assert.equal(alarm.hook.verify, 'standard');
  const body = '{"id":12345678901234567890}';
  assert.deepEqual(await answerOf(await send(alarm.hook.address, body, signed(alarm, body))), [
    200,
    { recorded: 1, known: 0 },
  ]);
  assert.deepEqual(await answerOf(await send(alarm.hook.address, body, signed(alarm, body))), [
    200,
    { recorded: 0, known: 1 },
  ]);
  assert.equal(await waiting(alarm), 1);
  assert.ok(due.length > 0);
  const [event] = await store.eventsOf('ada', alarm.id, { from: 1, to: 1, maxBytes: 1e6 });
  assert.equal(event!.data, body);
  const { data } = await ada.call('GET', `/v1/alarms/${alarm.id}`);
  assert.deepEqual((data as Created).hook, { address: alarm.hook.address, verify: 'standard' }, 'without the secret');
});

test('wrong, old and missing signatures are 401, and nothing is stored', async (t) => {
  const { set, send, signed, waiting, clock } = await createHookBench(t);
  const alarm = await set({ event: { source: 'webhook' } });
  const other = await set({ event: { source: 'webhook' } });
  const { address } = alarm.hook;
  const old = signed(alarm, '{}');
  const attempts: [string, Record<string, string>][] = [
    ['{}', {}],
    ['{}', signed(other, '{}')],
    ['{"changed":true}', signed(alarm, '{}')],
    ['{}', { ...signed(alarm, '{}'), 'webhook-id': 'other' }],
    ['{}', { authorization: `Bearer ${alarm.hook.secret}` }],
  ];
  for (const [body, headers] of attempts) assert.equal((await send(address, body, headers)).status, 401);
  await clock.advance(6 * 60_000);
  assert.equal((await send(address, '{}', old)).status, 401);
  assert.equal(await waiting(alarm), 0);
});

test("GitHub's signature, form bodies, and redeliveries", async (t) => {
  const { set, send, waiting, store } = await createHookBench(t);
  const secret = 'a-secret-of-the-repository';
  const filter = { pointer: '/event', equals: 'push' };
  const alarm = await set({ event: { source: 'webhook', verify: 'github', secret, filter, repeat: 'always' } });
  assert.equal(alarm.hook.secret, undefined, 'the sender has it already');
  const post = (body: string, { event = 'push', key = secret, delivery = 'd1' } = {}) =>
    send(alarm.hook.address, body, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(body).digest('hex')}`,
      'x-github-event': event,
      'x-github-delivery': delivery,
      origin: 'https://github.example',
    });
  assert.deepEqual(await answerOf(await post('{"ref":"main"}')), [200, { recorded: 1, known: 0 }]);
  assert.deepEqual(await answerOf(await post('{"ref":"main"}', { delivery: 'd2' })), [200, { recorded: 0, known: 1 }]);
  assert.deepEqual(await answerOf(await post('{"x":1}', { event: 'ping' })), [200, { recorded: 0, known: 0 }]);
  assert.equal((await post('{"ref":"x"}', { key: 'another-secret-of-theirs' })).status, 401);
  assert.equal(await waiting(alarm), 1);
  const [event] = await store.eventsOf('ada', alarm.id, { from: 1, to: 1, maxBytes: 1e6 });
  assert.equal(event!.data, '{"event":"push","delivery":"d1","body":{"ref":"main"}}');
});

test('an edit shows the secret that it makes, once', async (t) => {
  const { set, send, signed, ada } = await createHookBench(t);
  const edit = async ({ id }: Created, body: object) => {
    const { data, status, text } = await ada.call('PATCH', `/v1/alarms/${id}`, { body });
    assert.equal(status, 200, text);
    return data as Created;
  };
  const event = { source: 'webhook', repeat: 'always' };
  const given = { ...event, secret: 'a-secret-of-the-sender' };
  for (const earlier of [{ event: { ...event, verify: 'path' } }, { expect: { every: 'PT1H' } }, { event: given }]) {
    const alarm = await set(earlier);
    assert.equal(alarm.hook.secret, undefined);
    const edited = await edit(alarm, { event });
    assert.match(edited.hook.secret!, /^whsec_/);
    assert.equal((await send(edited.hook.address, '{}', signed(edited, '{}'))).status, 200);
    const again = await edit(alarm, { event: { ...event, verify: 'github' } });
    assert.match(again.hook.secret!, /^whsec_/);
    assert.notEqual(again.hook.secret, edited.hook.secret);
    assert.equal((await edit(alarm, { label: 'x' })).hook.secret, undefined);
    assert.equal((await edit(alarm, { event: given })).hook.secret, undefined);
  }
});

test('no edit of the scheme shows, or makes valid again, a secret or an address of before', async (t) => {
  const { set, send, signed, ada } = await createHookBench(t);
  const schemes = [
    ...HOOK_SCHEMES.map((verify) => ({ source: 'webhook', repeat: 'always', verify })),
    { source: 'webhook', repeat: 'always', secret: 'a-secret-of-the-sender' },
  ];
  const at = (n: number, digit: number) => schemes[Math.floor(n / schemes.length ** digit) % schemes.length]!;
  let shown = 0;
  for (let n = 0; n < schemes.length ** 3; n++) {
    const alarm = await set({ event: at(n, 0) });
    const secrets = new Set([alarm.hook.secret]);
    const addresses = new Set(alarm.hook.verify === 'path' ? [alarm.hook.address] : []);
    let [hook, scheme] = [alarm.hook, at(n, 0)];
    for (const event of [at(n, 1), at(n, 2)]) {
      const { data } = await ada.call('PATCH', `/v1/alarms/${alarm.id}`, { body: { event } });
      const edited = (data as Created).hook;
      if (event === scheme) assert.deepEqual([edited.secret, edited.address], [undefined, hook.address]);
      else if (edited.secret !== undefined) {
        assert.ok(!secrets.has(edited.secret));
        secrets.add(edited.secret);
        shown++;
      } else if (edited.verify === 'path') {
        assert.ok(!addresses.has(edited.address));
        addresses.add(edited.address);
        shown++;
      }
      [hook, scheme] = [event === scheme ? hook : edited, event];
    }
    // Only what the last change has made proves a sender.
    const now = addresses.size > 0 && hook.verify === 'path' ? hook.address : undefined;
    for (const address of addresses) if (address !== now) assert.notEqual((await send(address, '{}')).status, 200);
    if (hook.verify !== 'standard') continue;
    for (const secret of secrets) {
      if (secret === undefined || secret === hook.secret) continue;
      const old = { ...alarm, hook: { ...hook, secret } } as Created;
      assert.equal((await send(hook.address, '{}', signed(old, '{}'))).status, 401);
    }
  }
  t.diagnostic(`${shown} secrets`);
});

test('an address of an unknown, ended or other alarm takes nothing', async (t) => {
  const { set, send, signed, ada } = await createHookBench(t);
  const alarm = await set({ event: { source: 'webhook' } });
  const timed = await set({ kind: 'once', delay_seconds: 60 });
  const tail = alarm.hook.address.slice(alarm.hook.address.indexOf('.'));
  for (const address of [
    '/hooks/x',
    `/hooks/${timed.id}${tail}`,
    `/hooks/${alarm.id}.Ym9i`,
    `${alarm.hook.address}/x/y`,
  ])
    assert.equal((await send(address, '{}', signed(alarm, '{}'))).status, 404, address);
  assert.equal((await send(alarm.hook.address, undefined, signed(alarm, ''), 'GET')).status, 404);
  await ada.call('DELETE', `/v1/alarms/${alarm.id}`);
  assert.equal((await send(alarm.hook.address, '{}', signed(alarm, '{}'))).status, 410);
});

test('events of more than 64 KiB, and bodies of 10 MB, are 413', async (t) => {
  const { set, send, signed, waiting } = await createHookBench(t);
  const alarm = await set({ event: { source: 'webhook' } });
  for (const bytes of [64 * 1024 + 1, 10_000_000]) {
    const body = JSON.stringify('x'.repeat(bytes));
    assert.equal((await send(alarm.hook.address, body, signed(alarm, body))).status, 413);
  }
  assert.equal(await waiting(alarm), 0);
});

test('a heartbeat moves the deadline, and a failure fires at once', async (t) => {
  const { set, send, clock, store, ada } = await createHookBench(t);
  const alarm = await set({ expect: { every: 'PT1H', grace: 'PT5M' } });
  const deadline = async () => {
    const state = await store.get('ada', alarm.id);
    return state!.occurrences.find(({ source }) => source === 'schedule')!.dueAt! - clock.now();
  };
  assert.equal(await deadline(), 65 * 60_000);
  for (const [path, method] of [
    ['', 'GET'],
    ['', 'POST'],
    ['/0', 'GET'],
  ] as const) {
    await clock.advance(60_000);
    assert.equal(await deadline(), 64 * 60_000);
    assert.equal((await send(`${alarm.hook.address}${path}`, undefined, {}, method)).status, 200, path);
    assert.equal(await deadline(), 65 * 60_000, path);
  }
  for (const path of ['/start', '/log']) assert.equal((await send(`${alarm.hook.address}${path}`, 'x')).status, 200);
  const triggers = async () =>
    (await store.get('ada', alarm.id))!.occurrences.filter(({ source }) => source === 'trigger');
  assert.equal((await triggers()).length, 0);
  assert.equal((await send(`${alarm.hook.address}/fail`, 'the disk is full')).status, 200);
  await clock.advance(10);
  assert.equal((await send(`${alarm.hook.address}/3`, undefined, {}, 'GET')).status, 200);
  assert.equal((await triggers()).length, 2);
  assert.equal((await send(`${alarm.hook.address}/unknown`, '')).status, 404);
  const guess = alarm.hook.address.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  assert.equal((await send(guess, undefined, {}, 'GET')).status, 401);
  assert.ok((await ada.call('GET', `/v1/alarms/${alarm.id}`)).data);
});

test('100,000 events of one owner are 429 with Retry-After, and other owners are not affected', async (t) => {
  const many = { perMinute: 1e6, inAll: 1e7 };
  const floods = {
    ...{ challenges: many, creates: many, triggers: many, events: { perMinute: 50, inAll: 1000 } },
    pins: { perHour: 1000, keysInAll: 1000 },
    stored: { maxActive: 1000, maxStored: 1000, maxBytes: 1e9, maxTriggers: 1000 },
    bytesInAll: 1e9,
  };
  const bench = await createHookBench(t, floods);
  const { set, send, signed } = bench;
  const bob = await bench.agent('bob');
  const [ofAda, ofBob] = [
    await set({ event: { source: 'webhook', repeat: 'always' } }),
    await set({ event: { source: 'webhook', repeat: 'always' } }, bob),
  ];
  const statuses: number[] = [];
  for (let n = 0; n < 80; n++) {
    const response = await send(ofAda.hook.address, '{}', signed(ofAda, '{}', `msg_${n}`));
    statuses.push(response.status);
    if (response.status === 429) assert.match(response.headers.get('retry-after')!, /^\d+$/);
  }
  assert.equal(statuses.filter((status) => status === 200).length, 50);
  assert.equal(statuses.filter((status) => status === 429).length, 30);
  assert.equal((await send(ofBob.hook.address, '{}', signed(ofBob, '{}'))).status, 200);
});

test('without chronosd the sender is to try again', async (t) => {
  const { set, send, signed, router } = await createHookBench(t);
  const alarm = await set({ event: { source: 'webhook' } });
  assert.ok(router);
  const lonely = await startBench(t);
  const response = await fetch(`http://127.0.0.1:${lonely.public.port}${alarm.hook.address}`, {
    ...{ method: 'POST', body: '{}', headers: signed(alarm, '{}') },
  });
  assert.equal(response.status, 503);
  assert.ok(response.headers.get('retry-after'));
  assert.equal((await send(alarm.hook.address, '{}', signed(alarm, '{}'))).status, 200);
});
