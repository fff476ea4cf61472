/**
 * References: in a call's arguments, `{"$ref": "<node id>#<JSON Pointer>"}` stands for a part of what an earlier call
 * gave back. A reference is looked for in the plan alone, and once: what takes its place is data, whatever it holds.
 * Values are carried as the source text that the tool wrote, so no digit is lost on the way. Pure.
 */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';
import { planOrder } from '../receipt/plan-order.ts';
import { escaped, resultValues } from './result-values.ts';

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

export const refText = ({ from, pointer }: Pick<PlanReference, 'from' | 'pointer'>) => `${from}#${pointer}`;

/** Objects that have a member `$ref`, however deep, by where they stand. */
type FoundReference = { readonly path: readonly PropertyKey[]; readonly value: Readonly<Record<string, unknown>> };

function referencesIn(value: unknown, path: readonly PropertyKey[]): FoundReference[] {
  if (typeof value !== 'object' || value === null) return [];
  if (!Array.isArray(value) && Object.hasOwn(value, '$ref')) return [{ path, value: value as FoundReference['value'] }];
  return Object.entries(value).flatMap(([name, member]) =>
    referencesIn(member, [...path, Array.isArray(value) ? Number(name) : name]),
  );
}

const pointerOf = (path: readonly PropertyKey[]) => path.map((part) => `/${escaped(String(part))}`).join('');

/** What a reference says, or what is wrong with it: words that follow its place. */
function readReference({ path, value }: FoundReference): { from: string; pointer: string } | { wrong: string } {
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
  const { leaves, predecessors } = planOrder(plan);
  const references: PlanReference[] = [];
  const problems: ReadReferences['problems'][number][] = [];
  let count = 0;
  const visit = (node: PlanNode, path: readonly PropertyKey[]) => {
    if (node.kind === 'sequence' || node.kind === 'parallel')
      for (const [index, child] of node.nodes.entries()) visit(child, [...path, 'nodes', index]);
    if (node.kind !== 'call') return;
    const earlier = predecessors.get(node.id)!.filter((id) => leaves.get(id)?.kind === 'call');
    const those = earlier.length === 0 ? 'no call comes before it' : `calls before it are ${earlier.join(', ')}`;
    for (const found of referencesIn(node.args, [])) {
      // The rest would only take time: the plan is refused.
      if (++count > REFERENCES_MAX) return;
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
      else references.push({ node_id: node.id, place: pointerOf(found.path), ...read });
    }
  };
  visit(plan, ['plan']);
  if (count <= REFERENCES_MAX) return { references, problems };
  const tooMany = { path: ['plan'], what: `must have at most ${REFERENCES_MAX} references ($ref); use several plans` };
  return { references, problems: [tooMany] };
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

/** What references find in results, in UTF-16 units: for one call, and for all calls of one plan. */
const CALL_RESOLVED_MAX = 256 * 1024;
export const PLAN_RESOLVED_MAX = 1024 * 1024;

/** The references of a plan, and the results that are on record. */
export type RecordedResults = {
  /** All references of the plan. */
  readonly references: readonly PlanReference[];
  /** The recorded result of a call as its JSON text, or why there is none: words that follow the reference. */
  readonly sourceOf: (nodeId: string) => string | { readonly missing: string };
  /** What references of other calls have found before, in UTF-16 units. */
  readonly foundBefore: number;
};

/**
 * Arguments with what their references find.
 *
 * @returns `problem` where one finds nothing that a call can carry, or too much: a sentence
 */
export function resolveReferences(
  { id, args }: CallNode,
  { references, sourceOf, foundBefore }: RecordedResults,
): { readonly args: Args; readonly resolved: readonly ResolvedValue[] } | { readonly problem: string } {
  const resolved: ResolvedValue[] = [];
  let characters = 0;
  for (const { place, from, pointer } of references.filter(({ node_id }) => node_id === id)) {
    const ref = refText({ from, pointer });
    const problem = (why: string) => ({ problem: `node ${id}: ${place} refers to ${ref}, and ${why}` });
    const source = sourceOf(from);
    if (typeof source !== 'string') return problem(source.missing);
    const found = resultValues(references, from, source).get(pointer)!;
    if ('missing' in found) return problem(found.missing);
    const { json, forbiddenName } = found;
    if (forbiddenName !== undefined) return problem(`it has a member named ${forbiddenName}, which no call may carry`);
    characters += json.length;
    if (characters > CALL_RESOLVED_MAX)
      return { problem: `node ${id}: what its references find has more than ${CALL_RESOLVED_MAX} characters` };
    if (foundBefore + characters > PLAN_RESOLVED_MAX) {
      const what = `what the references of the plan find has more than ${PLAN_RESOLVED_MAX} characters`;
      return { problem: `node ${id}: ${what}; refer to smaller parts of results, or use several plans` };
    }
    resolved.push({ place, ref, json });
  }
  return { args: withValues(args, resolved), resolved };
}

/** The objects of a call's arguments that a reference may be, by their place. */
export function referencePositions({ args }: CallNode): ReadonlyMap<string, string> {
  return new Map(referencesIn(args, []).map(({ path, value }) => [pointerOf(path), canonicalJson(value)]));
}

/** Whether a plan has this reference at its place, and nothing else there. */
export function isReferenceInPlan(
  places: ReadonlyMap<string, string>,
  { place, from, pointer }: PlanReference,
): boolean {
  return place !== '' && places.get(place) === canonicalJson({ $ref: refText({ from, pointer }) });
}
