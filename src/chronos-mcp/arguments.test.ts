import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../wire/errors.ts';
import type { RawJson } from '../wire/json.ts';
import { readSet as readCall, readCancel, readList } from './arguments.ts';
import { readChronosTools, TOOLS_FILE } from './tools.ts';

const inSchema = new Set(Object.keys(readChronosTools(TOOLS_FILE).get('alarm_set')!.inputSchema.properties));
const readSet = (source: string) => {
  const call = readCall(source, inSchema);
  return call.asks === 'help' ? { help: call.topic } : call.fields;
};
/** A call for an existing alarm. */
const ID = '01a206a3-09b9-75e1-9cfa-bb6341bc3a57';
const readEdit = (fields: string) => {
  const call = readCall(`{"alarm_id":"${ID}",${fields}}`, inSchema);
  assert.equal(call.asks, 'change');
  const { asks: _, empty, ...changes } = call as Extract<typeof call, { asks: 'change' }>;
  return { ...changes, ...(empty.length > 0 && { empty }) };
};

function refused(read: () => unknown, ...parts: string[]): void {
  assert.throws(read, (thrown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.equal(thrown.code, 'invalid_request');
    for (const part of parts) assert.ok(thrown.message.includes(part), `${thrown.message} lacks ${part}`);
    return true;
  });
}

