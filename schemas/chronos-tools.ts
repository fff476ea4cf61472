/**
 * `src/chronos-mcp/chronos-tools.json`: the fields of an alarm in the definitions of its tools, from the table. The rest
 * of the file, such as the descriptions of the tools and of their answers, is written by hand and kept.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { TOOLS_FILE } from '../src/chronos-mcp/tools.ts';
import { alarmCreateSchema, alarmViewSchema } from '../src/wire/alarm.ts';
import { ALARM_FIELDS, type FieldName, fieldOf } from '../src/wire/alarm-fields.ts';

type Json = Record<string, unknown>;
type Properties = Record<string, Json>;
type File = { tools: { name: string; inputSchema: Json; outputSchema: Json }[] };

const propertiesOf = (schema: z.ZodType, io: 'input' | 'output') =>
  Object.entries(z.toJSONSchema(schema, { io, unrepresentable: 'any' }).properties as Properties);

/** The arguments of `alarm_set`. */
function givenFields(): Properties {
  const described = propertiesOf(alarmCreateSchema, 'input').map(([name, schema]) => {
    const { type, least, most, tool } = fieldOf(name as FieldName);
    // JSON Schema counts characters; the wire's limit of bytes is the closest bound it can express.
    const bounds = type === 'message' ? { minLength: least ?? 1, maxLength: most } : {};
    return [name, { ...schema, ...bounds, description: tool }];
  });
  return Object.fromEntries(described);
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
      const { items } = (outputSchema.properties as Properties).alarms as { items: { properties: Properties } };
      items.properties = shownMembers(items.properties);
    }
  }
  const text = JSON.stringify(file, null, 2);
  const inline = text.replace(
    /\[\s+("[^"\]]*"(?:,\s+"[^"\]]*")*)\s+\]/g,
    (_, list: string) => `[${list.replace(/\s+/g, ' ')}]`,
  );
  return `${inline}\n`;
}
