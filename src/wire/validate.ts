/** Turns a failed schema check into one sentence that names field, value and remedy. */
import { z } from 'zod';
import { ReveilleError } from './errors.ts';
import { RawJson } from './json.ts';

const SHOWN_CHARACTERS = 60;

/** A rejected value, short enough for an error message. */
export function showValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = value instanceof RawJson ? value.text : (JSON.stringify(value) ?? String(value));
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)` : text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | undefined | null)?.[key];
  return value;
}

const TYPE_WORDS: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  record: 'an object',
};

function sizeSentence(origin: string, bound: string, limit: number | bigint): string {
  if (origin === 'string') return `must have ${bound} ${limit} character${Number(limit) === 1 ? '' : 's'}`;
  if (origin === 'array') return `must have ${bound} ${limit} entr${Number(limit) === 1 ? 'y' : 'ies'}`;
  return `must be ${bound} ${limit}`;
}

/** What is wrong with the value, without the field's name; `undefined` where the schema's own message says it better. */
function complaint(issue: z.core.$ZodIssue, value: unknown): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined ? 'is required' : `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return sizeSentence(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum);
    case 'too_big':
      return sizeSentence(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum);
    case 'invalid_value':
      if (value === undefined) return 'is required';
      return issue.values.length === 1
        ? `must be ${showValue(issue.values[0])}`
        : `must be one of ${issue.values.map((allowed) => String(allowed)).join(', ')}`;
    default:
      return undefined;
  }
}

/** The field names that an object schema knows at `path`, to list them beside an unknown one. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: unknown = schema;
  for (const key of path) at = at instanceof z.ZodObject ? at.shape[key as string] : undefined;
  while (at instanceof z.ZodOptional || at instanceof z.ZodNullable) at = at.unwrap();
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

/**
 * One sentence for one issue: `delay_seconds must be at least 1 (got -5)`. Messages given in a schema are written to follow
 * the field's name (`must be …`) or, on the whole object, to stand alone.
 */
function sentence(schema: z.ZodType, issue: z.core.$ZodIssue, input: unknown, hidden: ReadonlySet<string>): string {
  const field = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    const allowed = knownKeys(schema, issue.path);
    const names = issue.keys.map((key) => JSON.stringify(field ? `${field}.${key}` : key)).join(', ');
    const what = issue.keys.length === 1 ? `unknown field ${names}` : `unknown fields ${names}`;
    return allowed.length > 0 ? `${what}; allowed here: ${allowed.join(', ')}` : what;
  }
  const value = valueAt(input, issue.path);
  const what = complaint(issue, value) ?? issue.message;
  if (!field) return what;
  if (value === undefined || hidden.has(field)) return `${field} ${what}`;
  return `${field} ${what} (got ${showValue(value)})`;
}

/**
 * Checks `input` against a schema.
 *
 * @param hidden fields whose value must not be echoed (keys, signatures, tokens)
 * @returns the parsed value
 * @throws ReveilleError `invalid_request` with one sentence per problem
 */
export function parseOrThrow<T extends z.ZodType>(
  schema: T,
  input: unknown,
  hidden: readonly string[] = [],
): z.output<T> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const secret = new Set(hidden);
  const sentences = result.error.issues.map((issue) => sentence(schema, issue, input, secret));
  throw new ReveilleError('invalid_request', [...new Set(sentences)].join('; '));
}
