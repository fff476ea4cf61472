/** What a program with an access token may set: an allow-list of fields, its own conversations, its own chains. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALARM_FIELDS_OF_AGENTS } from '../../../src/a2a/alarm-skill.ts';
import { clientProof, personProof } from '../../../src/kit/identity/person-rights.ts';
import { fieldOf, isForClients, OWNER_FIELDS, type OwnerField } from '../../../src/wire/alarm-fields.ts';
import { ADMIN, type Answer, createHttpBench, refused } from './http-bench.ts';

const PATH = '/v1/alarms';
const SERIES = { kind: 'cron', cron_expr: '@hourly', wake_message: 'x' };

/** A valid value of every field, with the rest of an alarm that may have it. */
const GIVEN: { readonly [N in OwnerField]: Record<string, unknown> } = {
  kind: {},
  label: { label: 'x' },
  wake_message: { wake_message: 'y' },
  payload: { payload: { a: 1 } },
  conversation_id: { conversation_id: 'conversation-of-the-person' },
  idempotency_key: { idempotency_key: 'k' },
  when: { kind: undefined, cron_expr: undefined, when: 'in 20 minutes' },
  delay_seconds: { kind: 'once', cron_expr: undefined, delay_seconds: 60 },
  fire_at: { kind: 'once', cron_expr: undefined, fire_at: '2999-01-01T00:00:00Z' },
  cron_expr: { cron_expr: '@daily' },
  rrule: { kind: 'rrule', cron_expr: undefined, rrule: 'RRULE:FREQ=DAILY' },
  timezone: { timezone: 'Europe/Berlin' },
  jitter_seconds: { jitter_seconds: 5 },
  ends_at: { ends_at: '2999-01-01T00:00:00Z' },
  max_fires: { max_fires: 3 },
  holidays: { holidays: 'de' },
  catch_up: { catch_up: 'all' },
  catch_up_window_seconds: { catch_up_window_seconds: 60 },
  overlap: { overlap: 'skip' },
  pause_on_failure: { pause_on_failure: true },
  check: { check: { http: { url: 'https://example.com/' } } },
  event: { kind: 'event', cron_expr: undefined, event: { source: 'webhook' } },
  after: {
    ...{ kind: 'event', cron_expr: undefined },
    after: { alarm: '01890000-0000-7000-8000-000000000000' },
  },
  expect: { kind: 'event', cron_expr: undefined, expect: { every: 'P1D' } },
  run: { run: { argv: ['id'] } },
  model: { model: 'large' },
  tools: { tools: ['mail'] },
  deliver: { deliver: ['phone'] },
  max_failures: { max_failures: 3 },
  max_lateness_seconds: { max_lateness_seconds: 60 },
  urgent: { urgent: true },
  wake_computer: { wake_computer: true },
};

async function openBench(t: Parameters<typeof createHttpBench>[0]) {
  const bench = await createHttpBench(t);
  const agent = await bench.agent('ada');
  const as =
    (proofOf: (request: { method: string; path: string; body: string }, key: object) => string) =>
    (method: string, path: string, body: object): Promise<Answer> => {
      const text = JSON.stringify(body);
      const key = { secret: ADMIN, now: bench.clock.now() };
      const proof = proofOf({ method, path, body: text }, key);
      return agent.call(method, path, { body: text, headers: { 'x-chronos-person': proof } });
    };
  const client = (client_id: string, more: object = {}) =>
    as((request, key) => clientProof({ client_id, ...more }, request, key as { secret: string; now: number }));
  const person = as((request, key) => personProof('Ada', request, key as { secret: string; now: number }));
  return { bench, agent, client, chat: client('chat'), person };
}

test('every field of an alarm has a decision for clients, and other agents may set no other', () => {
  for (const name of OWNER_FIELDS)
    assert.ok(fieldOf(name).clients !== undefined, `${name} needs clients: 'set' or 'never' in wire/alarm-fields.ts`);
  for (const name of ALARM_FIELDS_OF_AGENTS) assert.ok(isForClients(name), name);
});

