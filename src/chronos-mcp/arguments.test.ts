import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RAW_ALARM_FIELDS } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import { RawJson } from '../wire/json.ts';
import { alarmCancelArguments, alarmListArguments, alarmSetArguments, readArguments } from './proxy.ts';
import { readChronosTools, TOOLS_FILE } from './tools.ts';

const tools = readChronosTools(TOOLS_FILE);
const readSet = (source: string) => readArguments(tools.get('alarm_set')!, alarmSetArguments, RAW_ALARM_FIELDS, source);
const readList = (source: string) => readArguments(tools.get('alarm_list')!, () => alarmListArguments, [], source);

function refused(read: () => unknown, ...parts: string[]): void {
  assert.throws(read, (thrown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.equal(thrown.code, 'invalid_request');
    for (const part of parts) assert.ok(thrown.message.includes(part), `${thrown.message} lacks ${part}`);
    return true;
  });
}

test('the payload is returned as the same text, with any content', () => {
  for (const payload of [
    '{ "n" : 12345678901234567890 }',
    '1e400',
    '"12345678901234567890"',
    'null',
    '[1.0, -0, {"1":1,"0":2}]',
  ]) {
    const { payload: kept } = readSet(`{"kind":"once","payload": ${payload} ,"wake_message":"x"}`);
    assert.ok(kept instanceof RawJson);
    assert.equal(kept.text, payload);
  }
});

test('numbers that a model wrote as strings are read where the schema says number', () => {
  const fields = readSet(
    '{"kind":"once","wake_message":"600","delay_seconds":"600","max_failures":"5","jitter_seconds":"0.5"}',
  );
  assert.deepEqual(fields, {
    kind: 'once',
    wake_message: '600',
    delay_seconds: 600,
    max_failures: 5,
    jitter_seconds: 0.5,
  });
  assert.deepEqual(readList('{"limit":"7"}'), { limit: 7 });
});

test('booleans that a model wrote as strings are read where the schema says boolean', async () => {
  const { z } = await import('zod');
  const tool = structuredClone(tools.get('alarm_list')!);
  tool.inputSchema.properties = { deep: { type: 'boolean' } };
  const read = (source: string) => readArguments(tool, () => z.strictObject({ deep: z.boolean() }), [], source);
  assert.deepEqual(read('{"deep":"true"}'), { deep: true });
  assert.deepEqual(read('{"deep":"false"}'), { deep: false });
  refused(() => read('{"deep":"yes"}'), 'deep must be true or false (got "yes")');
});

test('strings that are no number literal are refused with their text', () => {
  refused(
    () => readSet('{"kind":"once","wake_message":"x","delay_seconds":"ten"}'),
    'delay_seconds must be a number (got "ten")',
  );
  refused(() => readSet('{"kind":"once","wake_message":"x","delay_seconds":" 600"}'), 'delay_seconds must be a number');
  refused(() => readList('{"limit":""}'), 'limit must be a');
  refused(() => readList('{"limit":"1.5"}'), 'limit');
});

test('a number that would be rounded is refused outside the payload, as a number and as a string', () => {
  for (const literal of ['12345678901234567890', '1.00000000000000000001', '1e400']) {
    refused(
      () => readSet(`{"kind":"once","wake_message":"x","delay_seconds":${literal}}`),
      'delay_seconds',
      literal,
      '15 digits',
    );
    refused(() => readSet(`{"kind":"once","wake_message":"x","delay_seconds":"${literal}"}`), 'delay_seconds', literal);
  }
  refused(
    () => readSet('{"kind":"once","wake_message":"x","label":12345678901234567890}'),
    'label',
    '12345678901234567890',
  );
});

test('the last of several equal fields applies, also for its digits', () => {
  const fields = readSet('{"kind":"once","wake_message":"x","delay_seconds":12345678901234567890,"delay_seconds":60}');
  assert.equal(fields.delay_seconds, 60);
});

test('wrong, missing and unknown fields are refused by name', () => {
  refused(() => readSet('{}'), 'wake_message is required');
  refused(
    () => readSet('{"kind":"weekly","wake_message":"x"}'),
    'kind must be one of once, cron, rrule, event (got "weekly")',
  );
  refused(
    () => readSet('{"kind":"once","wake_message":"x","delay_seconds":-5}'),
    'delay_seconds must be at least 1 (got -5)',
  );
  refused(() => readSet('{"kind":"once","wake_message":"x","snooze":1}'), 'unknown field "snooze"', 'delay_seconds');
  refused(() => readSet('{"kind":"once","wake_message":"x","label":7}'), 'label must be a string (got 7)');
  refused(() => readSet('{"kind":"once","wake_message":"\\ud800"}'), 'wake_message');
  refused(
    () => readArguments(tools.get('alarm_cancel')!, () => alarmCancelArguments, [], '{"alarm_id":"1"}'),
    'alarm_id',
    'UUID',
  );
});

test('an alarm_id makes the fields an edit, in which null clears a field', () => {
  const id = '01a206a3-09b9-75e1-9cfa-bb6341bc3a57';
  const edit = (fields: string) => readSet(`{"alarm_id":"${id}",${fields}}`);
  assert.deepEqual(edit('"label":null,"max_fires":"3"'), { alarm_id: id, label: null, max_fires: 3 });
  assert.deepEqual(edit('"action":"pause"'), { alarm_id: id, action: 'pause' });
  refused(() => edit('"action":"snooze"'), 'action must be one of pause, resume, trigger (got "snooze")');
  refused(() => edit('"kind":"once"'), 'kind cannot be changed; omit it, or set a new alarm');
  refused(() => edit('"wake_message":null'), 'wake_message must be a string (got null)');
  refused(() => readSet('{"alarm_id":"1","label":"x"}'), 'alarm_id', 'UUID');
  refused(() => readSet('{"action":"pause"}'), 'action needs alarm_id');
});

test('null is an omitted field of a new alarm', () => {
  const fields = readSet('{"alarm_id":null,"action":null,"wake_message":"x","when":"in 5 minutes","fire_at":null}');
  assert.deepEqual(fields, { wake_message: 'x', when: 'in 5 minutes' });
  refused(() => readSet('{"wake_message":null}'), 'wake_message is required');
});

test('lists that a model wrote as strings are read', () => {
  assert.deepEqual(readSet('{"wake_message":"x","when":"[1]","tools":"[\\"fetch\\"]"}'), {
    wake_message: 'x',
    when: '[1]',
    tools: ['fetch'],
  });
  refused(() => readSet('{"wake_message":"x","tools":"fetch"}'), 'tools must be a list (got "fetch")');
});

test("names of JavaScript's own object members are fields like any other", () => {
  refused(() => readSet('{"kind":"once","wake_message":"x","__proto__":{"delay_seconds":1}}'), '__proto__');
  refused(() => readSet('{"kind":"once","wake_message":"x","constructor":1}'), 'constructor');
  refused(() => readList('{"toString":1}'), 'toString');
});

test('arguments that are no object are refused', () => {
  for (const source of ['null', '[]', '"{}"', '5'])
    refused(() => readList(source), 'arguments must be a JSON object', source);
});