test('a payload keeps its text, and a text that is JSON is taken as JSON', () => {
  const cases: [payload: string, kept: string | undefined][] = [
    ['{ "n" : 12345678901234567890 }', '{ "n" : 12345678901234567890 }'],
    ['1e400', '1e400'],
    ['[1.0, -0, {"1":1,"0":2}]', '[1.0, -0, {"1":1,"0":2}]'],
    ['{"a":null,"b":""}', '{"a":null,"b":""}'],
    ['"{\\"n\\": 12345678901234567890}"', '{"n": 12345678901234567890}'],
    ['"12345678901234567890"', '12345678901234567890'],
    ['"\\"a text\\""', '"a text"'],
    ['"no JSON: {"', '"no JSON: {"'],
    ['null', undefined],
    ['""', undefined],
  ];
  for (const [payload, expected] of cases)
    for (const source of [`{"payload": ${payload} }`, `{"more":{"payload": ${payload} }}`]) {
      const { payload: kept } = readSet(source.replace('{', '{"when":"tomorrow 9am","wake_message":"x",')) as {
        payload?: RawJson;
      };
      assert.equal(kept?.text, expected, source);
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

test('booleans that a model wrote as strings are read where the field is a boolean', () => {
  assert.deepEqual(readList('{"full":"true"}'), { full: true });
  assert.deepEqual(readList('{"full":"false"}'), { full: false });
  refused(() => readList('{"full":"yes"}'), 'full must be true or false (got "yes")');
});

test('strings that are no number literal are refused with their text', () => {
  refused(
    () => readSet('{"kind":"once","wake_message":"x","delay_seconds":"ten"}'),
    'delay_seconds must be a number (got "ten")',
  );
  refused(() => readSet('{"kind":"once","wake_message":"x","delay_seconds":" 600"}'), 'delay_seconds must be a number');
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
  refused(
    () => readCancel('{"alarm_id":"1"}'),
    'alarm_id must be the id of an alarm, or six or more of its first characters',
  );
  refused(() => readSet('{"alarm":"01a206a3","label":"x"}'), 'unknown field "alarm"', 'alarm_id, action, clear');
  refused(() => readCancel('{"alarm_id":null}'), 'alarm_id is required');
  refused(() => readSet('{"kind":"once","wake_message":"x","label":7}'), 'label must be a string (got 7)');
  refused(() => readSet('{"kind":"once","wake_message":"\\ud800"}'), 'wake_message');
});

test('an alarm_id makes the fields an edit; clear empties fields, and null what is not in the schema', () => {
  assert.deepEqual(readEdit('"label":"a","max_fires":"3"'), { id: ID, fields: { label: 'a', max_fires: 3 } });
  assert.deepEqual(readEdit('"action":"pause"'), { id: ID, action: 'pause', fields: {} });
  assert.deepEqual(readEdit('"clear":["label","max_fires"]'), { id: ID, fields: { label: null, max_fires: null } });
  assert.deepEqual(readEdit('"clear":"[\\"label\\"]","when":"tomorrow"'), {
    id: ID,
    fields: { label: null, when: 'tomorrow' },
  });
  // Strict clients send every field of the schema.
  const all = [...inSchema].filter((name) => !['alarm_id', 'label'].includes(name)).map((name) => `"${name}":null`);
  assert.deepEqual(readEdit(`${all},"label":"b"`), { id: ID, fields: { label: 'b' } });
  assert.deepEqual(readEdit('"label":"a","max_fires":null,"more":{"check":null}'), {
    id: ID,
    fields: { label: 'a', max_fires: null, check: null },
  });
  assert.deepEqual(readEdit('"label":"a","timezone":null,"payload":""'), {
    ...{ id: ID, fields: { label: 'a' } },
    empty: ['timezone', 'payload'],
  });
  refused(() => readEdit('"label":null'), 'changes nothing: label has no value; to empty a field, name it in clear');
  refused(() => readEdit('"label":"a","clear":["label"]'), 'label is given and in clear');
  refused(() => readEdit('"clear":["kind"]'), 'clear');
  refused(() => readEdit('"action":"snooze"'), 'action must be one of pause, resume, trigger (got "snooze")');
  refused(() => readEdit('"kind":"once"'), 'kind cannot be changed; omit it, or set a new alarm');
  refused(
    () => readSet('{"alarm_id":"1","label":"x"}'),
    'alarm_id must be the id of an alarm, or six or more of its first characters',
  );
  refused(() => readSet('{"action":"pause"}'), 'action needs alarm_id');
  refused(() => readSet('{"clear":["label"]}'), 'clear needs alarm_id');
});

test('null and the empty text are fields of a new alarm that are not given, at every depth', () => {
  for (const missing of ['null', '""']) {
    const all = [...inSchema].filter((name) => !['wake_message', 'when'].includes(name));
    const sent = [...all, 'check', 'event', 'model', 'tools', 'max_fires', 'dry_run'].map(
      (name) => `"${name}":${missing}`,
    );
    const fields = readSet(`{"wake_message":"x","when":"in 5 minutes",${sent}}`);
    assert.deepEqual(fields, { wake_message: 'x', when: 'in 5 minutes' });
    refused(() => readSet(`{"wake_message":${missing}}`), 'wake_message is required');
    assert.deepEqual(readList(`{"alarm_id":${missing},"status":${missing},"limit":${missing},"full":${missing}}`), {});
    const event = `{"source":"webhook","verify":${missing},"filter":{"pointer":"/a","equals":${missing}},"quiet_for":${missing}}`;
    for (const given of [`"event":${event}`, `"event":${JSON.stringify(event)}`, `"more":{"event":${event}}`]) {
      const { event: read } = readSet(`{"wake_message":"x",${given}}`) as { event: object };
      assert.deepEqual(read, { source: 'webhook', filter: { pointer: '/a', equals: JSON.parse(missing) } });
    }
    const check = `{"http":{"url":"https://example.com","headers":${missing === 'null' ? '{}' : '{"a":""}'}},"command":${missing}}`;
    assert.deepEqual(
      Object.keys((readSet(`{"wake_message":"x","when":"daily","check":${check}}`) as { check: object }).check),
      ['http'],
    );
    assert.equal('check' in readSet(`{"wake_message":"x","when":"daily","check":{"http":${missing}}}`), false);
  }
  assert.deepEqual(readList('null'), {});
});

test('a text that spells a missing value is refused in an id, a zone and a list', () => {
  for (const word of ['null', 'none', 'undefined', 'None', 'NULL']) {
    for (const name of ['alarm_id', 'conversation_id', 'timezone', 'idempotency_key', 'holidays', 'model'])
      refused(
        () => readSet(JSON.stringify({ wake_message: 'x', when: 'every day at 9', [name]: word })),
        `${name} must not be the text "${word}"; omit ${name} if there is none`,
      );
    refused(() => readCancel(JSON.stringify({ alarm_id: word })), 'alarm_id must be the id of an alarm');
    refused(() => readList(JSON.stringify({ cursor: word })), 'cursor must not be the text');
    for (const name of ['deliver', 'tools'])
      refused(
        () => readSet(JSON.stringify({ wake_message: 'x', when: 'daily', more: { [name]: ['fetch', word] } })),
        `${name} must not be the text "${word}"`,
      );
  }
  // A message or a label may have any words.
  assert.deepEqual(readSet('{"wake_message":"none","when":"daily","label":"null"}'), {
    wake_message: 'none',
    when: 'daily',
    label: 'null',
  });
});

test('an empty list of tools asks, and ["none"] is a turn without tools', () => {
  const tools = (list: string) => readSet(`{"wake_message":"x","when":"daily","more":{"tools":${list}}}`);
  refused(() => tools('[]'), 'omit `tools` for all, or write `["none"]` for a turn without tools');
  assert.deepEqual(tools('["none"]'), { wake_message: 'x', when: 'daily', tools: [] });
  refused(() => readEdit('"more":{"tools":[]}'), 'name `tools` in `clear` for all');
  for (const word of ['null', 'undefined', 'nil']) refused(() => tools(`["${word}"]`), 'tools must not be the text');
});

test('what the time of an alarm decides is left out: a kind beside words or an event, a zone beside an instant', () => {
  const read = (fields: object) => readSet(JSON.stringify({ wake_message: 'x', ...fields }));
  const instant = { fire_at: '2999-01-01T00:00:00Z' };
  assert.deepEqual(read({ kind: 'once', when: 'every day at 9' }), { wake_message: 'x', when: 'every day at 9' });
  assert.deepEqual(read({ kind: 'once', more: { expect: { every: 'P1D' } } }), {
    ...{ wake_message: 'x', expect: { every: 'P1D' } },
  });
  assert.deepEqual(read({ ...instant, timezone: 'Europe/Berlin' }), { wake_message: 'x', ...instant });
  assert.deepEqual(read({ kind: 'cron', cron_expr: '@daily', timezone: 'Asia/Tokyo' }), {
    ...{ kind: 'cron', wake_message: 'x', cron_expr: '@daily', timezone: 'Asia/Tokyo' },
  });
});

test('more has further fields as text or object, and its errors name the field and a right example', () => {
  const read = (more: unknown) => readSet(JSON.stringify({ wake_message: 'x', when: 'every day at 9', more }));
  const alarm = { wake_message: 'x', when: 'every day at 9' };
  for (const more of [{ max_fires: 3 }, '{"max_fires": 3}', '{"max_fires": "3"}'])
    assert.deepEqual(read(more), { ...alarm, max_fires: 3 });
  for (const more of ['', null, {}, '{}']) assert.deepEqual(read(more), alarm);
  refused(() => read('max_fires 3'), 'more must be a JSON object, such as {"max_fires": 3}');
  refused(() => read('[]'), 'more must be a JSON object, such as {"max_fires": 3}');
  refused(() => read({ max_fires: 'three' }), 'more: max_fires must be a', 'right is, for example, {"max_fires":10}');
  refused(() => read({ check: { http: { url: 'x' } } }), 'more: check.http.url', '"url":"https://example.com/');
  refused(() => read({ snooze: 1 }), 'more: unknown field "snooze"');
  refused(() => read({ when: 'daily' }), 'when is given twice, in more and beside it');
  refused(() => read({ more: {} }), 'more must not contain more');
  refused(() => read(`{"max_fires":${'9'.repeat(20)}}`), 'max_fires must be a number of at most 15 digits');
  refused(() => read('['.repeat(200)), 'nest');
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`field${at}`, at])));
  refused(() => read(many), 'more must have at most 100 fields');
  refused(() => readList(many), 'arguments must have at most 100 fields');
  refused(() => readSet('{"wake_message":"x","when":"daily","max_fires":"x"}'), 'right is, for example');
});

