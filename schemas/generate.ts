/** Writes the published schemas from `src/wire`: an OpenAPI document for each daemon, a JSON Schema for the agent manifest. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { STATUS_OF } from '../src/wire/errors.ts';
import { agentManifestSchema } from '../src/wire/manifest.ts';
import { VERSION } from '../src/wire/version.ts';
import { APIS, type Api, type Credential, type Route } from './routes.ts';

type Json = Record<string, unknown>;

/** What a schema accepts (`input`) or gives (`output`), without the `$schema` line that OpenAPI does not want inside. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  // A payload is any JSON, kept as source text; JSON Schema has no other word for that than "anything".
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
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
  transport: [{ bearer: [] }],
  principal: [{ bearer: [], principal: [] }],
  admin: [{ adminBearer: [] }],
  machine: [{ webhookId: [], webhookTimestamp: [], webhookSignature: [] }],
};

function parameters({ path, query }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const shape = query ? (jsonSchema(query, 'input').properties as Record<string, Json>) : {};
  return [
    ...inPath,
    ...Object.entries(shape).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
  ];
}

function operation(route: Route): Json {
  const data = {
    type: 'object',
    properties: { ok: { const: true }, data: jsonSchema(route.data, 'output') },
    required: ['ok', 'data'],
  };
  return {
    summary: route.summary,
    security: SECURITY[route.credential],
    parameters: parameters(route),
    ...(route.body
      ? {
          requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(route.body, 'input') } } },
        }
      : {}),
    responses: {
      [route.status ?? 200]: { description: 'done', content: { 'application/json': { schema: data } } },
      default: {
        description: 'an error of the closed set',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

function openApi(api: Api): Json {
  const paths: Record<string, Json> = {};
  for (const route of api.routes) {
    paths[route.path] = { ...paths[route.path], [route.method]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: api.name, version: VERSION, description: api.description, license: { name: 'Apache-2.0' } },
    paths,
    components: {
      schemas: { Error: errorSchema },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        adminBearer: { type: 'http', scheme: 'bearer' },
        principal: { type: 'apiKey', in: 'header', name: 'X-Chronos-Agent' },
        webhookId: { type: 'apiKey', in: 'header', name: 'webhook-id' },
        webhookTimestamp: { type: 'apiKey', in: 'header', name: 'webhook-timestamp' },
        webhookSignature: { type: 'apiKey', in: 'header', name: 'webhook-signature' },
      },
    },
  };
}

/** File names below `schemas/` and their texts. */
export function publishedSchemas(): Map<string, string> {
  const text = (value: Json) => `${JSON.stringify(value, null, 2)}\n`;
  const files = new Map(APIS.map((api) => [`${api.name}.openapi.json`, text(openApi(api))]));
  const manifest = z.toJSONSchema(agentManifestSchema, { io: 'input' }) as Json;
  return files.set('agent-manifest.schema.json', text({ title: 'Agent manifest', ...manifest }));
}

if (import.meta.main) {
  for (const [name, contents] of publishedSchemas()) writeFileSync(join(import.meta.dirname, name), contents);
}
