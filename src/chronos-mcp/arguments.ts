/**
 * Reads the arguments of a tool call as models write them: numbers as text, JSON as text, `null` and `""` for what they do
 * not give, and further fields of an alarm in `more`.
 */
import { z } from 'zod';
import { alarmCreateSchema, alarmPatchSchema, LIST_LIMIT_MAX, RAW_ALARM_FIELDS } from '../wire/alarm.ts';
import {
  ALARM_KINDS,
  ALARM_STATUSES,
  CLEARABLE_FIELDS,
  type FieldName,
  type FieldType,
  fieldOf,
  OWNER_FIELDS,
} from '../wire/alarm-fields.ts';
import { ReveilleError } from '../wire/errors.ts';
import {
  encodeJson,
  isExact,
  isNumberLiteral,
  isObject,
  membersOf,
  parseJsonObject,
  RawJson,
  refuseDeepNesting,
} from '../wire/json.ts';
import { parseOrThrow, showValue } from '../wire/validate.ts';
import { EXAMPLES, HELP_TOPICS, type HelpTopic } from './help.ts';

type Fields = Record<string, unknown>;
/** What a text of a model is read as. */
type Reads = 'text' | 'id' | 'number' | 'boolean' | 'list' | 'object' | 'json';

const READS: Readonly<Record<FieldType, Reads>> = {
  ...{ choice: 'text', text: 'text', string: 'text', message: 'text', instant: 'text', author: 'text' },
  ...{ identifier: 'id', seconds: 'number', count: 'number', switch: 'boolean', list: 'list', object: 'object' },
  json: 'json',
} as const;

/** What the fields of an alarm are read as; an id, a zone or a model never has a name that spells a missing value. */
const ALARM_READS: Readonly<Record<string, Reads>> = {
  ...Object.fromEntries(OWNER_FIELDS.map((name) => [name, READS[fieldOf(name).type]])),
  ...{ timezone: 'id', idempotency_key: 'id', alarm_id: 'id', model: 'id', clear: 'list', dry_run: 'boolean' },
};

const invalid = (message: string) => new ReveilleError('invalid_request', message);

function inexact(name: string, literal: string): ReveilleError {
  const shown = literal.length > 60 ? `${literal.slice(0, 60)}…` : literal;
  return invalid(`${name} must be a number of at most 15 digits; ${shown} cannot be read exactly`);
}

/** @throws ReveilleError for a number anywhere in the text that would be rounded */
function refuseInexact(name: string, text: string): void {
  const check = (_key: string, value: unknown, { source }: { readonly source?: string }) => {
    if (typeof value === 'number' && source !== undefined && !isExact(source)) throw inexact(name, source);
    return value;
  };
  JSON.parse(text, check as (key: string, value: unknown) => unknown);
}

/** JSON in a text, unless it is something else. */
function jsonIn(text: string, isIt: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isIt(value) ? value : text;
  } catch {
    return text;
  }
}

const isMissingWord = (value: unknown) => typeof value === 'string' && /^(?:null|none|undefined|nil)$/i.test(value);

/** The list of a turn without tools: `["none"]`. */
const isNoTools = (list: unknown) => Array.isArray(list) && list.length === 1 && /^none$/i.test(String(list[0]));

/** @throws ReveilleError for a text that spells a missing value, which no id, zone or list has */
function refuseMissingWord(name: string, value: unknown): void {
  const words = Array.isArray(value) ? value : [value];
  const found = words.find((word) => isMissingWord(word) && !(name === 'tools' && isNoTools(value)));
  if (found === undefined) return;
  throw invalid(`${name} must not be the text ${showValue(found)}; omit ${name} if there is none`);
}

