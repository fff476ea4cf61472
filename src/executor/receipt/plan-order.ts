/** A compiled plan as a receipt is held against it: its leaves, and what must be done before each. Pure. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, Intent, PlanNode, WaitNode } from '../../wire/intent.ts';

export type PlanLeaf = CallNode | WaitNode;

export type PlanOrder = {
  readonly leaves: ReadonlyMap<string, PlanLeaf>;
  /** For each leaf, the leaves that sequences put before it. */
  readonly before: ReadonlyMap<string, readonly string[]>;
  /** An id that two nodes have. */
  readonly twice: string | undefined;
};

export function planOrder(plan: PlanNode): PlanOrder {
  const leaves = new Map<string, PlanLeaf>();
  const before = new Map<string, readonly string[]>();
  const ids = new Set<string>();
  let twice: string | undefined;
  /** @returns the leaves below a node */
  const visit = (node: PlanNode, earlier: readonly string[]): string[] => {
    if (ids.has(node.id)) twice ??= node.id;
    ids.add(node.id);
    if (node.kind === 'call' || node.kind === 'wait') {
      leaves.set(node.id, node);
      before.set(node.id, earlier);
      return [node.id];
    }
    const below: string[] = [];
    for (const child of node.nodes)
      below.push(...visit(child, node.kind === 'sequence' ? [...earlier, ...below] : earlier));
    return below;
  };
  visit(plan, []);
  return { leaves, before, twice };
}

type Args = Readonly<Record<string, unknown>>;

/** The idempotency key that the executor gives a call. */
export const callKey = (intentId: string, nodeId: string) => `${intentId}.${nodeId}`;

/** Arguments without the one that carries the executor's own idempotency key. */
function withoutKey(args: Args, key: string): Args {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== key));
}

/** Whether these are the arguments of the plan, but for an idempotency key that the executor filled in. */
export function areArgsOf(node: CallNode, args: Args, key: string): boolean {
  return canonicalJson(withoutKey(args, key)) === canonicalJson(withoutKey(node.args, key));
}

function withoutKeys(node: PlanNode, intentId: string): PlanNode {
  if (node.kind === 'call') return { ...node, args: withoutKey(node.args, callKey(intentId, node.id)) };
  return node.kind === 'wait' ? node : { ...node, nodes: node.nodes.map((child) => withoutKeys(child, intentId)) };
}

/** Whether two intents are the same, but for idempotency keys that the executor filled in. */
export function isSameIntent(one: Intent, other: Intent, intentId: string): boolean {
  const bare = (intent: Intent) => canonicalJson({ ...intent, plan: withoutKeys(intent.plan, intentId) });
  return bare(one) === bare(other);
}
