/**
 * Checks that a schema has only grown, as v0.1.x allows. Pure. Input and output grow in opposite directions: existing
 * callers and existing readers must keep working.
 *
 * | | additive | not additive |
 * |---|---|---|
 * | any | a new optional member, a new enum value, other text | a removed or changed member, type or enum value |
 * | in  | a required member becomes optional, a bound is loosened | a member becomes required, a bound is tightened, members are refused |
 * | out | an optional member becomes required, a bound is tightened | a required member becomes optional, a bound is loosened |
 *
 * An enum of an answer may grow: readers treat an unknown value as `unknown`.
 */

export type Schema = { readonly [keyword: string]: unknown };
export type Direction = 'input' | 'output';

/** Keywords for people, without an effect on values. */
export const WORDS: ReadonlySet<string> = new Set([
  'title',
  'description',
  'examples',
  '$comment',
  'deprecated',
  '$schema',
]);

type Bound = { readonly keyword: string; readonly at: 'least' | 'most' };
const BOUNDS: readonly Bound[] = [
  ...['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'].map(
    (keyword): Bound => ({ keyword, at: 'least' }),
  ),
  ...['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'].map(
    (keyword): Bound => ({ keyword, at: 'most' }),
  ),
];
/** Keywords whose restrictions cannot be compared; only adding or removing them is checked. */
const NARROWING = ['pattern', 'format'];
/** Patterns that were rewritten without look-ahead, which some engines lack, and accept the same text. */
export const EQUAL_PATTERNS: ReadonlyMap<unknown, string> = new Map([
  ['^PT(?=\\d)(\\d+H)?(\\d+M)?(\\d+S)?$', '^PT(\\d+H(\\d+M)?(\\d+S)?|\\d+M(\\d+S)?|\\d+S)$'],
]);
const JUDGED = new Set([
  ...BOUNDS.map(({ keyword }) => keyword),
  ...NARROWING,
  'properties',
  'required',
  'additionalProperties',
  'enum',
  'anyOf',
  'items',
]);

const asSchema = (value: unknown): Schema => (typeof value === 'object' && value !== null ? (value as Schema) : {});
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const show = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Whether a change of a bound accepts fewer values (`tighter`) or more. */
function boundChange({ at }: Bound, before: unknown, after: unknown): 'same' | 'tighter' | 'looser' {
  if (same(before, after)) return 'same';
  if (before === undefined) return 'tighter';
  if (after === undefined) return 'looser';
  const isTighter = at === 'least' ? Number(after) > Number(before) : Number(after) < Number(before);
  return isTighter ? 'tighter' : 'looser';
}

class Comparison {
  readonly problems: string[] = [];
  readonly #direction: Direction;

  constructor(direction: Direction) {
    this.#direction = direction;
  }

  #complain(path: string, what: string): void {
    this.problems.push(`${path || '(root)'}: ${what}`);
  }

  compare(path: string, before: Schema, after: Schema): void {
    this.#bounds(path, before, after);
    this.#members(path, before, after);
    this.#values(path, before, after);
    this.#alternatives(path, before, after);
    if (before.items !== undefined || after.items !== undefined)
      this.compare(`${path}/items`, asSchema(before.items), asSchema(after.items));
    for (const keyword of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (WORDS.has(keyword) || JUDGED.has(keyword) || same(before[keyword], after[keyword])) continue;
      this.#complain(path, `${keyword} was ${show(before[keyword])} and is ${show(after[keyword])}`);
    }
  }

  #bounds(path: string, before: Schema, after: Schema): void {
    const wrong = this.#direction === 'input' ? 'tighter' : 'looser';
    for (const bound of BOUNDS) {
      const [was, is] = [before[bound.keyword], after[bound.keyword]];
      if (boundChange(bound, was, is) === wrong)
        this.#complain(path, `${bound.keyword} is ${wrong}: it was ${show(was)} and is ${show(is)}`);
    }
    for (const keyword of NARROWING) {
      const [was, is] = [before[keyword], after[keyword]];
      const isFree = this.#direction === 'input' ? is === undefined : was === undefined;
      const isRewritten = is !== undefined && EQUAL_PATTERNS.get(was) === is;
      if (!same(was, is) && !isFree && !isRewritten)
        this.#complain(path, `${keyword} was ${show(was)} and is ${show(is)}`);
    }
  }

  #members(path: string, before: Schema, after: Schema): void {
    const [was, is] = [asSchema(before.properties), asSchema(after.properties)];
    for (const [name, schema] of Object.entries(was)) {
      if (Object.hasOwn(is, name)) this.compare(`${path}/${name}`, asSchema(schema), asSchema(is[name]));
      else this.#complain(`${path}/${name}`, 'is removed; a renamed member counts as removed');
    }
    const [neededBefore, neededNow] = [listOf(before.required), listOf(after.required)];
    if (this.#direction === 'input') {
      for (const name of neededNow)
        if (!neededBefore.includes(name)) this.#complain(`${path}/${name}`, 'is required and was not');
    } else {
      for (const name of neededBefore)
        if (!neededNow.includes(name)) this.#complain(`${path}/${name}`, 'was required and is optional now');
    }
    // Input either accepted unknown members or refused them; readers must never refuse new members.
    const [open, closed] = [before.additionalProperties !== false, after.additionalProperties === false];
    if (open && closed) this.#complain(path, 'refuses members that it does not know, which it did not');
    for (const { additionalProperties } of [before, after])
      if (additionalProperties !== undefined && typeof additionalProperties !== 'boolean')
        this.#complain(path, 'additionalProperties is a schema, which this check cannot judge');
  }

  #values(path: string, before: Schema, after: Schema): void {
    if ((before.enum === undefined) !== (after.enum === undefined))
      this.#complain(path, `enum was ${show(before.enum)} and is ${show(after.enum)}`);
    else
      for (const value of listOf(before.enum))
        if (!listOf(after.enum).includes(value)) this.#complain(path, `the value ${show(value)} is gone`);
  }

  /** Alternatives are compared by the kind of their value. */
  #alternatives(path: string, before: Schema, after: Schema): void {
    if ((before.anyOf === undefined) !== (after.anyOf === undefined)) {
      this.#complain(path, before.anyOf ? 'had alternatives and has none' : 'has alternatives and had none');
      return;
    }
    const kinds = (schema: Schema) =>
      new Map(listOf(schema.anyOf).map((each) => [kindOf(asSchema(each)), asSchema(each)]));
    const [was, is] = [kinds(before), kinds(after)];
    for (const [kind, schema] of was) {
      const now = is.get(kind);
      if (now) this.compare(path, schema, now);
      else this.#complain(path, `can no longer be ${kind}`);
    }
    for (const kind of is.keys())
      if (!was.has(kind) && this.#direction === 'output') this.#complain(path, `can be ${kind}, which it could not`);
  }
}

const kindOf = ({ type, const: constant, enum: values }: Schema) => show(type ?? constant ?? values);

/**
 * @param direction of the values: `input` for arguments, `output` for answers
 * @returns a sentence per non-additive change, beginning with its location
 */
export function changesThatBreak(before: Schema, after: Schema, direction: Direction): readonly string[] {
  const comparison = new Comparison(direction);
  comparison.compare('', before, after);
  return comparison.problems;
}