/** A value by the kind of its field. A value of another type stays, and the schema refuses it. */
function readValue(name: string, reads: Reads, value: unknown): unknown {
  if (value instanceof RawJson) {
    // The text of a payload is JSON if it can be.
    const text: unknown = value.text.startsWith('"') ? JSON.parse(value.text) : undefined;
    return typeof text === 'string' && jsonIn(text, () => true) !== text ? RawJson.parse(text) : value;
  }
  if (typeof value !== 'string') return value;
  if (reads === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  if (reads === 'number' && isNumberLiteral(value)) {
    if (!isExact(value)) throw inexact(name, value);
    return Number(value);
  }
  if (reads === 'object' || reads === 'list') refuseDeepNesting(value, name);
  if (reads === 'object') return jsonIn(value, isObject);
  return reads === 'list' ? jsonIn(value, Array.isArray) : value;
}

/**
 * Fields with a value that means nothing: strict clients send every field of the schema, and these have neither `null` nor
 * `""`.
 */
const NEUTRAL: Readonly<Record<string, unknown>> = { action: 'none', help: 'none', delay_seconds: 0, limit: 0 };

const isNotGiven = (value: unknown) =>
  value === null || value === '' || (value instanceof RawJson && /^(?:null|"")$/.test(value.text));

/** Members of an object with values of another program, in which `null` and `""` mean themselves. */
const VALUES: ReadonlySet<string> = new Set(['equals', 'arguments', 'headers']);

/** An object without the members that are not given; `undefined` if it then has none, and had some. */
function withoutMissing(value: unknown): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(value);
  const given = members.flatMap(([name, member]): [string, unknown][] => {
    if (VALUES.has(name)) return [[name, member]];
    const kept = isNotGiven(member) ? undefined : withoutMissing(member);
    return kept === undefined ? [] : [[name, kept]];
  });
  return given.length === 0 && members.length > 0 ? undefined : Object.fromEntries(given);
}

/** More than an alarm has. Each field costs time, and the callers share a process. */
const FIELDS_MAX = 100;

/** Parses the text of an object. @param what its name in messages */
function parseObject(source: string, what: string, raw: readonly string[]): Fields {
  refuseDeepNesting(source, what);
  const value = jsonIn(source, isObject);
  if (!isObject(value))
    throw invalid(`${what} must be a JSON object, such as {"max_fires": 3} (got ${showValue(source)})`);
  if (Object.keys(value).length > FIELDS_MAX) throw invalid(`${what} must have at most ${FIELDS_MAX} fields`);
  return parseJsonObject(source, raw);
}

/** Arguments that are `null` are none. */
const objectText = (given: string) => (given === 'null' ? '{}' : given);

const slicesOf = (source: string) =>
  Object.fromEntries([...membersOf(source)].map(([name, text]) => [name, new RawJson(text)]));

type Unfolded = { source: string; fromMore: ReadonlySet<string>; sent: readonly string[] };

/** The source text of the arguments with the fields of `more` among them, the names of these, and the names beside them. */
function unfolded(given: string): Unfolded {
  const source = objectText(given);
  const fields = parseObject(source, 'arguments', []);
  const sent = Object.keys(fields);
  const { more } = fields;
  if (!Object.hasOwn(fields, 'more')) return { source, fromMore: new Set(), sent };
  const { more: slice, ...others } = slicesOf(source);
  if (isNotGiven(more)) return { source: encodeJson(others), fromMore: new Set(), sent };
  const inside = typeof more === 'string' ? more : slice!.text;
  const further = parseObject(inside, 'more', []);
  for (const name of Object.keys(further)) {
    if (name === 'more' || name === 'help') throw invalid(`more must not contain ${name}; give it beside more`);
    if (Object.hasOwn(fields, name) && !isNotGiven(fields[name]))
      throw invalid(`${name} is given twice, in more and beside it; give it once`);
  }
  return {
    source: encodeJson({ ...others, ...slicesOf(inside) }),
    fromMore: new Set(Object.keys(further)),
    sent,
  };
}

/**
 * Parses the arguments of a call, and reads what a model wrote as text.
 *
 * @param given well-formed JSON, as the client sent it
 * @param raw fields of any JSON; they are returned as source text
 */
