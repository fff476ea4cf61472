/** Looking at plans: which calls they hold, and what stands for a call. Pure. */
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
