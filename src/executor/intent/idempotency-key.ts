/**
 * Idempotency keys: where the manifest names the argument that takes one, the executor itself fills it in, before anything is shown.
 * What a person is shown is then exactly what is sent, and a call that is made again after a lost answer is the same call.
 */
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, Intent } from '../../wire/intent.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { argumentCheck } from './argument-schema.ts';
import { callNodes, withArguments } from './plan.ts';

/** The same for every attempt at a node, and no other node's of any intent. */
export function idempotencyKey(intentId: string, nodeId: string): string {
  return `${intentId}.${nodeId}`;
}

/** Why a plan must not set the argument itself; `undefined` when it does not. To follow the place of the node's arguments. */
export function keyProblem(node: CallNode, argument: string | undefined): string | undefined {
  if (argument === undefined || !Object.hasOwn(node.args, argument)) return undefined;
  return `must not set ${JSON.stringify(argument)}: it takes the idempotency key, which the executor fills in itself`;
}

/**
 * The intent with an idempotency key in every call whose tool takes one.
 *
 * @throws ReveilleError `invalid_request` when the plan sets one itself, or when the tool's schema does not take ours
 */
export function fillIdempotencyKeys(intent: Intent, intentId: string, toolbox: Pick<Toolbox, 'find'>): Intent {
  const argumentOf = ({ tool }: CallNode) => toolbox.find(tool)?.rail?.idempotency_key;
  const problems = callNodes(intent.plan).flatMap((node) => {
    const problem = keyProblem(node, argumentOf(node));
    return problem === undefined ? [] : [`node ${node.id} ${problem}`];
  });
  if (problems.length > 0) throw new ReveilleError('invalid_request', problems.join('; '));
  const plan = withArguments(intent.plan, (node) => {
    const argument = argumentOf(node);
    if (argument === undefined) return node.args;
    const args = { ...node.args, [argument]: idempotencyKey(intentId, node.id) };
    const [problem] = argumentCheck(toolbox.find(node.tool)!.definition.inputSchema)(args);
    if (problem !== undefined)
      throw new ReveilleError(
        'invalid_request',
        `the arguments of node ${node.id}, with their idempotency key: ${problem}`,
      );
    return args;
  });
  return { ...intent, plan };
}
