/**
 * References: in a call's arguments, `{"$ref": "<node id>#<JSON Pointer>"}` refers to a part of an earlier call's
 * result. Only the plan is searched for references, and only once: a resolved value is data. Values keep the source
 * text that the tool wrote, so no digit is lost. Pure.
 */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';
import type { PlanReference, ResolvedValue } from '../receipt/bodies.ts';
import { planOrder } from '../receipt/plan-order.ts';
import { escaped } from './pointer.ts';
import { resultValues } from './result-values.ts';

type Args = CallNode['args'];

/** References of one plan. */
export const REFERENCES_MAX = 256;
const REFERENCE_LENGTH_MAX = 1000;

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/s;

export const refText = ({ from, pointer }: Pick<PlanReference, 'from' | 'pointer'>) => `${from}#${pointer}`;

/** An object with a member `$ref`, at any depth, with its path. */
type FoundReference = { readonly path: readonly PropertyKey[]; readonly value: Readonly<Record<string, unknown>> };

function referencesIn(value: unknown, path: readonly PropertyKey[]): FoundReference[] {
  if (typeof value !== 'object' || value === null) return [];
  if (!Array.isArray(value) && Object.hasOwn(value, '$ref')) return [{ path, value: value as FoundReference['value'] }];
  return Object.entries(value).flatMap(([name, member]) =>
    referencesIn(member, [...path, Array.isArray(value) ? Number(name) : name]),
  );
}

const pointerOf = (path: readonly PropertyKey[]) => path.map((part) => `/${escaped(String(part))}`).join('');

/** A parsed reference, or its problem; the text follows its position. */
function readReference({ path, value }: FoundReference): { from: string; pointer: string } | { wrong: string } {
  if (path.length === 0)
    return { wrong: 'must not be a reference; name the arguments, and use references as their values' };
  const others = Object.keys(value).filter((name) => name !== '$ref');
  if (others.length > 0)
    return { wrong: `is a reference ($ref) and must have no other member (it has ${others.slice(0, 5).join(', ')})` };
  const { $ref: text } = value;
  const example = 'such as {"$ref": "exchange#/received/amount"}';
  if (typeof text !== 'string' || text.length > REFERENCE_LENGTH_MAX)
    return { wrong: `must have a $ref text of at most ${REFERENCE_LENGTH_MAX} characters, ${example}` };
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
  /** Problems with their position in the intent. */
  readonly problems: readonly { readonly path: readonly PropertyKey[]; readonly what: string }[];
};

/** The references of a plan with unique node ids, and their problems. */
export function readReferences(plan: PlanNode): ReadReferences {
  const { leaves, predecessors } = planOrder(plan);
  const references: PlanReference[] = [];
  const problems: ReadReferences['problems'][number][] = [];
  let count = 0;
  const visit = (node: PlanNode, path: readonly PropertyKey[]) => {
    if (node.kind === 'sequence' || node.kind === 'parallel')
      for (const [index, child] of node.nodes.entries()) visit(child, [...path, 'nodes', index]);
    if (node.kind !== 'call') return;
    const earlier = predecessors.get(node.id)!.filter((id) => leaves.get(id)?.kind === 'call');
    const hint = earlier.length === 0 ? 'no call comes before it' : `calls before it are ${earlier.join(', ')}`;
    for (const found of referencesIn(node.args, [])) {
      // The plan is refused; further references need no check.
      if (++count > REFERENCES_MAX) return;
      const wrong = (what: string) => problems.push({ path: [...path, 'args', ...found.path], what });
      const read = readReference(found);
      if ('wrong' in read) wrong(read.wrong);
      else if (read.from === node.id) wrong(`refers to the result of its own node ${node.id}; ${hint}`);
      else if (leaves.get(read.from)?.kind === 'wait')
        wrong(`refers to ${read.from}, a wait, which has no result; ${hint}`);
      else if (!leaves.has(read.from))
        wrong(`refers to the node ${JSON.stringify(read.from)}, and the plan has no such call; ${hint}`);
      else if (!earlier.includes(read.from))
        wrong(`refers to ${read.from}, which no sequence puts before ${node.id}; ${hint}`);
      else references.push({ node_id: node.id, place: pointerOf(found.path), ...read });
    }
  };
  visit(plan, ['plan']);
  if (count <= REFERENCES_MAX) return { references, problems };
  const tooMany = { path: ['plan'], what: `must have at most ${REFERENCES_MAX} references ($ref); use several plans` };
  return { references, problems: [tooMany] };
}

/** Arguments with values instead of their references. A reference without a value stays unchanged. */
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

/** Maximum total length of reference values in UTF-16 units: for one call, and for all calls of one plan. */
const CALL_RESOLVED_MAX = 256 * 1024;
export const PLAN_RESOLVED_MAX = 1024 * 1024;

export type RecordedResults = {
  readonly references: readonly PlanReference[];
  /** The recorded result of a call as its JSON text, or why there is none; the text follows the reference. */
  readonly sourceOf: (nodeId: string) => string | { readonly missing: string };
  /** Length of the values of other calls' references, in UTF-16 units. */
  readonly foundBefore: number;
};

/**
 * Arguments with resolved references.
 *
 * @returns `problem` when a reference has no usable value, or the values are too long: a sentence
 */
export function resolveReferences(
  { id, args }: CallNode,
  { references, sourceOf, foundBefore }: RecordedResults,
): { readonly args: Args; readonly resolved: readonly ResolvedValue[] } | { readonly problem: string } {
  const resolved: ResolvedValue[] = [];
  let characters = 0;
  for (const { place, from, pointer } of references.filter(({ node_id }) => node_id === id)) {
    const ref = refText({ from, pointer });
    const problem = (why: string) => ({ problem: `node ${id}: ${place} refers to ${ref}, but ${why}` });
    const source = sourceOf(from);
    if (typeof source !== 'string') return problem(source.missing);
    const found = resultValues(references, from, source).get(pointer)!;
    if ('missing' in found) return problem(found.missing);
    const { json, forbiddenName } = found;
    if (forbiddenName !== undefined)
      return problem(`the value has a member named ${forbiddenName}, which is not allowed in a call`);
    characters += json.length;
    if (characters > CALL_RESOLVED_MAX)
      return { problem: `node ${id}: the values of its references have more than ${CALL_RESOLVED_MAX} characters` };
    if (foundBefore + characters > PLAN_RESOLVED_MAX) {
      const what = `the values of the plan's references have more than ${PLAN_RESOLVED_MAX} characters`;
      return { problem: `node ${id}: ${what}; refer to smaller parts of results, or use several plans` };
    }
    resolved.push({ place, ref, json });
  }
  return { args: withValues(args, resolved), resolved };
}

/** The objects in a call's arguments that may be references, by their JSON Pointer. */
export function referencePositions({ args }: CallNode): ReadonlyMap<string, string> {
  return new Map(referencesIn(args, []).map(({ path, value }) => [pointerOf(path), canonicalJson(value)]));
}

/** Whether a plan has exactly this reference at its position. */
export function isReferenceInPlan(
  places: ReadonlyMap<string, string>,
  { place, from, pointer }: PlanReference,
): boolean {
  return place !== '' && places.get(place) === canonicalJson({ $ref: refText({ from, pointer }) });
}