test('a strict client, which sends every field, sets and changes alarms with values that mean nothing', () => {
  const empty = {
    ...{ label: '', conversation_id: '', payload: '', timezone: '', alarm_id: '', action: 'none', clear: [] },
    ...{ idempotency_key: '', delay_seconds: 0, fire_at: '', cron_expr: '', more: '', help: '' },
  };
  const all = { ...empty, wake_message: 'x', when: 'every day at 9', kind: 'once' };
  assert.deepEqual(Object.keys(all).sort(), [...inSchema].sort());
  assert.deepEqual(readSet(JSON.stringify(all)), { wake_message: 'x', when: 'every day at 9' });
  const cron = { ...all, when: '', kind: 'cron', cron_expr: '@daily' };
  assert.deepEqual(readSet(JSON.stringify(cron)), { wake_message: 'x', kind: 'cron', cron_expr: '@daily' });
  const edit = { ...all, alarm_id: ID, wake_message: '', when: '', label: 'new' };
  assert.deepEqual(readCall(JSON.stringify(edit), inSchema), {
    asks: 'change',
    id: ID,
    fields: { label: 'new' },
    empty: [],
  });
  assert.deepEqual(readCall(JSON.stringify({ ...edit, label: '', action: 'pause' }), inSchema), {
    ...{ asks: 'change', id: ID, fields: {}, empty: [], action: 'pause' },
  });
  const list = { alarm_id: '', status: 'active', text: '', limit: 0, full: false, cursor: '' };
  assert.deepEqual(readList(JSON.stringify(list)), { status: 'active', full: false });
});

