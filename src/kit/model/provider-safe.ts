/**
 * JSON Schemas of foreign tools, reduced to the subset that every provider of models accepts, and the way back from
 * arguments of the reduced schema to arguments of the original one. Pure.
 *
 * Each place of a reduced schema has one type. A value that this subset cannot describe (a union of objects, a map, a
 * value of any type) is a string with JSON text. The subset is the intersection of the pages "Function calling" and
 * "Structured outputs" of OpenAI, "FunctionDeclaration" and "Schema" of Vertex AI, and "Tool use" of Anthropic.
 */
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { exactJson, isObject, refuseDeepNesting } from '../../wire/json.ts';
import { beginningOf } from '../../wire/text.ts';
import {
  type Form,
  fits,
  formsOf,
  hasType,
  isRawJSON,
  merged,
  SCALARS,
  type Schema,
  targetOf,
  textsOf,
  typeOf,
} from './schema-forms.ts';

export type SafeParameters = {
  /** The parameters of the function, an object. */
  readonly schema: Record<string, unknown>;
  /**
   * Arguments for the server from those of the model. Numbers keep their digits.
   *
   * @throws ReveilleError `invalid_request` when a text is not JSON; the sentence is for the model
   */
  readonly restore: (args: Record<string, unknown>) => Record<string, unknown>;
};

/** The longest description of a function or of a place, in UTF-16 units. */
export const DESCRIPTION_MAX = 1024;
/** Tried when the whole schema is too large. */
const SHORT_DESCRIPTION = 200;
/** The longest schema, as JSON text. Each request to the model has all of them. */
const SCHEMA_MAX = 64 * 1024;
/** Objects and lists inside each other; deeper ones are JSON text. */
const LEVELS_MAX = 5;
/** Members of all described objects; further objects are JSON text. */
const PLACES_MAX = 200;
/** Schemas that are followed for one tool. References can make a small document exponentially large. */
const STEPS_MAX = 5000;
const ENUM_MAX = 250;
const ENUM_CHARACTERS_MAX = 4096;
/** The longest value of a keyword in a description, as JSON text. */
const NOTE_MAX = 200;

/** The names of places that every provider accepts. */
const PLACE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** The place with the JSON text of all arguments, when they cannot be described one by one. */
const WHOLE = 'arguments';

