/**
 * Writes the published schemas from `src/wire`: an OpenAPI document per daemon, a JSON Schema for the agent manifest, two
 * per tool of Chronometric, and the generated modules of the Python client. It also writes the fields of an alarm in
 * the definitions of its tools, and the generated pages of `docs/reference`: routes, settings and errors.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { type ErrorCode, STATUS_OF } from '../src/wire/errors.ts';
import { planNodeSchema } from '../src/wire/intent.ts';
import { agentManifestSchema } from '../src/wire/manifest.ts';
import type { Credential, Route } from '../src/wire/route.ts';
import { VERSION } from '../src/wire/version.ts';
import {
  knownToolVersions,
  schemaFile,
  TOOL_VERSIONS_FILE,
  toolSchemas,
  toolVersions,
} from './chronometric/published.ts';
import { errorPages } from './error-pages.ts';
import { pythonModules } from './python-client.ts';
import { APIS, type Api } from './routes.ts';
import { routesPage } from './routes-page.ts';
import { settingsPage } from './settings-page.ts';

type Json = Record<string, unknown>;

/** Recursive schemas, defined once per document under a name. */
const NAMED = z.registry<{ id: string }>().add(planNodeSchema, { id: 'PlanNode' });
const inComponents = (name: string) => `#/components/schemas/${name}`;

/** Rewrites references so that they point into the document that contains the schema. */
function reanchored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reanchored);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => {
    const name = key === '$ref' && /^#\/\$defs\/(\w+)$/.exec(String(member))?.[1];
    return [key, name ? inComponents(name) : reanchored(member)];
  });
  return Object.fromEntries(entries);
}

/** The JSON Schema of the input or output, without `$schema`, which OpenAPI does not allow in a component. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  // A payload is any JSON, kept as source text.
  const whole = z.toJSONSchema(schema, { io, unrepresentable: 'any', metadata: NAMED }) as Json;
  const { $schema, $defs, ...rest } = whole;
  return reanchored(rest) as Json;
}

/** The named schemas to which a document refers. */
function namedSchemas(paths: Json): Json {
  const text = JSON.stringify(paths);
  const { $defs = {} } = z.toJSONSchema(z.object({ planNode: planNodeSchema }), { metadata: NAMED }) as Json;
  const used = Object.entries($defs as Record<string, Json>).filter(([name]) => text.includes(inComponents(name)));
  return Object.fromEntries(used.map(([name, { id, ...schema }]) => [name, reanchored(schema)]));
}

const retryAfter: Json = {
  'Retry-After': { description: 'seconds to wait before a retry', schema: { type: 'integer', minimum: 0 } },
};
const ERROR_TEXTS: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'a value of the request is missing or not allowed; the message names it',
  unauthorized: 'no valid credential',
  forbidden: 'the caller is authenticated but not allowed to do this',
  not_found: 'the record does not exist, or it belongs to another user',
  conflict: 'the request conflicts with the current state',
  rate_limited: 'a limit or a budget is used up; Retry-After gives the seconds to wait',
  internal: 'an unexpected error; the log of the daemon has the details',
  unavailable: 'a required part does not answer',
};
const TOO_LONG = { status: 413, text: 'the body is longer than the route accepts' };

/** The errors of a route. */
function errorCodes({ credential, path, method, query, body }: Route): ErrorCode[] {
  const isProbe = credential === 'none' && method === 'get';
  const codes: (ErrorCode | false)[] = [
    !isProbe && 'invalid_request',
    credential !== 'none' && 'unauthorized',
    credential !== 'none' && 'forbidden',
    (path.includes('{') || body !== undefined || query !== undefined) && 'not_found',
    method !== 'get' && 'conflict',
    'rate_limited',
    'internal',
    'unavailable',
  ];
  return codes.filter((code) => code !== false);
}

const errorContent = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };

/** Shared error responses, by code. */
const errorResponses: Json = {
  ...Object.fromEntries(
    Object.entries(ERROR_TEXTS).map(([code, text]) => [
      code,
      {
        description: `${code}: ${text}`,
        ...(code === 'rate_limited' && { headers: retryAfter }),
        content: errorContent,
      },
    ]),
  ),
  too_long: { description: `invalid_request: ${TOO_LONG.text}`, content: errorContent },
};

function errorsOf(route: Route): Json {
  const refer = (name: string) => ({ $ref: `#/components/responses/${name}` });
  const byStatus = errorCodes(route).map((code) => [STATUS_OF[code], refer(code)] as const);
  return Object.fromEntries([...byStatus, ...(route.body ? [[TOO_LONG.status, refer('too_long')] as const] : [])]);
}

