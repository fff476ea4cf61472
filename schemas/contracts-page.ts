/**
 * The parts of `docs/contracts.md` that are said elsewhere already: routes, error codes, an alarm's fields. Each stands between
 * `<!-- generated: NAME -->` and `<!-- end -->`; what is around them is written by hand.
 */
import { z } from 'zod';
import { machinePutSchema, machineViewSchema } from '../src/router/machines/machine-schema.ts';
import { alarmCreateSchema, alarmViewSchema } from '../src/wire/alarm.ts';
import { ReveilleError, STATUS_OF } from '../src/wire/errors.ts';
import { intentViewSchema } from '../src/wire/intent-view.ts';
import type { Route } from '../src/wire/route.ts';
import { surfaceViewSchema } from '../src/wire/tool-surface.ts';
import { turnViewSchema } from '../src/wire/turn.ts';
import { chatRequestSchema, wakeRequestSchema } from '../src/wire/wake.ts';
import { APIS } from './routes.ts';

type Json = Record<string, unknown>;

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output') =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;

export const code = (text: string) => `\`${text}\``;
/** A bar would end the cell. */
const cell = (text: string) => text.replaceAll('|', '\\|');
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]) =>
  [heads, heads.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

/** The members of an object, optional ones with a question mark; alternatives with "or" between them. */
function membersOf(schema: Json): string {
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) return [...new Set(choices.map(membersOf).filter((words) => words !== ''))].join(' or ');
  const properties = schema.properties as Json | undefined;
  if (!properties) return '';
  const required = new Set(schema.required as string[] | undefined);
  const names = Object.keys(properties).filter((name) => JSON.stringify(properties[name]) !== '{"not":{}}');
  return code(`{${names.map((name) => (required.has(name) ? name : `${name}?`)).join(', ')}}`);
}

/** What stands in many routes, or is long, is told once below the table. */
const NAMED = new Map<z.ZodType, { name: string; io: 'input' | 'output' }>([
  [alarmViewSchema, { name: 'Alarm', io: 'output' }],
  [machineViewSchema, { name: 'Machine', io: 'output' }],
  [intentViewSchema, { name: 'Intent', io: 'output' }],
  [turnViewSchema, { name: 'Turn', io: 'output' }],
  [surfaceViewSchema, { name: 'Surface', io: 'output' }],
  [wakeRequestSchema, { name: 'Wake', io: 'input' }],
  [chatRequestSchema, { name: 'Chat', io: 'input' }],
  [machinePutSchema, { name: 'Place', io: 'input' }],
]);

const inWords = (schema: z.ZodType, io: 'input' | 'output') =>
  schema === alarmCreateSchema ? 'the fields below' : (NAMED.get(schema)?.name ?? membersOf(jsonSchema(schema, io)));

function routeRow({ method, path, credential, query, body, data, text, status = 200 }: Route): string[] {
  const given = [query && `query ${inWords(query, 'input')}`, body && inWords(body, 'input')].filter(
    (words) => words !== undefined && words !== '',
  );
  const answer = text ? 'text' : inWords(data, 'output');
  return [
    code(`${method.toUpperCase()} ${path}`),
    credential,
    given.join('; '),
    `${status === 200 ? '' : `${status} `}${answer}`,
  ];
}

function routes(name: string): string {
  const api = APIS.find((each) => each.name === name)!;
  const all: readonly Route[] = Object.values(api.routes);
  const used = new Set(all.flatMap(({ body, data }) => (body ? [body, data] : [data])));
  const told = [...NAMED].filter(([schema]) => used.has(schema));
  const lines = told.map(([schema, { name, io }]) => `- ${name}: ${membersOf(jsonSchema(schema, io))}`);
  const rows = table(['Route', 'Credential', 'Takes', 'Answers'], all.map(routeRow));
  return lines.length === 0 ? rows : `${rows}\n\n${lines.join('\n')}`;
}

function errors(): string {
  const rows = Object.entries(STATUS_OF).map(([name, status]) => {
    const { retryable } = new ReveilleError(name as keyof typeof STATUS_OF, '');
    return [`[${code(name)}](errors/${name}.md)`, String(status), retryable ? 'yes' : 'no'];
  });
  return table(['Code', 'Status', 'Retryable, unless the answer says otherwise'], rows);
}

function bounds({ type, enum: values, minLength, maxLength, minimum, maximum, pattern }: Json): string {
  if (Array.isArray(values)) return values.map((value) => code(String(value))).join(', ');
  const range = [minimum ?? minLength, maximum ?? maxLength];
  // Integers are bounded by what JavaScript can carry, which tells nothing.
  const [least, most] = range.map((bound) => (Math.abs(Number(bound)) === Number.MAX_SAFE_INTEGER ? undefined : bound));
  const unit = type === 'string' ? ' characters' : '';
  const words = [least !== undefined && `from ${least}`, most !== undefined && `to ${most}`].filter(Boolean).join(' ');
  return [type ?? 'any JSON', words && `${words}${unit}`, pattern && code(String(pattern))].filter(Boolean).join(', ');
}

function fields(): string {
  const { properties, required } = jsonSchema(alarmCreateSchema, 'input') as {
    properties: Record<string, Json>;
    required: string[];
  };
  const rows = Object.entries(properties).map(([name, schema]) => [
    code(required.includes(name) ? name : `${name}?`),
    bounds(schema),
  ]);
  return table(['Field', 'Value'], rows);
}

const PARTS: Readonly<Record<string, () => string>> = {
  errors,
  'alarm fields': fields,
  ...Object.fromEntries(APIS.map(({ name }) => [`routes ${name}`, () => routes(name)])),
};

/**
 * The page with its generated parts as they should be.
 *
 * @throws Error for a part that nobody knows, and one that the page leaves out
 */
export function contractsPage(text: string): string {
  const left = new Set(Object.keys(PARTS));
  const page = text.replace(/<!-- generated: (.+) -->\n[\s\S]*?<!-- end -->/g, (_, name: string) => {
    const part = PARTS[name];
    if (!part) throw new Error(`docs/contracts.md: nothing generates ${JSON.stringify(name)}`);
    left.delete(name);
    return `<!-- generated: ${name} -->\n${part()}\n<!-- end -->`;
  });
  if (left.size > 0) throw new Error(`docs/contracts.md has no place for ${[...left].join(', ')}`);
  return page;
}