const KEPT: Readonly<Record<string, readonly string[]>> = {
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  array: ['minItems', 'maxItems'],
};
/** Keywords that become part of the description. */
const NOTED = [
  ...['format', 'pattern', 'minLength', 'maxLength', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['uniqueItems', 'default'],
];

type Place = {
  readonly schema: Record<string, unknown>;
  /** @param where the path of the value, for messages */
  readonly restore: (value: unknown, where: string) => unknown;
  /** What the original schema allows. */
  readonly allowsNull: boolean;
  readonly allowsEmptyText: boolean;
  /** Whether it is JSON text, which can be `null`. */
  readonly isText: boolean;
};

type Context = { readonly root: Schema; readonly descriptionMax: number; placesLeft: number; stepsLeft: number };

const wordOf = (type: string) => (type === 'boolean' ? 'true or false' : `${type === 'integer' ? 'an' : 'a'} ${type}`);

function notesOf(schema: Schema): string[] {
  const notes = NOTED.flatMap((keyword) => {
    const value = Object.hasOwn(schema, keyword) ? (JSON.stringify(schema[keyword]) ?? '') : '';
    return value === '' || value.length > NOTE_MAX ? [] : [`${keyword}: ${value}`];
  });
  return notes.length === 0 ? [] : [`(${notes.join(', ')})`];
}

/** A description with its notes; the notes have precedence. */
function description({ descriptionMax }: Context, text: unknown, notes: readonly string[]) {
  const end = beginningOf(notes.join(' '), descriptionMax);
  const left = descriptionMax - end.length - 1;
  const start = typeof text === 'string' && left > 1 ? beginningOf(text, left) : '';
  const whole = [start, end].filter((part) => part !== '').join(' ');
  return whole === '' ? {} : { description: whole };
}

const NOT_SHOWN = ['$schema', '$id', '$defs', 'definitions', 'title'];

/** A schema without references and titles as text for the model; `undefined` if it is too long. */
function shownSchema(given: unknown, context: Context, refs: readonly string[]): string | undefined {
  const { root, descriptionMax } = context;
  const limit = Math.floor(descriptionMax * 0.7);
  for (const omitted of [NOT_SHOWN, [...NOT_SHOWN, 'description']]) {
    let left = limit;
    const inline = (part: unknown, path: readonly string[], isMap = false): unknown => {
      if (left-- < 0 || context.stepsLeft-- <= 0) return undefined;
      if (Array.isArray(part)) return part.map((one) => inline(one, path));
      if (!isObject(part)) return part;
      const { $ref, ...own } = part;
      if (typeof $ref === 'string') {
        if (path.includes($ref)) return {};
        const target = targetOf(root, $ref);
        return inline(isObject(target) ? merged(target, own) : target, [...path, $ref]);
      }
      const shown = Object.entries(part).filter(([key]) => isMap || !omitted.includes(key));
      return Object.fromEntries(
        shown.map(([key, value]) => [key, inline(value, path, !isMap && key === 'properties')]),
      );
    };
    const text = JSON.stringify(inline(given, refs)) ?? '';
    if (left >= 0 && context.stepsLeft >= 0 && text.length <= limit) return text === '{}' ? undefined : text;
  }
  return undefined;
}

function parsedText(text: string, where: string): unknown {
  refuseDeepNesting(text, where);
  return exactJson(text);
}

/** The description of a place: its own, or the one that all of its forms share. */
function descriptionOf(given: unknown, forms: readonly Form[] = []): unknown {
  if (isObject(given) && given.description !== undefined) return given.description;
  const [first, ...others] = forms.map(({ schema }) => schema.description);
  return others.every((other) => other === first) ? first : undefined;
}

/** A value that the subset cannot describe, as JSON text. */
function textPlace(
  given: unknown,
  forms: readonly Form[] | undefined,
  context: Context,
  refs: readonly string[],
): Place {
  // The description of the place has its own.
  const { description: _, ...shape } = isObject(given) ? given : {};
  const shown = shownSchema(shape, context, refs);
  const form = shown === undefined ? 'JSON text.' : `JSON text of a value that fits this JSON Schema: ${shown}`;
  const allows = (value: unknown) => forms === undefined || forms.some((one) => fits(one, value));
  return {
    schema: { type: 'string', ...description(context, descriptionOf(given, forms), [form]) },
    restore(value, where) {
      if (typeof value !== 'string') return value;
      try {
        const parsed = parsedText(value, where);
        return allows(parsed) || !allows(value) ? parsed : value;
      } catch (thrown) {
        if (allows(value)) return value;
        if (thrown instanceof ReveilleError) throw thrown;
        throw new ReveilleError('invalid_request', `${where} must be JSON text (${thrownText(thrown)})`);
      }
    },
    allowsNull: allows(null),
    allowsEmptyText: allows(''),
    isText: true,
  };
}

/** The texts of listed values. A string has precedence over another value with the same text. */
function enumTexts(values: readonly unknown[]): Map<string, unknown> {
  const byText = new Map<string, unknown>();
  const strings = values.filter((value) => typeof value === 'string');
  for (const value of strings) byText.set(value.toWellFormed(), value);
  for (const value of values) {
    const text = JSON.stringify(value);
    if (typeof value !== 'string' && !byText.has(text)) byText.set(text, value);
  }
  // Providers refuse an empty member.
  byText.delete('');
  return byText;
}

const isEmptyAllowed = ({ schema }: Form) =>
  !(typeof schema.minLength === 'number' && schema.minLength > 0) && schema.format === undefined;

function placeOf(given: unknown, context: Context, refs: readonly string[], level: number): Place {
  const forms = formsOf(given, context, refs);
  const withoutNull = (forms ?? []).flatMap((form): Form[] => {
    const type = typeOf(form);
    if (type === 'null') return [];
    if (!Array.isArray(form.schema.enum)) return [form];
    const values = form.schema.enum.filter((value) => value !== null && hasType(type, value));
    return values.length === 0 ? [] : [{ ...form, schema: { ...form.schema, enum: values } }];
  });
  const asText = () => textPlace(given, forms, context, refs);
  if (forms === undefined || withoutNull.length === 0) return asText();
  const [first, ...others] = withoutNull as [Form, ...Form[]];
  const allows = {
    allowsNull: forms.some((form) => fits(form, null)),
    allowsEmptyText: withoutNull.some((form) => fits(form, '') && isEmptyAllowed(form)),
    isText: false,
  };
  const place = (schema: Schema, restore: Place['restore'], notes: readonly string[] = []): Place => ({
    schema: {
      ...schema,
      ...description(context, descriptionOf(given, withoutNull), [
        ...notes,
        ...(others.length === 0 ? notesOf(first.schema) : []),
      ]),
    },
    restore,
    ...allows,
  });

  if (withoutNull.every(({ schema }) => Array.isArray(schema.enum))) {
    const byText = enumTexts(withoutNull.flatMap(({ schema }) => schema.enum as unknown[]));
    const texts = [...byText.keys()];
    if (texts.length > 0 && texts.length <= ENUM_MAX && texts.join('').length <= ENUM_CHARACTERS_MAX)
      return place({ type: 'string', enum: texts }, (value) => byText.get(value as string) ?? value);
  }

  const types = new Set(withoutNull.map((form) => typeOf(form)));
  if (types.has('number')) types.delete('integer');
  const [type, ...more] = types;
  if (types.has(undefined) || type === undefined) return asText();
  if (more.length > 0) {
    if (![...types].every((one) => SCALARS.includes(one!))) return asText();
    const words = [...types].map((one) => wordOf(one!));
    return place({ type: 'string' }, (value, where) => scalarOf(withoutNull, value, where), [
      `As text: ${words.slice(0, -1).join(', ')} or ${words.at(-1)}.`,
    ]);
  }
  if (SCALARS.includes(type)) {
    const kept = others.length > 0 ? [] : (KEPT[type] ?? []).filter((name) => Number.isFinite(first.schema[name]));
    return place({ type, ...Object.fromEntries(kept.map((name) => [name, first.schema[name]])) }, (value) => value);
  }
  if (level >= LEVELS_MAX) return asText();
  if (type === 'array') {
    const { items = {}, prefixItems } = first.schema;
    if (others.length > 0 || Array.isArray(items) || prefixItems !== undefined) return asText();
    const element = placeOf(items, context, first.refs, level + 1);
    const kept = KEPT.array!.filter(
      (name) => Number.isSafeInteger(first.schema[name]) && Number(first.schema[name]) >= 0,
    );
    return place(
      { type, items: element.schema, ...Object.fromEntries(kept.map((name) => [name, first.schema[name]])) },
      (value, where) =>
        Array.isArray(value) ? value.map((one, index) => element.restore(one, `${where}[${index}]`)) : value,
    );
  }
  const members = membersOf(withoutNull, context, level);
  return members === undefined ? asText() : place(members.schema, members.restore);
}

/** A scalar from its text, by the forms that it may have; a string where that is one of them. */
function scalarOf(forms: readonly Form[], value: unknown, where: string): unknown {
  if (typeof value !== 'string' || forms.some((form) => fits(form, value))) return value;
  try {
    const parsed = parsedText(value, where);
    return forms.some((form) => fits(form, parsed)) ? parsed : value;
  } catch {
    return value;
  }
}

/** Names for the places of an object that every provider accepts, by the original ones. */
function placeNames(names: readonly string[]): Map<string, string> {
  const isSafe = (name: string) => PLACE_NAME.test(name) && name !== '__proto__';
  const taken = new Set(names.filter(isSafe));
  return new Map(
    names.map((name) => {
      if (isSafe(name)) return [name, name];
      const start = name
        .replace(/[^A-Za-z0-9_]/g, '_')
        .replace(/^(?![A-Za-z_])/, '_')
        .slice(0, 56);
      let safe = start === '__proto__' ? '_proto' : start;
      for (let number = 2; taken.has(safe); number++) safe = `${start}_${number}`;
      taken.add(safe);
      return [name, safe];
    }),
  );
}

/** An object whose members have names; `undefined` for any other one. */
function membersOf(
  forms: readonly Form[],
  context: Context,
  level: number,
): Pick<Place, 'schema' | 'restore'> | undefined {
  const [{ schema: first, refs }] = forms as [Form];
  const same = forms.every(({ schema }) => JSON.stringify(schema.properties) === JSON.stringify(first.properties));
  if (!same) return undefined;
  const listed = isObject(first.properties) ? first.properties : {};
  // Of several forms only the common requirements are certain.
  const required = new Set(
    textsOf(first.required).filter((name) => forms.every(({ schema }) => textsOf(schema.required).includes(name))),
  );
  const names = [...new Set([...Object.keys(listed), ...required])].filter((name) => listed[name] !== false);
  const { additionalProperties: more, patternProperties } = first;
  if (names.length === 0 && (level > 0 || more === true || isObject(more) || isObject(patternProperties)))
    return undefined;
  if (names.length > context.placesLeft) return undefined;
  context.placesLeft -= names.length;

  const safeNames = placeNames(names);
  const places = names.map((name) => {
    const place = placeOf(Object.hasOwn(listed, name) ? listed[name] : {}, context, refs, level + 1);
    // A place that must be null to be empty can be omitted.
    const isNullable = required.has(name) && place.allowsNull && !place.isText;
    return { name, safe: safeNames.get(name)!, place, isNullable };
  });
  const needed = places.filter(({ name, isNullable }) => required.has(name) && !isNullable).map(({ safe }) => safe);
  const byName = new Map(places.map((one) => [one.safe, one]));

  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(places.map(({ safe, place }) => [safe, place.schema])),
      ...(needed.length > 0 && { required: needed }),
      ...(more === false && { additionalProperties: false }),
    },
    restore(value, where) {
      if (!isObject(value) || isRawJSON(value)) return value;
      const restored = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
        const found = byName.get(key);
        if (found === undefined) return [[key, member]];
        const { name, place } = found;
        // Models in strict mode write every place.
        const isEmpty = (member === null && !place.allowsNull) || (member === '' && !place.allowsEmptyText);
        if (isEmpty && !required.has(name)) return [];
        if (member === null) return [[name, null]];
        return [[name, place.restore(member, where === '' ? key : `${where}.${key}`)]];
      });
      const given = new Set(restored.map(([name]) => name));
      const nulls = places.filter(({ name, isNullable }) => isNullable && !given.has(name));
      return Object.fromEntries([...restored, ...nulls.map(({ name }): [string, unknown] => [name, null])]);
    },
  };
}