test('help is answered before anything else is read', () => {
  assert.deepEqual(readSet('{"help":"events"}'), { help: 'events' });
  assert.deepEqual(readSet('{"help":"events","wake_message":null,"when":""}'), { help: 'events' });
  refused(() => readSet('{"help":"time"}'), 'help must be one of conditions, events, chains, series, policies, turn');
  refused(() => readSet('null'), 'wake_message is required');
});

test('lists that a model wrote as strings are read', () => {
  assert.deepEqual(readSet('{"wake_message":"x","when":"[1]","tools":"[\\"fetch\\"]"}'), {
    wake_message: 'x',
    when: '[1]',
    tools: ['fetch'],
  });
  refused(() => readSet('{"wake_message":"x","tools":"fetch"}'), 'tools must be a list (got "fetch")');
});

test('objects that a model wrote as strings are read, and their members are checked', () => {
  const check = { http: { url: 'https://example.com/feed', etag: 'changed' } };
  const source = (members: object) => JSON.stringify({ wake_message: 'x', ...members });
  const event = { source: 'webhook', filter: { pointer: '/a', equals: 'b' } };
  assert.deepEqual(readSet(source({ when: 'tomorrow', check: JSON.stringify(check) })).check, check);
  assert.deepEqual(readSet(source({ event: JSON.stringify(event) })).event, event);
  refused(() => readSet(source({ check: '[]' })), 'check must be an object (got "[]")');
  refused(() => readSet(source({ event: { source: 'smoke' } })), 'event');
  refused(() => readSet(source({ event: { ...event, quiet_for: '30s' } })), 'event.quiet_for must be an ISO 8601');
});

test("names of JavaScript's own object members are fields like any other", () => {
  refused(() => readSet('{"kind":"once","wake_message":"x","__proto__":{"delay_seconds":1}}'), '__proto__');
  refused(() => readSet('{"kind":"once","wake_message":"x","constructor":1}'), 'constructor');
  refused(() => readList('{"toString":1}'), 'toString');
});

test('a number that would be rounded is refused in an object, too', () => {
  const event = '{"source":"mcp","server":"a","name":"b","arguments":{"id":12345678901234567890}}';
  for (const value of [event, JSON.stringify(event)])
    for (const fields of [`"event":${value}`, `"more":{"event":${value}}`])
      refused(() => readSet(`{"wake_message":"x",${fields}}`), 'event must be a number of at most 15 digits');
});

test('an object in a text is refused when it nests too deep', () => {
  const check = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
  refused(() => readSet(JSON.stringify({ wake_message: 'x', when: 'daily', check })), 'must not nest', 'of check');
});

test('arguments that are no object are refused', () => {
  for (const source of ['[]', '"{}"', '5']) refused(() => readList(source), 'arguments must be a JSON object');
});

test('dry_run needs no message, and is refused beside the id of an alarm', () => {
  const asks = (source: string) => readCall(source, inSchema);
  assert.deepEqual(asks('{"when":"monday","dry_run":"true"}'), { asks: 'preview', fields: { when: 'monday' } });
  assert.equal(asks('{"when":"monday","wake_message":"x","dry_run":null}').asks, 'new');
  assert.equal(asks('{"when":"monday","wake_message":"x","more":"{\\"dry_run\\":true}"}').asks, 'preview');
  refused(() => readSet('{"when":"monday","dry_run":false}'), 'wake_message');
  refused(() => readEdit('"when":"monday","dry_run":true'), 'dry_run is only for a new alarm');
  readEdit('"when":"monday","dry_run":false');
});