test('a client sets exactly the fields of the allow-list; an edit cannot add the others', async (t) => {
  const { bench, chat } = await openBench(t);
  const soon = new Date(bench.clock.now() + 60_000).toISOString();
  for (const name of OWNER_FIELDS) {
    const given = { ...GIVEN[name], ...(name === 'fire_at' && { fire_at: soon }) };
    const answer = await chat('POST', PATH, { ...SERIES, ...given });
    // Limited to what the client made itself, below.
    const isOwnOnly = name === 'conversation_id' || name === 'after';
    if (isForClients(name) && !isOwnOnly && name !== 'holidays') assert.equal(answer.status, 200, answer.text);
    else if (name !== 'holidays') refused(answer, 403, 'forbidden');
    if (isForClients(name)) continue;
    const { id } = (await chat('POST', PATH, SERIES)).data;
    refused(await chat('PATCH', `${PATH}/${id}`, GIVEN[name]), 403, 'forbidden');
    const absent = fieldOf(name).absent;
    if (absent !== null) assert.equal((await chat('POST', PATH, { ...SERIES, [name]: absent })).status, 200);
  }
  const members = [
    { check: { path: { path: 'x' } } },
    { check: { command: { argv: ['id'] } } },
    ...['file', 'process', 'mcp'].map((source) => ({
      ...{ kind: 'event', cron_expr: undefined },
      event: { source, ...{ file: { path: 'x' }, process: { pid: 4711 }, mcp: { server: 's', name: 'n' } }[source] },
    })),
  ];
  for (const fields of members) refused(await chat('POST', PATH, { ...SERIES, ...fields }), 403, 'forbidden');
});

test('a client names only conversations that its own alarms were in, and follows only its own alarms', async (t) => {
  const { bench, agent, client, chat, person } = await openBench(t);
  const foreign = (await person('POST', PATH, { ...SERIES, conversation_id: 'secret' })).data;
  const naming = (conversation_id: string) => ({ ...SERIES, conversation_id });
  const why = /a conversation that no alarm of its own was in/;
  refused(await chat('POST', PATH, naming('secret')), 403, 'forbidden', why);
  const { id } = (await chat('POST', PATH, SERIES)).data;
  const path = `${PATH}/${id}`;
  refused(await chat('PATCH', path, { conversation_id: 'secret' }), 403, 'forbidden', why);

  // Its alarm had a turn in a conversation that the agent began for it.
  const trigger = await chat('POST', `${path}/trigger`, {});
  assert.equal(trigger.status, 200, trigger.text);
  const request = { now: bench.clock.now(), limit: 9, perOwner: 9, inFlight: new Map() };
  const [claim] = await bench.store.claim(request);
  const turn = { outcome: null, error: null, turnId: 't', retryAt: null, reply: null, usage: null };
  const reports = [{ ...turn, stage: 'turn_started' as const, at: bench.clock.now(), conversationId: 'its-own' }];
  const { fireId, scheduledFor: dueAt } = claim!.occurrence;
  const fire = { owner: 'ada', alarmId: id, fireId, dueAt, reports, recordedAt: bench.clock.now() };
  assert.ok(await bench.store.recordTurnReports(fire));
  const named = await chat('POST', PATH, naming('its-own'));
  assert.equal(named.status, 200, named.text);
  refused(await client('other')('POST', PATH, naming('its-own')), 403, 'forbidden', why);
  assert.equal((await agent.call('POST', PATH, { body: naming('secret') })).status, 200, 'the agent itself may');
  const granted = client('a2a', { ownsConversation: true });
  assert.equal((await granted('POST', PATH, naming('a2a-1'))).status, 200, 'the router answers for it');

  const following = (alarm: string) => ({ kind: 'event', wake_message: 'x', after: { alarm } });
  refused(await chat('POST', PATH, following(foreign.id)), 403, 'forbidden', /follow an alarm that it did not make/);
  assert.equal((await chat('POST', PATH, following(id))).status, 200);
});

test('a client cannot put its text where it could set no alarm of its own', async (t) => {
  const { chat, person } = await openBench(t);
  const why = /change what the agent reads of an alarm of others/;
  const ofOthers: Record<string, object> = {
    conversation: { conversation_id: 'secret' },
    ...{ urgent: GIVEN.urgent, deliver: GIVEN.deliver, model: GIVEN.model, tools: GIVEN.tools },
  };
  for (const [name, fields] of Object.entries(ofOthers)) {
    const { id } = (await person('POST', PATH, { ...SERIES, ...fields })).data;
    const texts = [{ wake_message: 'mine' }, { payload: { a: 1 } }, { label: 'mine' }, GIVEN.check];
    for (const text of texts) refused(await chat('PATCH', `${PATH}/${id}`, text), 403, 'forbidden', why);
    const hook = (await person('POST', PATH, { wake_message: 'x', event: { source: 'webhook' }, ...fields })).data;
    // It would get the address, and so post its own events.
    const address = { event: { source: 'webhook', verify: 'path' } };
    refused(await chat('PATCH', `${PATH}/${hook.id}`, address), 403, 'forbidden', why);
    assert.equal((await chat('PATCH', `${PATH}/${id}`, { cron_expr: '@daily' })).status, 200, `${name}: another time`);
  }
  const { id } = (await person('POST', PATH, SERIES)).data;
  assert.equal((await chat('PATCH', `${PATH}/${id}`, { wake_message: 'mine' })).status, 200);
});