function readFields(given: string, reads: Readonly<Record<string, Reads>>, raw: readonly string[] = []): Fields {
  const source = objectText(given);
  const fields = parseObject(source, 'arguments', raw);
  const texts = membersOf(source);
  for (const [name, written] of Object.entries(fields)) {
    const kind = Object.hasOwn(reads, name) ? reads[name]! : 'text';
    const value = readValue(name, kind, written);
    if (typeof value === 'number') {
      const literal = texts.get(name)!;
      if (!isExact(literal.startsWith('"') ? JSON.parse(literal) : literal)) throw inexact(name, literal);
    }
    if (isObject(value) && kind === 'object')
      refuseInexact(name, typeof written === 'string' ? written : texts.get(name)!);
    if (kind === 'id' || kind === 'list') refuseMissingWord(name, value);
    fields[name] = kind === 'object' ? withoutMissing(value) : value;
    if (fields[name] === undefined || (Object.hasOwn(NEUTRAL, name) && NEUTRAL[name] === value)) delete fields[name];
  }
  return fields;
}

function withoutNotGiven(fields: Fields, isKept: (name: string) => boolean = () => false): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => !isNotGiven(value) || isKept(name)));
}

/** The start of the id of an alarm that no other one has, or all of it. */
export const alarmIdStart = z
  .string()
  .regex(
    /^[0-9a-f][0-9a-f-]{5,35}$/,
    'must be the id of an alarm, or six or more of its first characters; alarm_list shows the ids',
  );

const alarmListArguments = z.strictObject({
  alarm_id: alarmIdStart.optional(),
  status: z.enum(ALARM_STATUSES).optional(),
  kind: z.enum(ALARM_KINDS).optional(),
  text: z.string().max(200).optional(),
  limit: z.int().min(1).max(LIST_LIMIT_MAX).optional(),
  full: z.boolean().optional(),
  cursor: z.string().max(200).optional(),
});
export type AlarmListArguments = z.output<typeof alarmListArguments>;

/** @throws ReveilleError `invalid_request` naming field, value and remedy, as {@link readSet} */
export function readList(source: string): AlarmListArguments {
  const fields = readFields(source, { limit: 'number', full: 'boolean', alarm_id: 'id', cursor: 'id' });
  return parseOrThrow(alarmListArguments, withoutNotGiven(fields));
}

/** @throws ReveilleError `invalid_request` */
export function readCancel(source: string): { alarm_id: string } {
  // Its id is required, so that a word for a missing value is refused as no id.
  return parseOrThrow(z.strictObject({ alarm_id: alarmIdStart }), withoutNotGiven(readFields(source, {})));
}

/** What `alarm_set` does with an existing alarm, besides edits. */
export const ALARM_ACTIONS = ['pause', 'resume', 'trigger'] as const;
export type AlarmAction = (typeof ALARM_ACTIONS)[number];

const changeSchema = alarmPatchSchema.extend({
  alarm_id: alarmIdStart,
  action: z.enum(ALARM_ACTIONS).optional(),
  clear: z.array(z.enum(CLEARABLE_FIELDS)).max(CLEARABLE_FIELDS.length).optional(),
  dry_run: z.literal(false, { error: 'is only for a new alarm; omit alarm_id and give the whole time' }).optional(),
});

/** Never there, but errors name the fields that a misspelt one may have meant. */
const never = z.undefined().optional();
const newSchema = alarmCreateSchema.extend({
  ...{ alarm_id: never, action: never, clear: never, more: never },
  dry_run: z.boolean().optional(),
});
/** With `dry_run`, which stores nothing, an alarm needs no message. */
const previewSchema = newSchema.partial({ wake_message: true });

/** What a call of `alarm_set` asks for. `fields` are checked, and as the client gave them: without the changes of the schema. */
export type AlarmSetCall =
  | { readonly asks: 'help'; readonly topic: HelpTopic }
  | { readonly asks: 'new' | 'preview'; readonly fields: Fields }
  | {
      readonly asks: 'change';
      readonly id: string;
      readonly action?: AlarmAction;
      readonly fields: Fields;
      /** Names of fields that came without a value; a strict client sends all of them, and none is named then. */
      readonly empty: readonly string[];
    };

