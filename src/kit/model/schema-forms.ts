/**
 * What a JSON Schema allows, as a list of forms: without references and combinations, and each with at most one type.
 * Pure.
 */
import { isObject } from '../../wire/json.ts';

export type Schema = Readonly<Record<string, unknown>>;

/** Members that are merged in the time of one step. */
const MEMBERS_PER_STEP = 20;
const ALTERNATIVES_MAX = 64;
/** References and combinations inside each other at one place. */
const COMBINATIONS_MAX = 32;
export const SCALARS: readonly string[] = ['string', 'number', 'integer', 'boolean'];
const TYPES = new Set([...SCALARS, 'array', 'object', 'null']);

/** One form of a value: no references and combinations, and at most one type. */
export type Form = { readonly schema: Schema /** The references that led to it. */; readonly refs: readonly string[] };

/** The document of references, and how many schemas may still be followed. */
type Followed = { readonly root: Schema; stepsLeft: number };

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textsOf = (value: unknown) => listOf(value).filter((one) => typeof one === 'string');
export const { isRawJSON } = JSON as unknown as { isRawJSON(value: unknown): value is { readonly rawJSON: string } };

/** The schema that a reference inside the document names; `undefined` where there is none. */
export function targetOf(root: Schema, ref: string): unknown {
  if (!/^#(?:\/|$)/.test(ref)) return undefined;
  let at: unknown = root;
  for (const token of ref.split('/').slice(1)) {
    let key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    try {
      key = decodeURIComponent(key);
    } catch {
      // A percent sign that escapes nothing.
    }
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Schema)[key];
  }
  return at;
}

/** The types that a schema names; `undefined` for any. */
function typesOf({ type }: Schema): readonly string[] | undefined {
  const types = [type].flat().filter((one) => TYPES.has(one as string)) as string[];
  return types.length === 0 ? undefined : types;
}

function commonTypes(one: Schema, other: Schema): readonly string[] | undefined {
  const [these, those] = [typesOf(one), typesOf(other)];
  if (these === undefined || those === undefined) return these ?? those;
  return [...new Set([...these, ...those])].filter((type) =>
    [these, those].every((list) => list.includes(type) || (type === 'integer' && list.includes('number'))),
  );
}

/** Both schemas at once; the outer one has precedence. `undefined` when no value has a type of both. */
export function merged(inner: Schema, outer: Schema): Schema | undefined {
  const type = commonTypes(inner, outer);
  if (type?.length === 0) return undefined;
  const [these, those] = [inner.properties, outer.properties].map((one) => (isObject(one) ? one : {}));
  const both = Object.entries(these!).flatMap(([name, one]): [string, unknown][] =>
    Object.hasOwn(those!, name) ? [[name, { allOf: [one, those![name]] }]] : [],
  );
  const properties = { ...these, ...those, ...Object.fromEntries(both) };
  const required = [...new Set([...textsOf(inner.required), ...textsOf(outer.required)])];
  return {
    ...{ ...inner, ...outer },
    ...(type && { type }),
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}

/** The forms of a value; `undefined` when it may have any, or the schema cannot be followed. */
export function formsOf(given: unknown, context: Followed, refs: readonly string[], level = 0): Form[] | undefined {
  if (given === false || level > COMBINATIONS_MAX || context.stepsLeft-- <= 0) return undefined;
  if (!isObject(given)) return [{ schema: {}, refs }];
  const { $ref, allOf, anyOf, oneOf, const: only, ...own } = given;
  let forms: Form[] | undefined = [{ schema: Object.hasOwn(given, 'const') ? { ...own, enum: [only] } : own, refs }];
  const combine = (others: readonly (Form[] | undefined)[]) => {
    if (forms === undefined || others.includes(undefined)) {
      forms = undefined;
      return;
    }
    forms = forms.flatMap((outer) =>
      (others as Form[][]).flat().flatMap((inner) => {
        const schema = merged(inner.schema, outer.schema);
        const { properties } = schema ?? {};
        context.stepsLeft -= isObject(properties) ? Math.ceil(Object.keys(properties).length / MEMBERS_PER_STEP) : 0;
        return schema === undefined ? [] : [{ schema, refs: [...new Set([...outer.refs, ...inner.refs])] }];
      }),
    );
    if (forms.length === 0 || forms.length > ALTERNATIVES_MAX) forms = undefined;
  };
  const inside = (part: unknown, path = refs) => formsOf(part, context, path, level + 1);
  if (typeof $ref === 'string') {
    // A cycle is cut here.
    if (refs.includes($ref)) return undefined;
    combine([inside(targetOf(context.root, $ref), [...refs, $ref])]);
  }
  for (const part of listOf(allOf)) combine([inside(part)]);
  for (const union of [listOf(anyOf), listOf(oneOf)]) if (union.length > 0) combine(union.map((part) => inside(part)));
  return forms?.flatMap(({ schema, refs: path }) =>
    (typesOf(schema) ?? [undefined]).map((type) => ({ schema: { ...schema, type }, refs: path })),
  );
}

/** The type of a form, inferred where it is not named. */
export function typeOf({ schema }: Form): string | undefined {
  if (schema.type !== undefined) return schema.type as string;
  if (isObject(schema.properties)) return 'object';
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array';
  const [kind, ...others] = new Set(listOf(schema.enum).map((one) => kindOf(one)));
  return others.length === 0 ? kind : undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (isRawJSON(value)) return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}

export function hasType(type: string | undefined, value: unknown): boolean {
  if (type !== 'integer') return type === undefined || type === kindOf(value);
  return Number.isInteger(isRawJSON(value) ? Number(value.rawJSON) : value);
}

/** Whether a value has the type and is among the listed values of a form. */
export function fits(form: Form, value: unknown): boolean {
  if (!hasType(typeOf(form), value)) return false;
  const text = JSON.stringify(isRawJSON(value) ? Number(value.rawJSON) : value);
  return !Array.isArray(form.schema.enum) || form.schema.enum.some((one) => JSON.stringify(one) === text);
}
