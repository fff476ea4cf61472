import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { agentManifestSchema } from '../../src/wire/manifest.ts';

/** The names of the properties in a JSON Schema, at every depth. */
function propertyNames(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(propertyNames);
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, ...rest } = schema as { properties?: Record<string, unknown> };
  return [
    ...Object.keys(properties),
    ...propertyNames(Object.values(properties)),
    ...propertyNames(Object.values(rest)),
  ];
}

test('docs/reference/manifests.md names every field of a manifest', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'reference', 'manifests.md'), 'utf8');
  const names = new Set(propertyNames(z.toJSONSchema(agentManifestSchema, { io: 'input' })));
  assert.ok(names.size > 40, `${names.size} fields`);
  const missing = [...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(page));
  assert.deepEqual(missing, []);
});
