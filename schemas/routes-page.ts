/** `docs/reference/routes.md`: error codes, the HTTP routes of every daemon and the fields of an alarm, from the schemas. */
import { z } from 'zod';
import { machinePutSchema, machineViewSchema } from '../src/router/machines/machine-schema.ts';
import { alarmCreateSchema, alarmViewSchema } from '../src/wire/alarm.ts';
import { ReveilleError, STATUS_OF } from '../src/wire/errors.ts';
import { intentViewSchema } from '../src/wire/intent-view.ts';
import type { Route } from '../src/wire/route.ts';
import { surfaceViewSchema } from '../src/wire/tool-surface.ts';
import { turnViewSchema } from '../src/wire/turn.ts';
import { chatRequestSchema, wakeRequestSchema } from '../src/wire/wake.ts';
import { APIS, type Api } from './routes.ts';

type Json = Record<string, unknown>;

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output') =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;

export const code = (text: string) => `\`${text}\``;
/** Escapes bars, which end a cell. */
const cell = (text: string) => text.replaceAll('|', '\\|');
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]) =>
  [heads, heads.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

/** The members of an object. Optional members end with a question mark; alternatives are joined with "or". */
function membersOf(schema: Json): string {
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) return [...new Set(choices.map(membersOf).filter((text) => text !== ''))].join(' or ');
  const properties = schema.properties as Json | undefined;
  if (!properties) return '';
  const required = new Set(schema.required as string[] | undefined);
  const names = Object.keys(properties).filter((name) => JSON.stringify(properties[name]) !== '{"not":{}}');
  return code(`{${names.map((name) => (required.has(name) ? name : `${name}?`)).join(', ')}}`);
}

/** Schemas that several routes use, or that are long. The page lists each once, below the table. */
const NAMED = new Map<z.ZodType, { name: string; io: 'input' | 'output' }>([
  [alarmViewSchema, { name: 'Alarm', io: 'output' }],
  [machineViewSchema, { name: 'Machine', io: 'output' }],
  [intentViewSchema, { name: 'Intent', io: 'output' }],
  [turnViewSchema, { name: 'Turn', io: 'output' }],
  [surfaceViewSchema, { name: 'Surface', io: 'output' }],
  [wakeRequestSchema, { name: 'Wake', io: 'input' }],
  [chatRequestSchema, { name: 'Chat', io: 'input' }],
  [machinePutSchema, { name: 'MachinePut', io: 'input' }],
]);

const describeSchema = (schema: z.ZodType, io: 'input' | 'output') =>
  schema === alarmCreateSchema
    ? '[alarm fields](#fields-of-an-alarm)'
    : (NAMED.get(schema)?.name ?? membersOf(jsonSchema(schema, io)));

function routeRow({ method, path, summary, credential, query, body, data, text, status = 200 }: Route): string[] {
  const given = [query && `query ${describeSchema(query, 'input')}`, body && describeSchema(body, 'input')].filter(
    (text) => text !== undefined && text !== '',
  );
  const answer = text ? 'text' : describeSchema(data, 'output');
  return [
    code(`${method.toUpperCase()} ${path}`),
    summary,
    credential,
    given.join('; '),
    `${status === 200 ? '' : `${status} `}${answer}`,
  ];
}

function routes({ routes: routeTable }: Api): string {
  const all: readonly Route[] = Object.values(routeTable);
  const used = new Set(all.flatMap(({ body, data }) => (body ? [body, data] : [data])));
  const listed = [...NAMED].filter(([schema]) => used.has(schema));
  const members = listed.map(([schema, { name, io }]) => [name, membersOf(jsonSchema(schema, io))]);
  const rows = table(['Route', 'Purpose', 'Credential', 'Request', 'Response'], all.map(routeRow));
  return members.length === 0 ? rows : `${rows}\n\n${table(['Object', 'Members'], members)}`;
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
  // The limits of safe integers are omitted.
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

function api(one: Api): string {
  return [
    `## ${one.title}`,
    `${one.description} It listens on 127.0.0.1:${one.port} by default. OpenAPI: \`schemas/${one.name}.openapi.json\`.`,
    routes(one),
  ].join('\n\n');
}

/** The generated page. */
export function routesPage(): string {
  return `${[
    '# HTTP routes',
    'This page is generated from the schemas (`npm run schemas`). [HTTP API](api.md) explains credentials, envelopes and the meaning of the routes. A name with `?` is optional.',
    '## Error codes',
    errors(),
    ...APIS.map(api),
    '## Fields of an alarm',
    'The body of `POST /v1/alarms`.',
    fields(),
  ].join('\n\n')}\n`;
}
