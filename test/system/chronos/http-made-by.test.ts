/** Everything stored names the credential that made it: what a revoked one leaves, and whose feeds an agent sees. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { newHookSecret } from '../../../src/chronos/alarm/hook.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { clientProof, personKeyMark, personProof } from '../../../src/kit/identity/person-rights.ts';
import { webhookSigner } from '../../../src/kit/identity/webhook-signature.ts';
import { ADMIN, createHttpBench, refused } from './http-bench.ts';

const PATH = '/v1/alarms';
const END = '/v1/clients/end';
const CHAT = { client_id: 'https://chat.example/client.json', name: 'Chat' };
const OTHER = { client_id: 'https://other.example/client.json', name: 'Chat' };

type Bench = Awaited<ReturnType<typeof createHttpBench>>;
type Agent = Awaited<ReturnType<Bench['agent']>>;
type Author = 'client' | 'other' | 'person' | 'agent';
const AUTHORS: readonly Author[] = ['client', 'other', 'person', 'agent'];

/** A call in the name of an author. */
async function callAs(bench: Bench, agent: Agent, author: Author, method: string, path: string, body?: object) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const request = { method, path, body: text };
  const key = { secret: ADMIN, now: bench.clock.now() };
  const proof = {
    client: () => clientProof(CHAT, request, key),
    other: () => clientProof(OTHER, request, key),
    person: () => personProof('Ada', request, key),
    agent: () => undefined,
  }[author]();
  const headers = proof === undefined ? {} : { 'x-chronos-person': proof };
  return agent.call(method, path, { ...(text !== '' && { body: text }), headers });
}

const GIVEN = newHookSecret();
/** Each kind of alarm that can fire without its owner. */
const KINDS = {
  once: { kind: 'once', delay_seconds: 60 },
  cron: { kind: 'cron', cron_expr: '@hourly' },
  rrule: { kind: 'rrule', rrule: 'RRULE:FREQ=DAILY' },
  standard: { kind: 'event', event: { source: 'webhook', repeat: 'always' } },
  'standard, with a secret of the client': { kind: 'event', event: { source: 'webhook', secret: GIVEN } },
  github: { kind: 'event', event: { source: 'webhook', verify: 'github', repeat: 'always' } },
  path: { kind: 'event', event: { source: 'webhook', verify: 'path', repeat: 'always' } },
  heartbeat: { kind: 'event', expect: { every: 'P1D' } },
} as const;

/** Posts an event as the sender of an alarm, who knows its address and its secret. */
async function send(bench: Bench, { address, secret = '' }: { address: string; secret?: string | undefined }) {
  const body = '{"a":1}';
  const id = `m-${Math.random()}`;
  const signed = webhookSigner(secret === '' ? GIVEN : secret)({
    ...{ id, body, timestampSeconds: bench.clock.now() / 1000 },
  });
  const github = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return bench.call('POST', address, { body, headers: { ...signed, 'x-hub-signature-256': github } });
}

test('revoking a client pauses its alarms of every kind, ends their addresses, and touches nothing of others', async (t) => {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const made: { kind: keyof typeof KINDS; author: Author; id: string; address?: string; secret?: string }[] = [];
  for (const author of AUTHORS)
    for (const [kind, fields] of Object.entries(KINDS) as [keyof typeof KINDS, object][]) {
      const answer = await callAs(bench, agent, author, 'POST', PATH, { wake_message: 'x', ...fields });
      assert.equal(answer.status, 200, answer.text);
      const { id, hook } = answer.data;
      made.push({ kind, author, id, ...(hook && { address: hook.address, secret: hook.secret }) } as (typeof made)[0]);
    }
  const hooks = made.filter(({ address }) => address !== undefined);
  for (const hook of hooks) assert.equal((await send(bench, hook as { address: string })).status, 200, hook.kind);
  const due = await bench.store.countDue({ now: bench.clock.now() + 1, atMost: 99 });
  assert.ok(due > 0, 'events wait');

  const bob = await bench.agent('bob');
  const foreign = await callAs(bench, bob, 'client', 'POST', PATH, { wake_message: 'x', ...KINDS.cron });

  const kinds = Object.keys(KINDS).length;
  const ended = await callAs(bench, agent, 'person', 'POST', END, { client_id: CHAT.client_id });
  assert.deepEqual(ended.data, { alarms: kinds, addresses: hooks.length / AUTHORS.length });
  for (const one of made) {
    const { status } = (await agent.call('GET', `${PATH}/${one.id}`)).data;
    assert.equal(status, one.author === 'client' ? 'paused' : 'active', `${one.kind} of ${one.author}`);
    if (one.address === undefined) continue;
    const sent = await send(bench, one as { address: string });
    assert.equal(sent.status, one.author === 'client' ? 401 : 200, `${one.kind} of ${one.author}`);
  }
  assert.equal((await bob.call('GET', `${PATH}/${foreign.data.id}`)).data.status, 'active');
  // Nothing of the client is due, not even what had come before.
  const states = await bench.store.list('ada', { status: 'paused', limit: 99 });
  assert.equal(states.length, kinds);
  for (const { occurrences } of states) assert.ok(occurrences.every(({ dueAt }) => dueAt === null));
});

