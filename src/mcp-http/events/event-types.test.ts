import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawJson } from '../../wire/json.ts';
import { completeWake, type WakeRequest } from '../../wire/wake.ts';
import {
  catalogueOf,
  dataFor,
  dueEvent,
  EVENT_TYPES,
  ofChronosEvent,
  ofIntentEvent,
  parseArguments,
  selects,
} from './event-types.ts';

const wake = (fireId: string, more: Partial<WakeRequest> = {}) =>
  completeWake({ user_id: 'ada', message: 'go', ...more } as WakeRequest, fireId, 1000);

test('a due alarm has the same id for each attempt, and its payload keeps its digits', () => {
  const payload = new RawJson('{"big":12345678901234567890,"one":1.0}');
  const one = dueEvent(wake('a@1', { attempt: 1, payload }));
  assert.equal(one.eventId, 'a@1:due');
  assert.match(one.data, /"payload":\{"big":12345678901234567890,"one":1\.0\}/);
  assert.equal(dueEvent(wake('a@1', { attempt: 2 })).eventId, one.eventId);
  assert.equal(dueEvent(wake('a.b')).eventId, 'a%2Eb:due', 'no dot, which separates the parts of a signature');
});

test('a due alarm names the author of each of its texts', () => {
  const by = { set_by: { kind: 'person', name: 'Ada' }, text_by: { payload: { kind: 'agent' } } } as const;
  const { set_by, text_by } = JSON.parse(dueEvent(wake('a@1', by)).data) as typeof by;
  assert.deepEqual({ set_by, text_by }, by);
});

test('an event has at most 240 KiB of data', () => {
  for (const message of [
    'x'.repeat(256 * 1024),
    '\u0001'.repeat(200_000),
    '\u{1F514}'.repeat(65_000),
    '語'.repeat(87_000),
  ]) {
    const payload = new RawJson(JSON.stringify('y'.repeat(60_000)));
    const { data } = dueEvent(wake('a', { message, payload }));
    assert.ok(Buffer.byteLength(data) <= 240 * 1024, `${Buffer.byteLength(data)}`);
    assert.ok((JSON.parse(data) as { omitted: string[] }).omitted.includes('payload'));
  }
});

test('the ends of fires and turns become events; a turn that is tried again does not', () => {
  const at = '2026-11-28T00:00:00.000Z';
  const about = { at, alarm_id: 'a', fire_id: 'a@1' };
  const facts = { label: 'l', made_by: { client_id: 'c' } };
  const finished = ofChronosEvent({ ...about, type: 'turn.finished', outcome: 'ok', reply: 'done' }, facts)!;
  assert.deepEqual([finished.name, finished.eventId], ['turn.finished', 'a@1:finished']);
  assert.deepEqual(finished.facts, { alarm_id: 'a', label: 'l', client_id: 'c' });
  assert.equal(ofChronosEvent({ ...about, type: 'fire.missed' }, {})!.name, 'alarm.missed');
  assert.equal(ofChronosEvent({ ...about, type: 'turn.failed', error: 'x' }, {})!.eventId, 'a@1:failed');
  assert.equal(ofChronosEvent({ ...about, type: 'turn.failed', error: 'x', retry_at: at }, {}), undefined);
  assert.equal(ofChronosEvent({ at, type: 'reset' }, {}), undefined);
  assert.equal(ofIntentEvent({ type: 'step.started', at }), undefined);
});

test('arguments select, and unknown ones are refused', () => {
  const type = EVENT_TYPES.get('alarm.due')!;
  assert.throws(() => parseArguments(type, { other: 1 }), /other/);
  const facts = { alarm_id: 'a', label: 'l', client_id: 'c' };
  for (const given of [{}, { alarm_id: 'a' }, { label: 'l' }, { own: true }, { own: false, label: 'l' }])
    assert.ok(selects(given, facts, 'c'), JSON.stringify(given));
  assert.ok(!selects({ own: true }, facts, 'd'));
  assert.ok(!selects({ alarm_id: 'a', label: 'm' }, facts, 'c'));
});

test('each endpoint lists its own types, with their schemas', () => {
  const names = (endpoint: 'chronos' | 'intents' | 'chronometric') =>
    (catalogueOf(endpoint) as { name: string; inputSchema: object; payloadSchema: object }[]).map((one) => {
      assert.ok('properties' in one.inputSchema && 'properties' in one.payloadSchema);
      return one.name;
    });
  assert.deepEqual(names('chronos'), ['alarm.due', 'alarm.missed', 'turn.finished', 'turn.failed']);
  assert.deepEqual(names('intents'), ['intent.waiting']);
  assert.deepEqual(names('chronometric'), []);
});

test('answers and conversations are for the client that made the alarm, and for those with the scope', () => {
  const data = '{"alarm_id":"a1","turn_id":"t1","conversation_id":"c1","outcome":"ok","reply":"the secret"}';
  const payload = '{"alarm_id":"a1","conversation_id":"c1","payload":{"n":12345678901234567890,"reply":1.0}}';
  const event = (client_id: string | undefined, text: string) => ({ data: text, facts: { client_id } });
  const reader = { clientId: 'chat', scopes: ['alarms:read'] as const };
  assert.equal(dataFor(event('chat', data), reader), data);
  const granted = { ...reader, scopes: ['alarms:read', 'conversations:read'] as const };
  for (const maker of ['other', undefined]) {
    assert.equal(dataFor(event(maker, data), granted), data);
    assert.equal(dataFor(event(maker, data), reader), '{"alarm_id":"a1","outcome":"ok"}');
    const kept = '{"alarm_id":"a1","payload":{"n":12345678901234567890,"reply":1.0}}';
    assert.equal(dataFor(event(maker, payload), reader), kept, 'numbers keep their digits');
  }
});
