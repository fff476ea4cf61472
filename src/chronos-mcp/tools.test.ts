import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { z } from 'zod';
import { readPhrase } from '../kit/phrase/phrase.ts';
import { alarmCreateSchema, LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { ALARM_KINDS, ALARM_STATUSES, OWNER_FIELDS } from '../wire/alarm-fields.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ALARM_ACTIONS, readSet } from './arguments.ts';
import { EXAMPLES, HELP_TOPICS, helpPage } from './help.ts';
import { readChronosTools, TOOL_NAMES, TOOLS_FILE } from './tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-tools-'));
after(() => rmSync(folder, { recursive: true }));

const tools = readChronosTools(TOOLS_FILE);

const propertiesOf = (name: string) => tools.get(name)!.inputSchema.properties;
const inSchema = new Set(Object.keys(propertiesOf('alarm_set')));

test('the tools are exactly alarm_set, alarm_list and alarm_cancel', () => {
  assert.deepEqual([...tools.keys()], [...TOOL_NAMES]);
});

test('every field of an alarm is in the schema of alarm_set or on one page of its help', () => {
  const pages = HELP_TOPICS.flatMap((topic) => Object.keys(helpPage(topic, false).fields));
  assert.deepEqual(pages.toSorted(), [...new Set(pages)].sort(), 'each is on one page');
  const others = OWNER_FIELDS.filter((name) => !inSchema.has(name));
  assert.deepEqual(pages.toSorted(), [...others, 'dry_run'].sort());
});

test('the types and choices of alarm_set agree with the wire', () => {
  const wire = z.toJSONSchema(alarmCreateSchema, { io: 'input', unrepresentable: 'any' }).properties!;
  for (const [name, { type, enum: choices }] of Object.entries(propertiesOf('alarm_set'))) {
    const expected = wire[name] as { type?: string } | undefined;
    // A payload is any JSON; as a text it is read as JSON.
    if (expected && name !== 'payload') assert.equal(type, expected.type, name);
    if (name === 'kind') assert.deepEqual(choices, [...ALARM_KINDS]);
    if (name === 'action') assert.deepEqual(choices, ['none', ...ALARM_ACTIONS]);
  }
  for (const topic of HELP_TOPICS)
    assert.match(propertiesOf('alarm_set').help!.description!, new RegExp(`\\b${topic}: `));
  assert.deepEqual(propertiesOf('alarm_list').status!.enum, [...ALARM_STATUSES]);
  assert.match(propertiesOf('alarm_list').limit!.description!, new RegExp(String(LIST_LIMIT_MAX)));
});

test('each example of the help is accepted, alone and as a whole call, as an object and as text', () => {
  for (const [name, example] of Object.entries(EXAMPLES)) {
    for (const more of [{ [name]: example }, JSON.stringify({ [name]: example })]) {
      const call = readSet(JSON.stringify({ wake_message: 'x', when: 'every day at 9', more }), inSchema);
      const isPreview = name === 'dry_run';
      assert.deepEqual(call.asks === 'help' || [call.asks, call.fields[name]], [
        isPreview ? 'preview' : 'new',
        isPreview ? undefined : example,
      ]);
    }
  }
  for (const topic of HELP_TOPICS)
    for (const call of helpPage(topic, false).calls) {
      assert.equal(readSet(JSON.stringify(call), inSchema).asks, 'new');
      if (typeof call.when === 'string') readPhrase(call.when, { now: 0, zone: 'UTC' });
    }
});

test('each time in words of a description or of the help is understood', () => {
  const described = [...tools.values()].flatMap(({ description, inputSchema: { properties } }) => [
    description,
    ...Object.values(properties).map((property) => property.description ?? ''),
  ]);
  const words = [
    ...described.flatMap((text) => [...text.matchAll(/"((?:in|tomorrow|every) [^"]+)"/g)].map(([, phrase]) => phrase!)),
    ...HELP_TOPICS.flatMap((topic) => helpPage(topic, false).calls.map(({ when }) => when)),
  ].filter((phrase) => phrase !== undefined);
  assert.ok(words.length >= 10, words.join());
  for (const phrase of words)
    assert.doesNotThrow(
      () => readPhrase(String(phrase), { now: Date.UTC(2026, 10, 28, 12), zone: 'UTC' }),
      String(phrase),
    );
});

test('a page of help is short, and a remote client reads only what it may set', () => {
  for (const topic of HELP_TOPICS)
    assert.ok(
      JSON.stringify(helpPage(topic, false)).length < 2600,
      `${topic} ${JSON.stringify(helpPage(topic, false)).length}`,
    );
  assert.deepEqual(helpPage('turn', true).fields, {});
  assert.deepEqual(helpPage('turn', true).calls, []);
  assert.equal('urgent' in helpPage('policies', true).fields, false);
  assert.ok(helpPage('policies', false).fields.urgent);
});

test('every tool and every field is described, and no schema uses features that model APIs refuse at the top', () => {
  for (const tool of tools.values()) {
    assert.ok(tool.description.length > 80 && tool.description.length <= 1024, tool.name);
    for (const [name, { description }] of Object.entries(tool.inputSchema.properties)) {
      assert.ok(description && description.length >= 10, `${tool.name}.${name}`);
    }
    for (const keyword of ['oneOf', 'anyOf', 'allOf', 'not']) assert.equal(keyword in tool.inputSchema, false);
  }
});

test('output schemas accept failures too, because some clients check those as well', () => {
  for (const { outputSchema } of tools.values()) {
    assert.ok(outputSchema);
    assert.equal('required' in outputSchema, false);
    assert.equal('additionalProperties' in outputSchema, false);
  }
});

test('malformed definitions, or definitions of other tools, are refused with the name of the file', () => {
  const file = join(folder, 'tools.json');
  const [set, list, cancel] = [...tools.values()];
  const cases: [contents: string, says: RegExp][] = [
    ['{', /not a list of tool definitions/],
    ['{"tools":[]}', /tools must have at least 1 entry/],
    [JSON.stringify({ tools: [set, list] }), /must define exactly alarm_set, alarm_list, alarm_cancel/],
    [JSON.stringify({ tools: [set, list, cancel, cancel] }), /must define exactly alarm_set/],
    [JSON.stringify({ tools: [set, list, { ...cancel, name: 'alarm_snooze' }] }), /it defines .*alarm_snooze/],
    [
      JSON.stringify({ tools: [set, list, { ...cancel, inputSchema: { type: 'object', properties: {} } }] }),
      /additionalProperties/,
    ],
  ];
  for (const [contents, says] of cases) {
    writeFileSync(file, contents);
    assert.throws(
      () => readChronosTools(file),
      (thrown) => thrown instanceof ReveilleError && says.test(thrown.message) && thrown.message.includes(file),
      contents.slice(0, 40),
    );
  }
  assert.throws(() => readChronosTools(join(folder, 'absent.json')), /absent\.json/);
});
