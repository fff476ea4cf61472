/**
 * Values of a recorded result by their JSON Pointers. A result is read once for all references of a plan: the reader
 * notes where each value begins and ends, and lookups follow that index. Pure, but for a cache that only saves time.
 */
import { JsonSyntaxError, StrictReader } from '../../kit/json/strict-json.ts';
import { isExact } from '../../wire/exact-number.ts';
import { RECEIPT_DEPTH_MAX } from '../receipt/envelope.ts';
import { isReceiptResponse, strictnessProblem } from '../receipt/receipt-text.ts';

/** A value's JSON text, character for character; or why there is none: words that follow the reference. */
export type FoundValue =
  | { readonly json: string /** A name in it that no call may carry. */; readonly forbiddenName?: string | undefined }
  | { readonly missing: string };

/** One value of the text: its offsets in UTF-16 units, and what it holds. */
type Indexed = {
  readonly from: number;
  readonly to: number;
  readonly members?: ReadonlyMap<string, Indexed>;
  readonly elements?: readonly Indexed[];
  /** What is wrong with the first number in it that no double keeps. */
  readonly inexact?: string | undefined;
  readonly forbiddenName?: string | undefined;
};

const INDEX = /^(?:0|[1-9]\d*)$/;
/** Names that mean something to JavaScript have no place in a call. */
const FORBIDDEN: ReadonlySet<PropertyKey> = new Set(['__proto__', 'constructor', 'prototype']);
const NAMES_SHOWN = 10;

export const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');
/** The parts of a JSON Pointer. Section 4: first ~1, then ~0, so that ~01 is read as ~1. */
export const partsOf = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

/** @throws JsonSyntaxError for a text that two readers could take for two values */
function indexOf(source: string): Indexed {
  /** For each depth, the values that wait for the one around them. */
  const waiting: [key: PropertyKey, value: Indexed][][] = [];
  let outermost: Indexed | undefined;
  const onValue = (path: readonly PropertyKey[], from: number, to: number) => {
    const inner = waiting[path.length + 1] ?? [];
    waiting.length = path.length + 1;
    const first = source[from]!;
    const value: Indexed = {
      ...{ from, to },
      ...(first === '{' && { members: new Map(inner as [string, Indexed][]) }),
      ...(first === '[' && { elements: inner.map(([, element]) => element) }),
      // Found once for each number: values are in one another, and reading each again would take quadratic time.
      inexact:
        first === '{' || first === '['
          ? inner.map(([, { inexact }]) => inexact).find((text) => text !== undefined)
          : /[-\d]/.test(first) && !isExact(source.slice(from, to))
            ? strictnessProblem(source.slice(from, to), true)
            : undefined,
      forbiddenName:
        inner.map(([key]) => key).find((key): key is string => FORBIDDEN.has(key)) ??
        inner.map(([, { forbiddenName }]) => forbiddenName).find((name) => name !== undefined),
    };
    const key = path.at(-1);
    if (key === undefined) outermost = value;
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
  return outermost!;
}

/** What there is instead, in words that follow the place. */
function thereInstead({ members, elements }: Indexed): string {
  if (elements) return `is a list of ${elements.length}`;
  if (!members) return 'is neither an object nor a list';
  const names = [...members.keys()];
  const shown = names.slice(0, NAMES_SHOWN).map((name) => JSON.stringify(name.slice(0, 60).toWellFormed()));
  return `has ${shown.length === 0 ? 'no members' : shown.join(', ')}${names.length > NAMES_SHOWN ? ', …' : ''}`;
}

function valueAt(source: string, outermost: Indexed, pointer: string): FoundValue {
  let at = outermost;
  const walked: string[] = [];
  for (const part of partsOf(pointer)) {
    const next = at.elements ? (INDEX.test(part) ? at.elements[Number(part)] : undefined) : at.members?.get(part);
    if (next === undefined) {
      const where = walked.length === 0 ? 'the result' : `what stands at ${walked.join('')}`;
      return { missing: `there is nothing: ${where} ${thereInstead(at)}` };
    }
    walked.push(`/${escaped(part)}`);
    at = next;
  }
  const json = source.slice(at.from, at.to);
  if (at.inexact === undefined) return { json, forbiddenName: at.forbiddenName };
  return { missing: `what it finds cannot be carried exactly: ${at.inexact}; the tool would have to give it as text` };
}

/**
 * What pointers find in a recorded result, which is read once.
 *
 * @param source the result's JSON text; `undefined` where none was recorded
 */
export function valuesAt(source: string | undefined, pointers: Iterable<string>): ReadonlyMap<string, FoundValue> {
  const all = (found: FoundValue) => new Map([...pointers].map((pointer) => [pointer, found]));
  if (source === undefined) return all({ missing: 'there is no result on record' });
  let outermost: Indexed;
  try {
    outermost = indexOf(source);
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    return all({ missing: `the result cannot be read: ${thrown.message}` });
  }
  return new Map([...new Set(pointers)].map((pointer) => [pointer, valueAt(source, outermost, pointer)]));
}

type Reference = { readonly from: string; readonly pointer: string };
type Known = { readonly source: string | undefined; readonly values: ReadonlyMap<string, FoundValue> };

/** By the references of a plan, and the node whose result it is. An entry has no more values than references. */
const known = new WeakMap<readonly Reference[], Map<string, Known>>();

/**
 * What references to one node's result find.
 *
 * @param references all of the plan
 * @param source the JSON text that is on record for `from`
 */
export function resultValues(
  references: readonly Reference[],
  from: string,
  source: string | undefined,
): ReadonlyMap<string, FoundValue> {
  const results = known.get(references) ?? new Map<string, Known>();
  known.set(references, results);
  const before = results.get(from);
  if (before?.source === source && before !== undefined) return before.values;
  const values = valuesAt(
    source,
    references.filter((reference) => reference.from === from).map(({ pointer }) => pointer),
  );
  results.set(from, { source, values });
  return values;
}
