/** Reads the source text of a tool call's arguments into checked fields without loss of digits. */
import type { z } from 'zod';
import { ReveilleError } from '../wire/errors.ts';
import { isExact, isNumberLiteral, parseJsonObject, refuseDeepNesting, sliceAt } from '../wire/json.ts';
import { parseOrThrow, showValue } from '../wire/validate.ts';
import type { ToolDefinition } from './tools.ts';

function inexact(name: string, literal: string): ReveilleError {
  const shown = literal.length > 60 ? `${literal.slice(0, 60)}…` : literal;
  return new ReveilleError(
    'invalid_request',
    `${name} must be a number of at most 15 digits; ${shown} cannot be read exactly`,
  );
}

/** Reads a number or boolean that a model wrote as a string, by the tool's schema. Other values stay, and the schema rejects them. */
function readString(name: string, type: string | undefined, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if ((type === 'number' || type === 'integer') && isNumberLiteral(text)) {
    if (!isExact(text)) throw inexact(name, text);
    return Number(text);
  }
  return text;
}

function parseArguments(source: string, raw: readonly string[]): Record<string, unknown> {
  refuseDeepNesting(source, 'arguments');
  if (!source.startsWith('{')) {
    throw new ReveilleError(
      'invalid_request',
      `arguments must be a JSON object (got ${showValue(JSON.parse(source))})`,
    );
  }
  return parseJsonObject(source, raw);
}

/**
 * Reads a call's arguments.
 *
 * @param tool its input schema names number and boolean fields
 * @param schema the requirements of the fields
 * @param raw fields of any JSON; they are returned as source text and not interpreted
 * @param source well-formed JSON, as the client sent it
 * @returns the fields to send, without the transformations of `schema`
 * @throws ReveilleError `invalid_request` naming field, value and remedy
 */
export function readArguments(
  tool: ToolDefinition,
  schema: z.ZodType,
  raw: readonly string[],
  source: string,
): Record<string, unknown> {
  const fields = parseArguments(source, raw);
  for (const [name, { type }] of Object.entries(tool.inputSchema.properties)) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (typeof value === 'string') fields[name] = readString(name, type, value);
    if (typeof value === 'number') {
      const literal = sliceAt(source, [name])!;
      if (!isExact(literal)) throw inexact(name, literal);
    }
  }
  parseOrThrow(schema, fields);
  return fields;
}