/** Checks fields by a schema; an error about a field that needs help to write has a right example. */
function check(schema: z.ZodType, fields: Fields, fromMore: ReadonlySet<string>): void {
  try {
    parseOrThrow(schema, fields);
  } catch (thrown) {
    const { message } = thrown as ReveilleError;
    const [, name = ''] = /^(?:unknown field ")?([a-z_]+)/.exec(message) ?? [];
    const where = fromMore.has(name) ? 'more: ' : '';
    const example = Object.hasOwn(EXAMPLES, name)
      ? `; right is, for example, ${JSON.stringify({ [name]: EXAMPLES[name] })}`
      : '';
    throw new ReveilleError('invalid_request', `${where}${message}${example}`, { cause: thrown });
  }
}

/** The list of tools of a turn. An empty one may mean all of them or none. */
function readTools({ tools }: Fields, isNew: boolean): unknown {
  const forAll = isNew ? 'omit `tools` for all' : 'name `tools` in `clear` for all';
  if (Array.isArray(tools) && tools.length === 0)
    throw invalid(`tools must not be empty; ${forAll}, or write \`["none"]\` for a turn without tools`);
  return isNoTools(tools) ? [] : tools;
}

const isKind = (value: unknown) => ALARM_KINDS.some((kind) => kind === value);

/** A new alarm without what its time decides: strict clients send a kind, and models a zone beside an instant. */
function withoutDecided({ kind, timezone, ...fields }: Fields): Fields {
  const isGiven = (...names: string[]) => names.some((name) => fields[name] !== undefined);
  return {
    ...(kind !== undefined && !(isKind(kind) && isGiven('when', 'event', 'after', 'expect')) && { kind }),
    ...fields,
    ...(timezone !== undefined && (isGiven('when') || !isGiven('fire_at', 'delay_seconds')) && { timezone }),
  };
}

/**
 * Reads a call of `alarm_set`. In a new alarm, a field that is `null` or `""` is not given. In an edit, the fields of the
 * tool's schema likewise, because strict clients send them all; `null` clears the other ones, and `clear` any.
 *
 * @param source well-formed JSON, as the client sent it
 * @param inSchema the names in the tool's schema
 * @throws ReveilleError `invalid_request` naming field, value and remedy
 */
export function readSet(source: string, inSchema: ReadonlySet<string>): AlarmSetCall {
  const { source: whole, fromMore, sent } = unfolded(source);
  const read = readFields(whole, ALARM_READS, RAW_ALARM_FIELDS);
  const { help, ...given } = read;
  if (!isNotGiven(help ?? null)) {
    const topic = HELP_TOPICS.find((known) => known === help);
    if (topic === undefined) throw invalid(`help must be one of ${HELP_TOPICS.join(', ')} (got ${showValue(help)})`);
    return { asks: 'help', topic };
  }
  const isNew = isNotGiven(given.alarm_id ?? null);
  if (Object.hasOwn(given, 'tools') && !isNotGiven(given.tools)) given.tools = readTools(given, isNew);
  if (isNew) {
    const { alarm_id: _, ...fields } = withoutDecided(withoutNotGiven(given));
    if (Array.isArray(fields.clear) && fields.clear.length === 0) delete fields.clear;
    for (const name of ['action', 'clear'])
      if (fields[name] !== undefined)
        throw invalid(`${name} needs alarm_id, the alarm to change; omit ${name} for a new alarm`);
    const isPreview = fields.dry_run === true;
    check(isPreview ? previewSchema : newSchema, fields, fromMore);
    const { dry_run, ...alarm } = fields;
    return { asks: isPreview ? 'preview' : 'new', fields: alarm };
  }
  const isStrict = [...inSchema].every((name) => sent.includes(name));
  if (isStrict) delete given.kind;
  const edit = withoutNotGiven(given, (name) => given[name] === null && !inSchema.has(name));
  check(changeSchema, edit, fromMore);
  const { alarm_id: id, action, clear = [], dry_run: _, ...fields } = edit;
  for (const name of clear as FieldName[]) {
    if (Object.hasOwn(fields, name)) throw invalid(`${name} is given and in clear; choose one`);
    fields[name] = null;
  }
  const missing = Object.keys(given).filter((name) => inSchema.has(name) && isNotGiven(given[name]));
  if (action === undefined && Object.keys(fields).length === 0 && missing.length > 0)
    throw invalid(`the call changes nothing: ${missing.join(', ')} has no value; to empty a field, name it in clear`);
  const empty = isStrict ? [] : missing;
  return {
    asks: 'change',
    id: id as string,
    fields,
    empty,
    ...(action !== undefined && { action: action as AlarmAction }),
  };
}
