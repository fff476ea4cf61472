/**
 * References: in a call's arguments, `{"$ref": "<node id>#<JSON Pointer>"}` stands for a part of what an earlier call
 * gave back. A reference is looked for in the plan alone, and once: what takes its place is data, whatever it holds.
 * Values are carried as the source text that the tool wrote, so no digit is lost on the way. Pure.
 */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';
import { elementsOf, sliceAt } from '../../wire/json.ts';
import { planOrder } from '../receipt/plan-order.ts';
import { strictnessProblem } from '../receipt/receipt-text.ts';

type Args = CallNode['args'];

/** A reference of a plan: at `place` of the arguments of `node_id` stands what `pointer` finds in the result of `from`. */
export type PlanReference = {
  readonly node_id: string;
  /** JSON Pointer into the arguments; never the arguments as a whole. */
  readonly place: string;
  /** The call whose result it is. */
  readonly from: string;
  /** JSON Pointer (RFC 6901) into that result; empty for all of it. */
  readonly pointer: string;
};

/** What stands in the place of a reference. */
export type ResolvedValue = {
  readonly place: string;
  /** As the plan says it. */
  readonly ref: string;
  /** The value's JSON text, character for character as the tool wrote it. */
  readonly json: string;
};

/** References of one plan. */
export const REFERENCES_MAX = 256;
const LONGEST_REFERENCE = 1000;

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/s;
const INDEX = /^(?:0|[1-9]\d*)$/;

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');
// Section 4: first ~1, then ~0, so that ~01 is read as ~1.
const partsOf = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

export const refText = ({ from, pointer }: Pick<PlanReference, 'from' | 'pointer'>) => `${from}#${pointer}`;

/** Objects that have a member `$ref`, however deep, by where they stand. */
type Found = { readonly path: readonly PropertyKey[]; readonly value: Readonly<Record<string, unknown>> };

function referencesIn(value: unknown, path: readonly PropertyKey[]): Found[] {
  if (typeof value !== 'object' || value === null) return [];
  if (!Array.isArray(value) && Object.hasOwn(value, '$ref')) return [{ path, value: value as Found['value'] }];
  return Object.entries(value).flatMap(([name, member]) =>
    referencesIn(member, [...path, Array.isArray(value) ? Number(name) : name]),
  );
}

const placeOf = (path: readonly PropertyKey[]) => path.map((part) => `/${escaped(String(part))}`).join('');

/** What a reference says, or what is wrong with it: words that follow its place. */
function readReference({ path, value }: Found): { from: string; pointer: string } | { wrong: string } {
  if (path.length === 0)
    return { wrong: 'must not be a reference as a whole; name the arguments, and put references in their values' };
  const others = Object.keys(value).filter((name) => name !== '$ref');
  if (others.length > 0)
    return { wrong: `is a reference ($ref) and must have no other member (it has ${others.slice(0, 5).join(', ')})` };
  const { $ref: text } = value;
  const example = 'such as {"$ref": "exchange#/received/amount"}';
  if (typeof text !== 'string' || text.length > LONGEST_REFERENCE)
    return { wrong: `must have as $ref a text of at most ${LONGEST_REFERENCE} characters, ${example}` };
  const at = text.indexOf('#');
  const [from, pointer] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  if (from === '') return { wrong: `must name a node before #, ${example} (got ${JSON.stringify(text)})` };
  if (!POINTER.test(pointer)) {
    const rule = 'empty, or / before each name, with ~0 for ~ and ~1 for /';
    return { wrong: `must have a JSON Pointer (RFC 6901) after #: ${rule} (got ${JSON.stringify(pointer)})` };
  }
  return { from, pointer };
}

type ReadReferences = {
  readonly references: readonly PlanReference[];
  /** What is wrong, with the place in the intent. */
  readonly problems: readonly { readonly path: readonly PropertyKey[]; readonly what: string }[];
};

/** The references of a plan whose nodes have different ids, and what is wrong with them. */
export function readReferences(plan: PlanNode): ReadReferences {
  const { leaves, before } = planOrder(plan);
  const references: PlanReference[] = [];
  const problems: ReadReferences['problems'][number][] = [];
  const visit = (node: PlanNode, path: readonly PropertyKey[]) => {
    if (node.kind === 'sequence' || node.kind === 'parallel')
      for (const [index, child] of node.nodes.entries()) visit(child, [...path, 'nodes', index]);
    if (node.kind !== 'call') return;
    const earlier = before.get(node.id)!.filter((id) => leaves.get(id)?.kind === 'call');
    const those = earlier.length === 0 ? 'no call comes before it' : `calls before it are ${earlier.join(', ')}`;
    for (const found of referencesIn(node.args, [])) {
      const wrong = (what: string) => problems.push({ path: [...path, 'args', ...found.path], what });
      const read = readReference(found);
      if ('wrong' in read) wrong(read.wrong);
      else if (read.from === node.id) wrong(`refers to the result of its own node ${node.id}; ${those}`);
      else if (leaves.get(read.from)?.kind === 'wait')
        wrong(`refers to ${read.from}, a wait, which has no result; ${those}`);
      else if (!leaves.has(read.from))
        wrong(`refers to the node ${JSON.stringify(read.from)}, and the plan has no such call; ${those}`);
      else if (!earlier.includes(read.from))
        wrong(`refers to ${read.from}, which no sequence puts before ${node.id}; ${those}`);
      else references.push({ node_id: node.id, place: placeOf(found.path), ...read });
    }
  };
  visit(plan, ['plan']);
  if (references.length > REFERENCES_MAX)
    problems.push({ path: ['plan'], what: `must have at most ${REFERENCES_MAX} references ($ref)` });
  return { references, problems };
}

