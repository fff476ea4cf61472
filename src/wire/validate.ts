/** Turns a failed schema check into one sentence with field, value and remedy. */
import { z } from 'zod';
import { ReveilleError } from './errors.ts';
import { RawJson } from './json.ts';

const SHOWN_CHARACTERS = 60;

/** A rejected value, cut for an error message. */
export function showValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  // JSON has no numbers that large: `1e400` is parsed as Infinity, which JSON.stringify writes as null.
  const json = typeof value === 'number' || value instanceof RawJson ? undefined : JSON.stringify(value);
  const text = value instanceof RawJson ? value.text : (json ?? String(value));
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)` : text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | undefined | null)?.[key];
  return value;
}

const TYPE_NAMES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  record: 'an object',
  map: 'an object',
  set: 'a list',
  date: 'a date',
  nan: 'NaN',
  RawJson: 'JSON text',
};

const FORMAT_NAMES: Record<string, string> = {
  url: 'a URL',
  uuid: 'a UUID',
  datetime: 'an RFC 3339 instant',
};

/** Fallback without a more precise message. */
const UNFIT = 'is not allowed';

function sizeSentence(origin: string, bound: string, limit: number | bigint): string {
  if (origin === 'string') return `must have ${bound} ${limit} character${Number(limit) === 1 ? '' : 's'}`;
  if (origin === 'array' || origin === 'set' || origin === 'map')
    return `must have ${bound} ${limit} entr${Number(limit) === 1 ? 'y' : 'ies'}`;
  return `must be ${bound} ${limit}`;
}

const oneOf = (values: readonly unknown[]) => `must be one of ${values.map(String).join(', ')}`;

type SizeIssue = { origin: string; inclusive?: boolean | undefined; exact?: boolean | undefined };

function boundOf({ inclusive, exact }: SizeIssue, within: string, beyond: string): string {
  if (exact) return 'exactly';
  return inclusive === false ? beyond : within;
}

function formatSentence(issue: z.core.$ZodIssueInvalidStringFormat & Record<string, unknown>): string {
  switch (issue.format) {
    case 'regex':
      return `must match ${issue.pattern}`;
    case 'starts_with':
      return `must begin with ${showValue(issue.prefix)}`;
    case 'ends_with':
      return `must end with ${showValue(issue.suffix)}`;
    case 'includes':
      return `must contain ${showValue(issue.includes)}`;
    default:
      return `must be ${FORMAT_NAMES[issue.format] ?? `a well-formed ${issue.format}`}`;
  }
}

/** One sentence for the problems inside a value. Their messages come from {@link wording} or from the schema. */
function innerSentence(issues: readonly z.core.$ZodIssue[], conjunction: string): string | undefined {
  const sentences = issues.map(({ path, message }) => [...path.map(String), message].join(' '));
  return sentences.length > 0 ? [...new Set(sentences)].join(conjunction) : undefined;
}

function unionSentence(issue: z.core.$ZodIssueInvalidUnion): string {
  if (issue.inclusive === false) return 'must have only one of the allowed forms';
  if (issue.options && issue.options.length > 0) return oneOf(issue.options);
  // The first problem of each form describes the form.
  return (
    innerSentence(
      issue.errors.map(([first]) => first).filter((first) => first !== undefined),
      ' or ',
    ) ?? UNFIT
  );
}

/**
 * The problem of a value without the field's name, used if the schema has no message. Every check gets it as its
 * `error`, so the validator's own wording is never visible.
 */
export function wording(raw: z.core.$ZodRawIssue): string {
  // Raw issues lack members that finished issues have: the message, and sometimes the path.
  const issue = raw as z.core.$ZodIssue;
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return sizeSentence(issue.origin, boundOf(issue, 'at least', 'more than'), issue.minimum);
    case 'too_big':
      return sizeSentence(issue.origin, boundOf(issue, 'at most', 'less than'), issue.maximum);
    case 'invalid_value':
      return issue.values.length === 1 ? `must be ${showValue(issue.values[0])}` : oneOf(issue.values);
    case 'invalid_format':
      return formatSentence(issue as z.core.$ZodIssueInvalidStringFormat & Record<string, unknown>);
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `must not have ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`;
    case 'invalid_key':
    case 'invalid_element':
      return innerSentence(issue.issues, ' and ') ?? UNFIT;
    case 'invalid_union':
      return unionSentence(issue);
    default:
      return UNFIT;
  }
}

/** Issue codes of an absent value. A schema's own message would describe the value's form. */
const MISSING = new Set<string | undefined>(['invalid_type', 'invalid_value', 'invalid_union']);

/** A field that exists only to be refused with its own message. */
const isForbidden = (schema: unknown) =>
  (schema instanceof z.ZodOptional ? schema.unwrap() : schema) instanceof z.ZodNever;

/** Whether the problem is the field's presence or name; its value is then irrelevant. */
const isAboutName = (issue: z.core.$ZodIssue) =>
  issue.code === 'invalid_key' || (issue.code === 'invalid_type' && issue.expected === 'never');

/** The schema below optional and nullable wrappers. */
function unwrapped(schema: unknown): unknown {
  let at = schema;
  while (at instanceof z.ZodOptional || at instanceof z.ZodNullable) at = at.unwrap();
  return at;
}

/** The field names of the object schema at `path`, for the message about an unknown field. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: unknown = schema;
  for (const key of path) {
    if (at instanceof z.ZodArray) at = unwrapped(at.element);
    else at = at instanceof z.ZodObject ? unwrapped(at.shape[key as string]) : undefined;
  }
  if (!(at instanceof z.ZodObject)) return [];
  return Object.entries(at.shape).flatMap(([name, member]) => (isForbidden(member) ? [] : [name]));
}

/** Whether a field's value must not appear in messages. */
type IsHidden = (field: string) => boolean;

/**
 * One sentence for one issue: `delay_seconds must be at least 1 (got -5)`. Messages in a schema follow the field's name
 * (`must be …`); on the whole object they are complete sentences.
 */
function sentence(schema: z.ZodType, issue: z.core.$ZodIssue, input: unknown, isHidden: IsHidden): string {
  const field = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    const allowed = knownKeys(schema, issue.path);
    const names = issue.keys.map((key) => JSON.stringify(field ? `${field}.${key}` : key)).join(', ');
    const what = issue.keys.length === 1 ? `unknown field ${names}` : `unknown fields ${names}`;
    return allowed.length > 0 ? `${what}; allowed here: ${allowed.join(', ')}` : what;
  }
  const value = valueAt(input, issue.path);
  const what = value === undefined && MISSING.has(issue.code) ? 'is required' : issue.message;
  if (!field) return what;
  if (value === undefined || isAboutName(issue) || isHidden(field)) return `${field} ${what}`;
  return `${field} ${what} (got ${showValue(value)})`;
}

/** One problem of an input. */
export type Problem = {
  /** Path of the wrong value, or of the unknown field. */
  path: readonly PropertyKey[];
  /** Whether the problem is the field's name or presence, not its value. */
  ofName: boolean;
  /** The sentence in the error of {@link parseOrThrow}. */
  sentence: string;
};

/**
 * Checks `input` against a schema, for callers that need each problem's details.
 *
 * @param hidden fields whose value must not appear in messages
 * @returns the parsed value, or all problems
 */
export function checkInput<T extends z.ZodType>(
  schema: T,
  input: unknown,
  hidden: readonly string[] | IsHidden = [],
): { value: z.output<T> } | { problems: Problem[] } {
  const result = schema.safeParse(input, { error: wording });
  if (result.success) return { value: result.data };
  const isHidden = typeof hidden === 'function' ? hidden : (field: string) => hidden.includes(field);
  const problems = result.error.issues.map((issue) => ({
    path: issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]!] : issue.path,
    ofName: issue.code === 'unrecognized_keys' || isAboutName(issue),
    sentence: sentence(schema, issue, input, isHidden),
  }));
  return { problems };
}

/**
 * Checks `input` against a schema.
 *
 * @param hidden fields whose value must not appear in messages (keys, signatures, tokens)
 * @returns the parsed value
 * @throws ReveilleError `invalid_request` with one sentence per problem
 */
export function parseOrThrow<T extends z.ZodType>(
  schema: T,
  input: unknown,
  hidden: readonly string[] | IsHidden = [],
): z.output<T> {
  const checked = checkInput(schema, input, hidden);
  if ('value' in checked) return checked.value;
  const sentences = checked.problems.map((problem) => problem.sentence);
  throw new ReveilleError('invalid_request', [...new Set(sentences)].join('; '));
}