const errorSchema: Json = {
  type: 'object',
  properties: {
    ok: { const: false },
    error: {
      type: 'object',
      properties: {
        code: { enum: Object.keys(STATUS_OF) },
        message: { type: 'string' },
        retryable: { type: 'boolean' },
      },
      required: ['code', 'message', 'retryable'],
    },
  },
  required: ['ok', 'error'],
};

const SECURITY: Record<Credential, Json[]> = {
  none: [],
  hook: [{}, { webhookId: [], webhookTimestamp: [], webhookSignature: [] }],
  transport: [{ bearer: [] }],
  principal: [{ bearer: [], principal: [] }],
  admin: [{ adminBearer: [] }],
  machine: [{ webhookId: [], webhookTimestamp: [], webhookSignature: [] }],
  user: [{ bearer: [], user: [] }],
  person: [{ bearer: [] }],
  metrics: [{}, { scrapeBearer: [] }],
};

function parameters({ path, query }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const shape = query ? (jsonSchema(query, 'input').properties as Record<string, Json>) : {};
  // A number is text in a query string; the output schema has its limits.
  const read = query ? (jsonSchema(query, 'output').properties as Record<string, Json>) : {};
  return [
    ...inPath,
    ...Object.entries(shape).map(([name, schema]) => ({
      ...{ name, in: 'query', required: false },
      schema: read[name]?.type === 'integer' ? read[name] : schema,
    })),
  ];
}

function operation(name: string, route: Route): Json {
  const data = jsonSchema(route.data, 'output');
  const envelope = { type: 'object', properties: { ok: { const: true }, data }, required: ['ok', 'data'] };
  const content = route.text ? { 'text/plain': { schema: data } } : { 'application/json': { schema: envelope } };
  return {
    operationId: name,
    summary: route.summary,
    security: SECURITY[route.credential],
    parameters: parameters(route),
    ...(route.body
      ? {
          requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(route.body, 'input') } } },
        }
      : {}),
    responses: {
      [route.status ?? 200]: { description: 'done', content },
      ...errorsOf(route),
      default: { description: 'an error with one of the fixed codes', content: errorContent },
    },
  };
}

function openApi(api: Api): Json {
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries(api.routes)) {
    paths[route.path] = { ...paths[route.path], [route.method]: operation(name, route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: api.name,
      version: VERSION,
      description: api.description,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: 'http://{host}:{port}',
        description: 'the default address',
        variables: { host: { default: '127.0.0.1' }, port: { default: String(api.port) } },
      },
    ],
    paths,
    components: {
      responses: errorResponses,
      schemas: { Error: errorSchema, ...namedSchemas(paths) },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        adminBearer: { type: 'http', scheme: 'bearer' },
        ...('metrics' in api.routes && { scrapeBearer: { type: 'http', scheme: 'bearer' } }),
        principal: { type: 'apiKey', in: 'header', name: 'X-Chronos-Agent' },
        user: { type: 'apiKey', in: 'header', name: 'X-Matrix-User' },
        webhookId: { type: 'apiKey', in: 'header', name: 'webhook-id' },
        webhookTimestamp: { type: 'apiKey', in: 'header', name: 'webhook-timestamp' },
        webhookSignature: { type: 'apiKey', in: 'header', name: 'webhook-signature' },
      },
    },
  };
}

const REFERENCE = '../docs/reference';

/** File names relative to `schemas/`, with their contents. */
export function publishedSchemas(): Map<string, string> {
  const text = (value: Json) => `${JSON.stringify(value, null, 2)}\n`;
  const documents = new Map(APIS.map((api) => [api.name, openApi(api)]));
  const files = new Map([...documents].map(([name, document]) => [`${name}.openapi.json`, text(document)]));
  for (const [file, module] of pythonModules(documents)) files.set(file, module);
  const manifest = z.toJSONSchema(agentManifestSchema, { io: 'input' }) as Json;
  files.set('agent-manifest.schema.json', text({ title: 'Agent manifest', ...manifest }));
  for (const tool of toolSchemas()) files.set(schemaFile(tool), text(tool.schema));
  files.set(TOOL_VERSIONS_FILE, text(toolVersions(knownToolVersions(), toolSchemas())));
  files.set(`${REFERENCE}/routes.md`, routesPage());
  files.set(`${REFERENCE}/settings.md`, settingsPage());
  for (const [name, page] of errorPages()) files.set(`${REFERENCE}/errors/${name}.md`, page);
  return files;
}

if (import.meta.main) {
  for (const [name, contents] of publishedSchemas()) {
    const file = join(import.meta.dirname, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, contents);
  }
}
