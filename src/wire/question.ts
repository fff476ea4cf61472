/**
 * Questions of MCP servers to the user (elicitation, MCP revisions 2025-06-18 to 2026-07-28): a form of simple fields,
 * or an address that the user opens. All text in a question comes from the server.
 */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { parseInstant } from './rfc3339.ts';
import { shortText } from './text.ts';

export const FIELDS_MAX = 32;
const OPTIONS_MAX = 200;
export const VALUE_MAX_CHARACTERS = 8192;
export const MESSAGE_MAX_CHARACTERS = 4000;
const URL_MAX_CHARACTERS = 2048;

const optionSchema = z.object({ value: z.string().max(512), title: z.string().max(512) });
const valueSchema = z.union([
  z.string().max(VALUE_MAX_CHARACTERS),
  z.number(),
  z.boolean(),
  z.array(z.string().max(512)).max(OPTIONS_MAX),
]);
export type FieldValue = z.output<typeof valueSchema>;

/** One value of a form. `min` and `max` limit a number, the length of a text, or how many options are chosen. */
const fieldSchema = z.object({
  name: z.string().min(1).max(128),
  kind: z.enum(['text', 'number', 'integer', 'boolean', 'choice', 'choices']),
  title: z.string().max(512),
  description: z.string().max(2000).optional(),
  required: z.boolean(),
  default: valueSchema.optional(),
  options: z.array(optionSchema).max(OPTIONS_MAX).optional(),
  format: z.enum(['email', 'uri', 'date', 'date-time']).optional(),
  min: z.number().optional(),
  max: z.number().optional(),
});
export type QuestionField = z.output<typeof fieldSchema>;

const formSchema = z.object({
  mode: z.literal('form'),
  message: z.string().max(MESSAGE_MAX_CHARACTERS),
  fields: z.array(fieldSchema).max(FIELDS_MAX),
});
const urlSchema = z.object({
  mode: z.literal('url'),
  message: z.string().max(MESSAGE_MAX_CHARACTERS),
  url: z.string().max(URL_MAX_CHARACTERS),
  /** The host of the address, as it is resolved. */
  host: z.string(),
});
export const questionTextSchema = z.discriminatedUnion('mode', [formSchema, urlSchema]);
/** The question of a server. */
export type QuestionText = z.output<typeof questionTextSchema>;

/** `lapsed`: the user did not answer in time, or the call ended. */
export const QUESTION_STATES = ['asked', 'accepted', 'declined', 'lapsed'] as const;

const questionIdSchema = z.string().regex(/^[A-Za-z0-9_-]{8,64}$/);

/** A question and its state. */
export const questionSchema = z.object({
  question_id: questionIdSchema,
  conversation_id: conversationIdSchema,
  turn_id: z.string(),
  /** The alias of the server, and its tool. */
  server: z.string(),
  tool: z.string(),
  state: z.enum(QUESTION_STATES),
  asked: questionTextSchema,
  /** After this instant the question cannot be answered. */
  expires_at: z.string(),
});
export type QuestionView = z.output<typeof questionSchema>;

export const questionListSchema = z.object({ questions: z.array(questionSchema) });

/** An answer of the user. `content` has the values of a form by their names. */
export const questionAnswerSchema = z.strictObject({
  action: z.enum(['accept', 'decline']),
  content: z.record(shortText(128), valueSchema).optional(),
});
export type QuestionAnswer = z.output<typeof questionAnswerSchema>;

const EMAIL = /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

function formatProblem(text: string, format: QuestionField['format']): string | undefined {
  if (format === 'email' && !EMAIL.test(text)) return 'must be an email address';
  if (format === 'uri' && URL.parse(text) === null) return 'must be an address (a URI)';
  if (format === 'date' && !(DATE.test(text) && parseInstant(`${text}T00:00:00Z`) !== undefined))
    return 'must be a date, YYYY-MM-DD';
  if (format === 'date-time' && parseInstant(text) === undefined) return 'must be a date and time (RFC 3339)';
  return undefined;
}

function countProblem({ min, max }: QuestionField, count: number, what: string): string | undefined {
  if (min !== undefined && count < min) return `must have at least ${min} ${what}`;
  if (max !== undefined && count > max) return `must have at most ${max} ${what}`;
  return undefined;
}

/** Why a value does not fit its field; `undefined` if it does. */
function fieldProblem(field: QuestionField, value: FieldValue): string | undefined {
  const { kind, options = [], min, max, format } = field;
  const isOption = (one: unknown) => options.some((option) => option.value === one);
  switch (kind) {
    case 'text':
      if (typeof value !== 'string') return 'must be a text';
      return countProblem(field, [...value].length, 'characters') ?? formatProblem(value, format);
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'choice':
      return isOption(value) ? undefined : `must be one of ${options.map((option) => option.value).join(', ')}`;
    case 'choices':
      if (!Array.isArray(value) || !value.every(isOption) || new Set(value).size < value.length)
        return `must be some of ${options.map((option) => option.value).join(', ')}`;
      return countProblem(field, value.length, 'options');
    default:
      if (typeof value !== 'number' || !Number.isFinite(value)) return 'must be a number';
      if (kind === 'integer' && !Number.isInteger(value)) return 'must be a whole number';
      if (min !== undefined && value < min) return `must be at least ${min}`;
      return max !== undefined && value > max ? `must be at most ${max}` : undefined;
  }
}

/**
 * Checks the values of a form against its fields, and adds defaults of fields without a value.
 *
 * @returns the content for the server, or the problems, one sentence each
 */
export function checkContent(
  fields: readonly QuestionField[],
  content: Readonly<Record<string, FieldValue>> = {},
): { content: Record<string, FieldValue> } | { problems: string[] } {
  const problems = Object.keys(content)
    .filter((name) => !fields.some((field) => field.name === name))
    .map((name) => `${name} is not a field of this question`);
  const checked: [string, FieldValue][] = [];
  for (const field of fields) {
    const { name } = field;
    const value = Object.hasOwn(content, name) ? content[name] : field.default;
    if (value === undefined) {
      if (field.required) problems.push(`${name} is required`);
      continue;
    }
    const problem = fieldProblem(field, value);
    if (problem !== undefined) problems.push(`${name} ${problem}`);
    checked.push([name, value]);
  }
  return problems.length > 0 ? { problems } : { content: Object.fromEntries(checked) };
}

/** Converts the text that the user typed for a field. @returns `undefined` for an empty text */
export function typedValue({ kind, options = [] }: QuestionField, typed: string): FieldValue | undefined {
  const text = kind === 'text' ? typed : typed.trim();
  if (text === '') return undefined;
  const chosen = (word: string) => {
    const byPlace = /^\d+$/.test(word) ? options[Number(word) - 1]?.value : undefined;
    return options.find(({ value }) => value === word)?.value ?? byPlace ?? word;
  };
  switch (kind) {
    case 'number':
    case 'integer':
      return /^[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : text;
    case 'boolean':
      if (/^(y|yes|true|on|1)$/i.test(text)) return true;
      return /^(n|no|false|off|0)$/i.test(text) ? false : text;
    case 'choice':
      return chosen(text);
    case 'choices':
      return text.split(',').map((word) => chosen(word.trim()));
    default:
      return text;
  }
}
