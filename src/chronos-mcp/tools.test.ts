import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { z } from 'zod';
import { alarmCreateSchema, alarmListQuerySchema } from '../wire/alarm.ts';
import {
  CLEARABLE_FIELDS,
  fieldOf,
  OWNER_FIELDS,
  PAYLOAD_MAX_BYTES,
  WAKE_MESSAGE_MAX_BYTES,
} from '../wire/alarm-fields.ts';
import { ReveilleError } from '../wire/errors.ts';
import { alarmCancelArguments, alarmChangeArguments, alarmListArguments } from './proxy.ts';
import { readChronosTools, TOOL_NAMES, TOOLS_FILE } from './tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-tools-'));
after(() => rmSync(folder, { recursive: true }));

const tools = readChronosTools(TOOLS_FILE);

type JsonSchema = {
  properties: Record<string, Record<string, unknown>>;
  required?: string[];
  additionalProperties?: unknown;
};

/** A schema without its descriptions. */
function shapeOf({ properties, required = [], additionalProperties }: JsonSchema) {
  const fields = Object.entries(properties).map(([name, { description: _, ...rest }]) => [name, rest] as const);
  return { fields: Object.fromEntries(fields), required: required.toSorted(), additionalProperties };
}

function wireShape(schema: z.ZodType) {
  return shapeOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as unknown as JsonSchema);
}

test('the tools are exactly alarm_set, alarm_list and alarm_cancel', () => {
  assert.deepEqual([...tools.keys()], [...TOOL_NAMES]);
});

test('the fields of alarm_set, their types and their bounds agree with the wire, for a new alarm and for a change', () => {
  const { fields, required } = shapeOf(tools.get('alarm_set')!.inputSchema as unknown as JsonSchema);
  const [create, change] = [wireShape(alarmCreateSchema).fields, wireShape(alarmChangeArguments).fields];
  assert.deepEqual(Object.keys(fields), [...Object.keys(create), 'alarm_id', 'action', 'dry_run']);
  assert.deepEqual(Object.keys(fields).sort(), Object.keys(change).sort());
  // A change needs none of the fields of a new alarm.
  assert.deepEqual(required, []);
  for (const name of OWNER_FIELDS) {
    const { enum: choices, minimum, maximum, oneOf } = create[name]!;
    // Some models cannot read a union: its members are in one object.
    const type = oneOf === undefined ? create[name]!.type : 'object';
    const isClearable = CLEARABLE_FIELDS.includes(name);
    const [shown, bounds] = [
      fields[name]!,
      { minimum, maximum: fieldOf(name).most === undefined ? undefined : maximum },
    ];
    assert.deepEqual(shown.type, isClearable ? [type, 'null'] : type, name);
    assert.deepEqual(shown.enum, isClearable && choices ? [...(choices as string[]), null] : choices, name);
    assert.deepEqual({ minimum: shown.minimum, maximum: shown.maximum }, bounds, name);
    assert.equal(alarmChangeArguments.shape[name].safeParse(null).success, isClearable, name);
  }
});

test('the definition of alarm_set has at most 7450 bytes of schema: each prompt of a model contains it', () => {
  const { inputSchema, description } = tools.get('alarm_set')!;
  assert.ok(JSON.stringify(inputSchema).length <= 7450, String(JSON.stringify(inputSchema).length));
  assert.ok(description.length <= 1100, String(description.length));
});

test('the fields of alarm_list and alarm_cancel match the checks', () => {
  const shape = (name: string) => shapeOf(tools.get(name)!.inputSchema as unknown as JsonSchema);
  assert.deepEqual(shape('alarm_list'), wireShape(alarmListArguments));
  assert.deepEqual(shape('alarm_cancel'), wireShape(alarmCancelArguments));
  // Search and upcoming alarms are for people, who have more alarms on a screen than an agent.
  const { text, sort, until, ...query } = alarmListQuerySchema.shape;
  assert.deepEqual(Object.keys(alarmListArguments.shape).sort(), Object.keys(query).sort());
});

test('the descriptions contain the byte limits', () => {
  const { wake_message, payload } = tools.get('alarm_set')!.inputSchema.properties;
  assert.match(wake_message!.description!, new RegExp(String(WAKE_MESSAGE_MAX_BYTES)));
  assert.match(payload!.description!, new RegExp(String(PAYLOAD_MAX_BYTES)));
});

test('every tool and every field is described, and no schema uses features that model APIs refuse at the top', () => {
  for (const tool of tools.values()) {
    assert.ok(tool.description.length > 80, tool.name);
    for (const [name, { description }] of Object.entries(tool.inputSchema.properties)) {
      assert.ok(description && description.length > 10, `${tool.name}.${name}`);
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
