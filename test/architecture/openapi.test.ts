import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { RE2JS } from 're2js';
import { publishedSchemas } from '../../schemas/generate.ts';
import { APIS } from '../../schemas/routes.ts';
import { alarmCreateSchema } from '../../src/wire/alarm.ts';
import { STATUS_OF } from '../../src/wire/errors.ts';

type Json = Record<string, unknown>;
type Parameter = { name: string; in: string; schema: { type?: string; minimum?: number; maximum?: number } };
type Operation = { operationId: string; parameters: Parameter[]; responses: Record<string, Json>; security: Json[] };
type Document = {
  info: { license: Json };
  servers: { url: string; variables: Record<string, { default: string }> }[];
  paths: Record<string, Record<string, Operation & { requestBody?: { content: Json } }>>;
  components: { responses: Record<string, Json> };
};

const SCHEMAS = join(import.meta.dirname, '..', '..', 'schemas');
const documentOf = (name: string) =>
  JSON.parse(readFileSync(join(SCHEMAS, `${name}.openapi.json`), 'utf8')) as Document;
const operationsOf = ({ paths }: Document) => Object.values(paths).flatMap((methods) => Object.values(methods));

describe('each OpenAPI document', () => {
  for (const { name, port, routes } of APIS) {
    test(`${name}: an independent validator accepts it, with licence and server`, async () => {
      const document = documentOf(name);
      await SwaggerParser.validate(
        structuredClone(document) as unknown as Parameters<typeof SwaggerParser.validate>[0],
      );
      assert.equal(document.info.license.identifier, 'Apache-2.0');
      const [server] = document.servers;
      assert.deepEqual(
        [server!.url, server!.variables.host!.default, server!.variables.port!.default],
        ['http://{host}:{port}', '127.0.0.1', String(port)],
      );
    });

    test(`${name}: each operation has its errors by status, of the closed set`, () => {
      const document = documentOf(name);
      for (const { operationId, responses, parameters, security, requestBody } of operationsOf(document)) {
        for (const [status, { $ref }] of Object.entries(responses).filter(([key]) => /^[45]/.test(key))) {
          const code = String($ref).split('/').at(-1)!;
          assert.ok(document.components.responses[code], `${operationId} ${status}`);
          const expected = code === 'too_long' ? 413 : STATUS_OF[code as keyof typeof STATUS_OF];
          assert.equal(Number(status), expected, operationId);
        }
        const has = (status: number) => Object.hasOwn(responses, status);
        assert.ok(has(500) && has(503) && has(429), operationId);
        assert.equal(has(401) && has(403), security.length > 0, operationId);
        if (requestBody || parameters.length > 0) assert.ok(has(400), operationId);
        assert.equal(has(413), requestBody !== undefined, operationId);
      }
    });

    test(`${name}: the bounds of numbers in a query are those of the daemon`, () => {
      const bounded = Object.entries(routes).flatMap(([id, { query }]) => {
        const operation = operationsOf(documentOf(name)).find(({ operationId }) => operationId === id)!;
        const numbers = operation.parameters.filter((one) => one.in === 'query' && one.schema.type === 'integer');
        return numbers.map((one) => [one, query!] as const);
      });
      for (const [{ name: member, schema }, query] of bounded) {
        const accepts = (value: number) => query.safeParse({ [member]: String(value) }).success;
        const { minimum = Number.NaN, maximum = Number.NaN } = schema;
        assert.deepEqual(
          [minimum - 1, minimum, maximum, maximum + 1].map(accepts),
          [false, true, true, false],
          `${member} ${minimum} ${maximum}`,
        );
      }
      const limits = operationsOf(documentOf(name)).flatMap(({ parameters }) =>
        parameters.filter((one) => one.name === 'limit'),
      );
      for (const { schema } of limits) assert.deepEqual([schema.type, schema.minimum], ['integer', 1]);
    });
  }
});

test('the document and the daemon refuse an empty wake_message', () => {
  const { content } = documentOf('chronosd').paths['/v1/alarms']!.post!.requestBody!;
  const { properties } = (content['application/json'] as { schema: { properties: Record<string, Json> } }).schema;
  assert.deepEqual([properties.wake_message!.minLength, properties.wake_message!.maxLength], [1, 65_536]);
  assert.ok(!alarmCreateSchema.safeParse({ kind: 'once', wake_message: '', delay_seconds: 1 }).success);
});

/** The values of `pattern` anywhere below a value. */
function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
  );
}

test('no pattern of a published schema needs look-ahead or more than RE2 has', () => {
  const documents = [...publishedSchemas()].filter(([name]) => name.endsWith('.json'));
  const patterns = new Set(documents.flatMap(([, text]) => patternsIn(JSON.parse(text))));
  assert.ok(patterns.size > 10);
  const refused = [...patterns].filter((pattern) => {
    try {
      RE2JS.compile(pattern);
      return /\(\?[=!<]/.test(pattern);
    } catch {
      return true;
    }
  });
  assert.deepEqual(refused, []);
});
