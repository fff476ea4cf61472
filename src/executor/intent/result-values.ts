/**
 * Values of a recorded result by their JSON Pointers. A result is parsed once for all references of a plan: the parser
 * indexes where each value begins and ends, and lookups use the index. Pure, apart from a cache.
 */
import { JsonSyntaxError, StrictReader } from '../../kit/json/strict-json.ts';
import { isExact } from '../../wire/json.ts';
import { RECEIPT_DEPTH_MAX } from '../receipt/envelope.ts';
import { isReceiptResponse, strictnessProblem } from '../receipt/receipt-text.ts';
import { escaped, INDEX, partsOf } from './pointer.ts';

/** A value's JSON text, character for character, or why there is none; the text follows the reference. */
export type FoundValue =
  | {
      readonly json: string /** A member name in it that is not allowed in a call. */;
      readonly forbiddenName?: string | undefined;
    }
  | { readonly missing: string };

/** One value of the text: its offsets in UTF-16 units, and its content. */
type Indexed = {
  readonly from: number;
  readonly to: number;
  readonly members?: ReadonlyMap<string, Indexed>;
  readonly elements?: readonly Indexed[];
  /** The problem of the first number in it that a double cannot represent. */
  readonly inexact?: string | undefined;
  readonly forbiddenName?: string | undefined;
};

/** Names with a special meaning in JavaScript are not allowed in a call. */
const FORBIDDEN: ReadonlySet<PropertyKey> = new Set(['__proto__', 'constructor', 'prototype']);
const NAMES_SHOWN = 10;

/** @throws JsonSyntaxError for ambiguous text */
function indexOf(source: string): Indexed {
  /** For each depth, the values whose enclosing value is not complete yet. */
  const waiting: [key: PropertyKey, value: Indexed][][] = [];
  let root: Indexed | undefined;
  const onValue = (path: readonly PropertyKey[], from: number, to: number) => {
    const inner = waiting[path.length + 1] ?? [];
    waiting.length = path.length + 1;
    const first = source[from]!;
    const value: Indexed = {
      ...{ from, to },
      ...(first === '{' && { members: new Map(inner as [string, Indexed][]) }),
      ...(first === '[' && { elements: inner.map(([, element]) => element) }),
      // Computed once for each number: values are nested, and parsing each again would take quadratic time.
      inexact:
        first === '{' || first === '['
          ? inner.map(([, { inexact }]) => inexact).find((text) => text !== undefined)
          : /[-\d]/.test(first) && !isExact(source.slice(from, to))
            ? strictnessProblem(source.slice(from, to))
            : undefined,
      forbiddenName:
        inner.map(([key]) => key).find((key): key is string => FORBIDDEN.has(key)) ??
        inner.map(([, { forbiddenName }]) => forbiddenName).find((name) => name !== undefined),
    };
    const key = path.at(-1);
    if (key === undefined) root = value;
    else {
      waiting[path.length] ??= [];
      waiting[path.length]!.push([key, value]);
    }
  };
  const options = {
    depth: RECEIPT_DEPTH_MAX,
    exact: false,
    protoMember: true,
    mayBeDeeper: isReceiptResponse,
    onValue,
  };
  new StrictReader(source, options).onlyDocument();
  return root!;
}

/** Describes a value; the text follows its position. */
function contentOf({ members, elements }: Indexed): string {
  if (elements) return `is a list of ${elements.length}`;
  if (!members) return 'is neither an object nor a list';
  const names = [...members.keys()];
  const shown = names.slice(0, NAMES_SHOWN).map((name) => JSON.stringify(name.slice(0, 60).toWellFormed()));
  return `has ${shown.length === 0 ? 'no members' : shown.join(', ')}${names.length > NAMES_SHOWN ? ', …' : ''}`;
}

function valueAt(source: string, root: Indexed, pointer: string): FoundValue {
  let at = root;
  const path: string[] = [];
  for (const part of partsOf(pointer)) {
    const next = at.elements ? (INDEX.test(part) ? at.elements[Number(part)] : undefined) : at.members?.get(part);
    if (next === undefined) {
      const where = path.length === 0 ? 'the result' : `the value at ${path.join('')}`;
      return { missing: `there is nothing: ${where} ${contentOf(at)}` };
    }
    path.push(`/${escaped(part)}`);
    at = next;
  }
  const json = source.slice(at.from, at.to);
  if (at.inexact === undefined) return { json, forbiddenName: at.forbiddenName };
  return { missing: `its value cannot be represented exactly: ${at.inexact}; the tool must return it as text` };
}

/**
 * The values at pointers in a recorded result, which is parsed once.
 *
 * @param source the result's JSON text; `undefined` when none was recorded
 */
export function valuesAt(source: string | undefined, pointers: Iterable<string>): ReadonlyMap<string, FoundValue> {
  const all = (found: FoundValue) => new Map([...pointers].map((pointer) => [pointer, found]));
  if (source === undefined) return all({ missing: 'there is no recorded result' });
  let root: Indexed;
  try {
    root = indexOf(source);
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    return all({ missing: `the result cannot be read: ${thrown.message}` });
  }
  return new Map([...new Set(pointers)].map((pointer) => [pointer, valueAt(source, root, pointer)]));
}

type Reference = { readonly from: string; readonly pointer: string };
type CachedResult = { readonly source: string | undefined; readonly values: ReadonlyMap<string, FoundValue> };

/** By the references of a plan and the node of the result. An entry has at most as many values as references. */
const cache = new WeakMap<readonly Reference[], Map<string, CachedResult>>();

/**
 * The values of references to one node's result.
 *
 * @param references all of the plan
 * @param source the recorded JSON text of `from`
 */
export function resultValues(
  references: readonly Reference[],
  from: string,
  source: string | undefined,
): ReadonlyMap<string, FoundValue> {
  const results = cache.get(references) ?? new Map<string, CachedResult>();
  cache.set(references, results);
  const before = results.get(from);
  if (before?.source === source && before !== undefined) return before.values;
  const values = valuesAt(
    source,
    references.filter((reference) => reference.from === from).map(({ pointer }) => pointer),
  );
  results.set(from, { source, values });
  return values;
}
