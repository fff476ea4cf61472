/** The parts of a tool's definition that matter to a model, and the digest that pins it. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../wire/canonical-json.ts';

export type ToolDefinition = {
  name: string;
  description?: string;
  /** JSON Schema. */
  inputSchema: Readonly<Record<string, unknown>>;
  outputSchema?: Readonly<Record<string, unknown>>;
  /** Hints such as `readOnlyHint`. Untrusted: they may make a tool's class stricter, never looser. */
  annotations?: Readonly<Record<string, unknown>>;
};

export const toolDefinitionSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  inputSchema: z.record(z.string(), z.unknown()),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  annotations: z.record(z.string(), z.unknown()).optional(),
});

/** Copies the relevant fields of a listed tool. */
export function definitionOf(listed: ToolDefinition): ToolDefinition {
  const { name, description, inputSchema, outputSchema, annotations } = listed;
  return {
    name,
    ...(description !== undefined && { description }),
    inputSchema,
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
  };
}

/** SHA-256 in lower-case hex over the canonical JSON of name, description, schemas and annotations. */
export function digestOf(definition: ToolDefinition): string {
  return createHash('sha256')
    .update(canonicalJson(definitionOf(definition)))
    .digest('hex');
}
