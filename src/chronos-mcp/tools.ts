/** The definitions of the three tools, from `chronos-tools.json`, as `tools/list` returns them. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import { parseJsonObject } from '../wire/json.ts';
import { parseOrThrow } from '../wire/validate.ts';

/** The alias of this server and the version of its tool set, as in tool URIs. */
export const CHRONOS_ALIAS = 'chronos';
export const TOOL_SET_VERSION = '0.1.0';

/** The tools; `chronos-tools.json` must define exactly these. */
export const TOOL_NAMES = ['alarm_set', 'alarm_list', 'alarm_cancel'] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

/** The definitions beside this file. */
export const TOOLS_FILE = new URL('./chronos-tools.json', import.meta.url);

const typeSchema = z.union([z.string(), z.array(z.string())]);
const propertySchema = z.looseObject({ type: typeSchema.optional(), description: z.string().optional() });

const inputSchema = z.looseObject({
  type: z.literal('object'),
  properties: z.record(z.string(), propertySchema),
  required: z.array(z.string()).optional(),
  additionalProperties: z.literal(false),
});

const toolSchema = z.strictObject({
  name: z.string().min(1),
  title: z.string().optional(),
  description: z.string().min(1),
  inputSchema,
  outputSchema: z.looseObject({ type: z.literal('object') }).optional(),
  annotations: z.looseObject({}).optional(),
});
export type ToolDefinition = z.output<typeof toolSchema>;

const toolsFileSchema = z.strictObject({ tools: z.array(toolSchema).min(1) });

function pathOf(file: string | URL): string {
  return file instanceof URL ? fileURLToPath(file) : file;
}

/** Reads any tool definitions. @throws ReveilleError `invalid_request` naming the file and the problem */
export function readToolsFile(file: string | URL): ToolDefinition[] {
  try {
    return parseOrThrow(toolsFileSchema, parseJsonObject(readFileSync(file, 'utf8'))).tools;
  } catch (cause) {
    const why = thrownText(cause);
    throw new ReveilleError('invalid_request', `${pathOf(file)} is not a list of tool definitions: ${why}`, { cause });
  }
}

/**
 * Reads the definitions of this server's tools.
 *
 * @throws ReveilleError `invalid_request` when the file is invalid or defines other tools than {@link TOOL_NAMES}
 */
export function readChronosTools(file: string | URL): ReadonlyMap<string, ToolDefinition> {
  const tools = readToolsFile(file);
  const defined = tools.map(({ name }) => name);
  if (defined.toSorted().join() !== [...TOOL_NAMES].sort().join()) {
    const message = `${pathOf(file)} must define exactly ${TOOL_NAMES.join(', ')} (it defines ${defined.join(', ')})`;
    throw new ReveilleError('invalid_request', message);
  }
  return new Map(tools.map((tool) => [tool.name, tool]));
}
