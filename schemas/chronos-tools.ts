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

/** What a model needs of a schema to write a value. Other bounds are checked, and would cost tokens in every prompt. */
function essential({ type, enum: choices, minimum, maximum, items }: Json): Json {
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
