/** Whether a plan can be carried out with the tools there are: each call names one, and its arguments are what the tool takes. */
import type { CallNode, Intent, PlanNode } from '../../wire/intent.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { argumentCheck } from './argument-schema.ts';
import { idempotencyKey, keyProblem } from './idempotency-key.ts';

/** Stands in for an intent's id while it has none. */
const SOME_INTENT = '00000000-0000-7000-8000-000000000000';

type Located = { readonly node: CallNode; readonly place: string };

function locate(plan: PlanNode, place: string): Located[] {
  if (plan.kind === 'call') return [{ node: plan, place }];
  if (plan.kind === 'wait') return [];
  return plan.nodes.flatMap((node, index) => locate(node, `${place}.nodes[${index}]`));
}

function problemsOf({ node, place }: Located, toolbox: Pick<Toolbox, 'find' | 'absence'>): string[] {
  const tool = toolbox.find(node.tool);
  if (tool === undefined) return [`${place}.tool: ${toolbox.absence(node.tool)}`];
  const argument = tool.rail?.idempotency_key;
  const forbidden = keyProblem(node, argument);
  if (forbidden !== undefined) return [`${place}.args ${forbidden}`];
  const args = argument === undefined ? node.args : { ...node.args, [argument]: idempotencyKey(SOME_INTENT, node.id) };
  return argumentCheck(tool.definition.inputSchema)(args).map((problem) => `${place}.args ${problem}`);
}

/**
 * Checks a plan as it was submitted or compiled, before idempotency keys are filled in.
 *
 * @returns a sentence for each thing that is wrong, with its place (`plan.nodes[1].args …`); none when the plan can be carried out
 */
export function checkPlan(intent: Intent, toolbox: Pick<Toolbox, 'find' | 'absence'>): { problems: string[] } {
  return { problems: locate(intent.plan, 'plan').flatMap((located) => problemsOf(located, toolbox)) };
}
