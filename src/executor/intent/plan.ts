/** Looking at plans: which calls they hold, and what stands for a call. Pure. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';

/** The calls of a plan in the order in which they are written. */
export function callNodes(plan: PlanNode): readonly CallNode[] {
  if (plan.kind === 'call') return [plan];
  return plan.kind === 'wait' ? [] : plan.nodes.flatMap(callNodes);
}

/** The same plan with other arguments in its calls; everything else stays as it is. */
export function withArguments(plan: PlanNode, argsOf: (node: CallNode) => CallNode['args']): PlanNode {
  if (plan.kind === 'call') return { ...plan, args: argsOf(plan) };
  return plan.kind === 'wait' ? plan : { ...plan, nodes: plan.nodes.map((node) => withArguments(node, argsOf)) };
}

const sha256 = (value: unknown) => createHash('sha256').update(canonicalJson(value)).digest('hex');

/**
 * What an approval is bound to: SHA-256 in lower-case hex over the canonical JSON of `{tool, args}`.
 *
 * @param tool `<alias>/<tool>`
 */
export function callDigest(tool: string, args: CallNode['args']): string {
  return sha256({ tool, args });
}

/** SHA-256 in lower-case hex over the canonical JSON of the arguments alone. */
export function argsDigest(args: CallNode['args']): string {
  return sha256(args);
}
