/** The order of a compiled plan, for checking a receipt: its leaves and the predecessors of each. Pure. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, Intent, PlanNode, WaitNode } from '../../wire/intent.ts';

export type PlanLeaf = CallNode | WaitNode;

export type PlanOrder = {
  readonly leaves: ReadonlyMap<string, PlanLeaf>;
  /** For each leaf, the leaves that sequences put before it. */
  readonly predecessors: ReadonlyMap<string, readonly string[]>;
  /** An id that two nodes share. */
  readonly duplicateId: string | undefined;
};

export function planOrder(plan: PlanNode): PlanOrder {
  const leaves = new Map<string, PlanLeaf>();
  const predecessors = new Map<string, readonly string[]>();
  const ids = new Set<string>();
  let duplicateId: string | undefined;
  /** @returns the leaves below a node */
  const visit = (node: PlanNode, earlier: readonly string[]): string[] => {
    if (ids.has(node.id)) duplicateId ??= node.id;
    ids.add(node.id);
    if (node.kind === 'call' || node.kind === 'wait') {
      leaves.set(node.id, node);
      predecessors.set(node.id, earlier);
      return [node.id];
    }
    const below: string[] = [];
    for (const child of node.nodes)
      below.push(...visit(child, node.kind === 'sequence' ? [...earlier, ...below] : earlier));
    return below;
  };
  visit(plan, []);
  return { leaves, predecessors, duplicateId };
}

type Args = Readonly<Record<string, unknown>>;

/** The idempotency key of a call: the same for every attempt at a node, and unique to the node and its intent. */
export const callKey = (intentId: string, nodeId: string) => `${intentId}.${nodeId}`;

/** Arguments without the one that carries the executor's own idempotency key. */
function withoutKey(args: Args, key: string): Args {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== key));
}

/** Whether the arguments equal those of the plan, apart from an idempotency key that the executor filled in. */
export function areArgsOf(node: CallNode, args: Args, key: string): boolean {
  return canonicalJson(withoutKey(args, key)) === canonicalJson(withoutKey(node.args, key));
}

function withoutKeys(node: PlanNode, intentId: string): PlanNode {
  if (node.kind === 'call') return { ...node, args: withoutKey(node.args, callKey(intentId, node.id)) };
  return node.kind === 'wait' ? node : { ...node, nodes: node.nodes.map((child) => withoutKeys(child, intentId)) };
}

/** Whether two intents are equal, apart from idempotency keys that the executor filled in. */
export function isSameIntent(one: Intent, other: Intent, intentId: string): boolean {
  const bare = (intent: Intent) => canonicalJson({ ...intent, plan: withoutKeys(intent.plan, intentId) });
  return bare(one) === bare(other);
}