const NAMES_SHOWN = 10;

/** What there is instead, in words that follow the place. */
function thereInstead(source: string): string {
  const elements = elementsOf(source);
  if (elements) return `is a list of ${elements.length}`;
  if (!source.startsWith('{')) return 'is neither an object nor a list';
  const names = Object.keys(JSON.parse(source) as object);
  const shown = names.slice(0, NAMES_SHOWN).map((name) => JSON.stringify(name.slice(0, 60).toWellFormed()));
  return `has ${shown.length === 0 ? 'no members' : shown.join(', ')}${names.length > NAMES_SHOWN ? ', …' : ''}`;
}

/**
 * The source text of what stands at a pointer.
 *
 * @param source JSON text of one value in which no object has two members of one name
 * @returns `missing` where there is nothing: words that follow the reference
 */
function sourceAt(source: string, pointer: string): { readonly json: string } | { readonly missing: string } {
  let at = source.trim();
  let walked = '';
  for (const part of partsOf(pointer)) {
    const elements = elementsOf(at);
    const next = elements ? (INDEX.test(part) ? elements[Number(part)] : undefined) : sliceAt(at, [part]);
    if (next === undefined) {
      const where = walked === '' ? 'the result' : `what stands at ${walked}`;
      return { missing: `there is nothing: ${where} ${thereInstead(at)}` };
    }
    walked += `/${escaped(part)}`;
    at = next;
  }
  return { json: at };
}

/**
 * What a reference finds in a recorded result.
 *
 * @param source the result's JSON text; `undefined` where none was recorded
 */
export function foundAt(
  source: string | undefined,
  pointer: string,
): { readonly json: string } | { readonly missing: string } {
  if (source === undefined) return { missing: 'there is no result on record' };
  const wrong = strictnessProblem(source, false);
  if (wrong !== undefined) return { missing: `the result cannot be read: ${wrong}` };
  const found = sourceAt(source, pointer);
  const inexact = 'json' in found ? strictnessProblem(found.json, true) : undefined;
  return inexact === undefined
    ? found
    : { missing: `what it finds cannot be carried exactly: ${inexact}; the tool would have to give it as text` };
}

/** Names that mean something to JavaScript have no place in a call. */
function unusable(json: string): string | undefined {
  const names = (value: unknown): string[] =>
    typeof value !== 'object' || value === null
      ? []
      : [...(Array.isArray(value) ? [] : Object.keys(value)), ...Object.values(value).flatMap(names)];
  const dangerous = names(JSON.parse(json)).find((name) => ['__proto__', 'constructor', 'prototype'].includes(name));
  return dangerous === undefined ? undefined : `it has a member named ${dangerous}, which no call may carry`;
}

/** Arguments with values in the place of their references. A place that has none is left as it is. */
export function withValues(args: Args, values: readonly Pick<ResolvedValue, 'place' | 'json'>[]): Args {
  if (values.length === 0) return args;
  const at = new Map(values.map(({ place, json }) => [place, json]));
  const fill = (value: unknown, place: string): unknown => {
    const json = at.get(place);
    if (json !== undefined) return JSON.parse(json) as unknown;
    if (Array.isArray(value)) return value.map((entry, index) => fill(entry, `${place}/${index}`));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, fill(member, `${place}/${escaped(name)}`)]),
    );
  };
  return fill(args, '') as Args;
}

const ARGUMENTS_MAX_CHARACTERS = 256 * 1024;

/**
 * Arguments with what their references find.
 *
 * @param references of this call
 * @param sourceOf the recorded result of a call as its JSON text, or why there is none: words that follow the reference
 * @returns `problem` where one finds nothing that a call can carry: a sentence
 */
export function resolveReferences(
  { id, args }: CallNode,
  references: readonly PlanReference[],
  sourceOf: (nodeId: string) => string | { readonly missing: string },
): { readonly args: Args; readonly resolved: readonly ResolvedValue[] } | { readonly problem: string } {
  const resolved: ResolvedValue[] = [];
  let characters = 0;
  for (const { place, from, pointer } of references) {
    const ref = refText({ from, pointer });
    const source = sourceOf(from);
    const found = typeof source === 'string' ? foundAt(source, pointer) : source;
    const why = 'missing' in found ? found.missing : unusable(found.json);
    if (why !== undefined) return { problem: `node ${id}: ${place} refers to ${ref}, and ${why}` };
    const { json } = found as { json: string };
    characters += json.length;
    if (characters > ARGUMENTS_MAX_CHARACTERS)
      return { problem: `node ${id}: what its references find has more than ${ARGUMENTS_MAX_CHARACTERS} characters` };
    resolved.push({ place, ref, json });
  }
  return { args: withValues(args, resolved), resolved };
}

/** Whether a plan has this reference at its place, and nothing else there. */
export function standsInPlan({ args }: CallNode, { place, from, pointer }: PlanReference): boolean {
  const there = referencesIn(args, []).find(({ path }) => placeOf(path) === place);
  return (
    there !== undefined &&
    place !== '' &&
    canonicalJson(there.value) === canonicalJson({ $ref: refText({ from, pointer }) })
  );
}
