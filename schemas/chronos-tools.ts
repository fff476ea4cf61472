/**
 * `src/chronos-mcp/chronos-tools.json`: the fields of an alarm in the definitions of its tools, from the table. The rest
 * of the file, such as the descriptions of the tools and of their answers, is written by hand and kept.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { alarmChangeArguments, alarmListArguments } from '../src/chronos-mcp/proxy.ts';
import { TOOLS_FILE } from '../src/chronos-mcp/tools.ts';
import { alarmCreateSchema, alarmViewSchema } from '../src/wire/alarm.ts';
import { ALARM_FIELDS, CLEARABLE_FIELDS, type FieldName, fieldOf } from '../src/wire/alarm-fields.ts';

type Json = Record<string, unknown>;
type Properties = Record<string, Json>;
type File = { tools: { name: string; inputSchema: Json; outputSchema: Json }[] };

const propertiesOf = (schema: z.ZodType, io: 'input' | 'output') =>
  Object.entries(z.toJSONSchema(schema, { io, unrepresentable: 'any' }).properties as Properties);

/** Members that a model does not need: chronosd makes the secret, and a check by GET is the default. */
const NOT_FOR_MODELS = ['secret', 'method'];
/** The turn of another alarm is the field `after`. */
const isForModels = ({ properties }: Json) => ((properties as Properties).source?.const ?? '') !== 'alarm';

/** The members of an object. Those of a union are in one object, because some models cannot read unions. */
function membersOf({ properties, required, oneOf }: Json): { properties: Properties; required: string[] } {
  if (!Array.isArray(oneOf))
    return { properties: (properties ?? {}) as Properties, required: (required ?? []) as string[] };
  const kinds = (oneOf as Json[]).filter(isForModels).map(membersOf);
  const merged: Properties = {};
  for (const kind of kinds)
    for (const [name, { const: value, ...schema }] of Object.entries(kind.properties)) {
      const known = merged[name]?.enum as unknown[] | undefined;
      merged[name] = value === undefined ? schema : { type: 'string', enum: [...(known ?? []), value] };
    }
  const inAll = kinds[0]!.required.filter((name) => kinds.every((kind) => kind.required.includes(name)));
  return { properties: merged, required: inAll };
}

/** A schema inside an object: the names, the types and the choices. The description of the field has an example. */
function inner(schema: Json): Json {
  const { type, enum: choices, const: value, items } = schema;
  if (schema.oneOf !== undefined || schema.properties !== undefined) {
    const { properties, required } = membersOf(schema);
    const shown = Object.entries(properties).filter(([name]) => !NOT_FOR_MODELS.includes(name));
    return {
      type: 'object',
      properties: Object.fromEntries(shown.map(([name, member]) => [name, inner(member)])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    };
  }
  // An object with names of its own: strict clients would allow no name in it.
  if (type === 'object') return {};
  if (choices !== undefined || typeof value === 'string') return { type, enum: choices ?? [value] };
  return { ...(type !== undefined && { type }), ...(items !== undefined && { items: inner(items as Json) }) };
}

/** What a model needs of a schema to write a value. Other bounds are checked, and would cost tokens in every prompt. */
function essential(schema: Json): Json {
  const { type, enum: choices, minimum, maximum, items, oneOf, properties } = schema;
  if (oneOf !== undefined || properties !== undefined) return inner(schema);
  return {
    ...(type !== undefined && { type }),
    ...(choices !== undefined && { enum: choices }),
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
    ...(items !== undefined && { items: essential(items as Json) }),
  };
}

/** An edit clears the field with `null`. */
const orNull = ({ type, enum: choices, ...schema }: Json): Json => ({
  type: [type, 'null'],
  ...(Array.isArray(choices) && { enum: [...choices, null] }),
  ...schema,
});

/** Arguments that are no fields of an alarm. */
const OTHERS = {
  alarm_id: 'The alarm to change, by its id. Omit it to set a new one.',
  action: 'With alarm_id: stops its fires, continues them, or fires it now besides its schedule. Edits come first.',
  dry_run: 'true: set nothing, only answer when a new alarm would fire.',
} as const;

/** The arguments of `alarm_set`: of a new alarm, and of a change. */
function givenFields(): Properties {
  const described = propertiesOf(alarmCreateSchema, 'input').map(([name, schema]) => {
    const isClearable = CLEARABLE_FIELDS.some((clearable) => clearable === name);
    const written = isClearable ? orNull(essential(schema)) : essential(schema);
    return [name, { ...written, description: fieldOf(name as FieldName).tool }];
  });
  const change = Object.fromEntries(propertiesOf(alarmChangeArguments, 'input'));
  const added = Object.entries(OTHERS).map(([name, description]) => {
    return [name, { ...essential(change[name]!), description }];
  });
  return Object.fromEntries([...described, ...added]);
}

/** The members of an alarm in an answer, without bounds. The agent does not see the person who set it. */
function shownMembers(kept: Properties): Properties {
  const members = propertiesOf(alarmViewSchema, 'output').filter(([name]) => name !== 'set_by');
  const written = members.map(([name, schema]) => {
    const isField = name in ALARM_FIELDS;
    const { description } = kept[name] ?? {};
    const { type, enum: choices, items } = schema;
    if (!isField) return [name, kept[name]];
    return [
      name,
      {
        ...(type !== undefined && { type }),
        ...(choices !== undefined && { enum: choices }),
        ...(items !== undefined && { items }),
        ...(description !== undefined && { description }),
      },
    ];
  });
  return Object.fromEntries(written);
}

/** The whole file, with short lists on one line as the formatter writes them. */
export function chronosTools(): string {
  const file: File = JSON.parse(readFileSync(TOOLS_FILE, 'utf8'));
  for (const { name, inputSchema, outputSchema } of file.tools) {
    if (name === 'alarm_set') inputSchema.properties = givenFields();
    if (name === 'alarm_cancel') outputSchema.properties = shownMembers(outputSchema.properties as Properties);
    if (name === 'alarm_list') {
      const kept = inputSchema.properties as Properties;
      const written = propertiesOf(alarmListArguments, 'input');
      inputSchema.properties = Object.fromEntries(
        written.map(([given, schema]) => [given, { ...schema, description: kept[given]?.description }]),
      );
      const { items } = (outputSchema.properties as Properties).alarms as { items: { properties: Properties } };
      items.properties = shownMembers(items.properties);
    }
  }
  const text = JSON.stringify(file, null, 2);
  const inline = text.replace(
    /\[\s+((?:"[^"\]]*"|null)(?:,\s+(?:"[^"\]]*"|null))*)\s+\]/g,
    (_, list: string) => `[${list.replace(/\s+/g, ' ')}]`,
  );
  return `${inline}\n`;
}