/** All arguments as one JSON text. */
function wholeAsText(root: Schema, context: Context): SafeParameters {
  const { schema, restore } = textPlace(root, [{ schema: { type: 'object' }, refs: [] }], context, ['#']);
  return {
    schema: { type: 'object', properties: { [WHOLE]: schema }, required: [WHOLE] },
    restore(args) {
      const { [WHOLE]: text } = args;
      if (typeof text !== 'string') return args;
      const value = restore(text, WHOLE);
      if (isObject(value)) return value;
      throw new ReveilleError('invalid_request', `${WHOLE} must be the JSON text of an object`);
    },
  };
}

function safeWithin(root: Schema, descriptionMax: number): SafeParameters {
  const context = { root, descriptionMax, placesLeft: PLACES_MAX, stepsLeft: STEPS_MAX };
  const forms = formsOf({ ...root, type: 'object' }, context, ['#']);
  const members = forms && membersOf(forms, context, 0);
  if (members === undefined) return wholeAsText(root, context);
  return { schema: members.schema, restore: (args) => members.restore(args, '') as Record<string, unknown> };
}

/**
 * Reduces the input schema of a tool.
 *
 * @param inputSchema as the server sends it
 */
export function providerSafe(inputSchema: object): SafeParameters {
  const root = inputSchema as Schema;
  try {
    return smallestOf(root);
  } catch (thrown) {
    // A schema that nests too deep for the stack, of any of its readers.
    if (!(thrown instanceof RangeError)) throw thrown;
    return wholeAsText({}, { root: {}, descriptionMax: DESCRIPTION_MAX, placesLeft: 0, stepsLeft: STEPS_MAX });
  }
}

function smallestOf(root: Schema): SafeParameters {
  const sizeOf = ({ schema }: SafeParameters) => JSON.stringify(schema).length;
  const safe = safeWithin(root, DESCRIPTION_MAX);
  if (sizeOf(safe) <= SCHEMA_MAX) return safe;
  const short = safeWithin(root, SHORT_DESCRIPTION);
  return sizeOf(short) <= SCHEMA_MAX
    ? short
    : wholeAsText(root, { root, descriptionMax: DESCRIPTION_MAX, placesLeft: 0, stepsLeft: STEPS_MAX });
}