test('a series of the user whose message a client wrote is paused too, and a waiting trigger is dropped', async (t) => {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const { id } = (await callAs(bench, agent, 'person', 'POST', PATH, { wake_message: 'x', ...KINDS.cron })).data;
  const path = `${PATH}/${id}`;
  assert.equal((await callAs(bench, agent, 'client', 'PATCH', path, { wake_message: 'y' })).status, 200);
  assert.equal((await callAs(bench, agent, 'client', 'POST', `${path}/trigger`)).status, 200);
  const ended = await callAs(bench, agent, 'agent', 'POST', END, { client_id: CHAT.client_id });
  assert.deepEqual(ended.data, { alarms: 1, addresses: 0 });
  const [state] = await bench.store.list('ada', { status: 'paused', limit: 9 });
  assert.deepEqual(
    state!.occurrences.map(({ source, dueAt }) => [source, dueAt]),
    [['schedule', null]],
  );
  // The person may let it go on.
  assert.equal((await callAs(bench, agent, 'person', 'POST', `${path}/resume`)).data.status, 'active');
});

test('an alarm of another is paused too if the client decides when it fires, knows its secret, or set its check', async (t) => {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const edits = [
    [KINDS.once, { delay_seconds: 120 }],
    [KINDS.cron, { check: { http: { url: 'https://chat.example/' } } }],
    [KINDS.standard, { event: { source: 'webhook', verify: 'path' } }],
    [KINDS.path, { event: { source: 'webhook' } }],
    [KINDS.path, { event: { source: 'webhook', secret: GIVEN } }],
  ] as const;
  for (const author of ['person', 'agent', 'other'] as const)
    for (const [fields, patch] of edits) {
      const { id } = (await callAs(bench, agent, author, 'POST', PATH, { wake_message: 'x', ...fields })).data;
      const edited = await callAs(bench, agent, 'client', 'PATCH', `${PATH}/${id}`, patch);
      assert.equal(edited.status, 200, edited.text);
      const { hook } = edited.data;
      if (hook) assert.equal((await send(bench, hook)).status, 200);
      const ended = await callAs(bench, agent, 'person', 'POST', END, { client_id: CHAT.client_id });
      const what = `${JSON.stringify(patch)} of ${author}`;
      assert.deepEqual(ended.data, { alarms: 1, addresses: hook ? 1 : 0 }, what);
      if (hook) assert.equal((await send(bench, hook)).status, 401, what);
      await callAs(bench, agent, 'person', 'DELETE', `${PATH}/${id}`);
    }
});

test('a client ends only itself; an alarm shows the client that made it, also after an edit by another', async (t) => {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const { id } = (await callAs(bench, agent, 'client', 'POST', PATH, { wake_message: 'x', ...KINDS.cron })).data;
  refused(await callAs(bench, agent, 'other', 'POST', END, { client_id: CHAT.client_id }), 403, 'forbidden');
  const edited = await callAs(bench, agent, 'person', 'PATCH', `${PATH}/${id}`, { wake_message: 'mine now' });
  assert.deepEqual(edited.data.made_by, { client_id: CHAT.client_id });
  for (const author of ['person', 'agent'] as const) {
    const own = await callAs(bench, agent, author, 'POST', PATH, { wake_message: 'x', ...KINDS.cron });
    assert.equal((await agent.call('GET', `${PATH}/${own.data.id}`)).data.made_by, undefined);
  }
  assert.equal((await callAs(bench, agent, 'client', 'POST', END, { client_id: CHAT.client_id })).status, 200);
});

test('the agent neither sees nor revokes the feeds of a person; the person does both to all of them', async (t) => {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const FEEDS = '/v1/calendar-feeds';
  const { id } = (await callAs(bench, agent, 'person', 'POST', FEEDS, { name: 'phone' })).data;
  // A second key of the user, with which a person uses the console of a fleet.
  const second = generateKey();
  const enrolled = { body: { label: 'ada', public_key: second.publicKeyHex }, bearer: ADMIN };
  assert.equal((await bench.call('POST', '/v1/admin/agents', enrolled)).status, 200);
  const key = await bench.agent('ada', second);
  const mark = personKeyMark('ada', { owner: 'ada', publicKey: key.publicKeyHex }, ADMIN);
  const marked = { 'x-chronos-person': mark };
  const ofKey = await key.call('POST', FEEDS, { body: { name: 'tablet' }, headers: marked });
  assert.equal(ofKey.status, 200, ofKey.text);
  const seen = async (author: Author) =>
    (await callAs(bench, agent, author, 'GET', FEEDS)).data as unknown as { feeds: { id: string }[] };
  for (const author of ['agent', 'client'] as const) {
    assert.deepEqual((await seen(author)).feeds, [], author);
    refused(await callAs(bench, agent, author, 'DELETE', `${FEEDS}/${id}`), 404, 'not_found');
  }
  assert.equal((await seen('person')).feeds.length, 2);
  assert.equal((await callAs(bench, agent, 'person', 'DELETE', `${FEEDS}/${id}`)).status, 200);
  // The program that has the key without its mark sees what the key made.
  const own = (await key.call('GET', FEEDS)).data as unknown as { feeds: { name: string }[] };
  assert.deepEqual(
    own.feeds.map(({ name }) => name),
    ['tablet'],
  );

  const revoke = { label: 'ada', public_key: key.publicKeyHex };
  const revoked = await bench.call('DELETE', '/v1/admin/agents', { body: revoke, bearer: ADMIN });
  assert.equal(revoked.status, 200, revoked.text);
  assert.deepEqual((await seen('person')).feeds, [], 'a revoked key leaves no feed');
});
