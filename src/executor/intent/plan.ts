/** Plans: their calls, idempotency keys and argument checks. Pure. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { CallNode, Intent, PlanNode } from '../../wire/intent.ts';
import { isObject } from '../../wire/json.ts';
import type { PlanReference } from '../receipt/bodies.ts';
import { callKey } from '../receipt/plan-order.ts';
import type { RailTool, Toolbox } from '../tools/toolbox.ts';
import { partsOf } from './pointer.ts';
import { readReferences } from './reference.ts';

/** The calls of a plan in written order; none of an intent without a plan. */
export function callNodes(plan: PlanNode | undefined): readonly CallNode[] {
  if (plan?.kind === 'call') return [plan];
  return plan === undefined || plan.kind === 'wait' ? [] : plan.nodes.flatMap(callNodes);
}

/** The same plan with other arguments in its calls. */
export function withArguments(plan: PlanNode, argsOf: (node: CallNode) => CallNode['args']): PlanNode {
  if (plan.kind === 'call') return { ...plan, args: argsOf(plan) };
  return plan.kind === 'wait' ? plan : { ...plan, nodes: plan.nodes.map((node) => withArguments(node, argsOf)) };
}

/** The problem of a plan that sets the argument itself; the text follows the position of the node's arguments. */
function keyProblem(node: CallNode, argument: string | undefined): string | undefined {
  if (argument === undefined || !Object.hasOwn(node.args, argument)) return undefined;
  return `must not set ${JSON.stringify(argument)}: it takes the idempotency key, which the executor fills in itself`;
}

/**
 * The intent with an idempotency key in every call whose tool takes one.
 *
 * @throws ReveilleError `invalid_request` when the plan sets one itself, or when the tool's schema does not accept it
 */
export function fillIdempotencyKeys(intent: Intent, intentId: string, toolbox: Pick<Toolbox, 'find'>): Intent {
  const { references } = readReferences(intent.plan);
  const argumentOf = ({ tool }: CallNode) => toolbox.find(tool)?.rail?.idempotency_key;
  const problems = callNodes(intent.plan).flatMap((node) => {
    const problem = keyProblem(node, argumentOf(node));
    return problem === undefined ? [] : [`node ${node.id} ${problem}`];
  });
  if (problems.length > 0) throw new ReveilleError('invalid_request', problems.join('; '));
  const plan = withArguments(intent.plan, (node) => {
    const argument = argumentOf(node);
    if (argument === undefined) return node.args;
    const args = { ...node.args, [argument]: callKey(intentId, node.id) };
    const [problem] = earlyProblems(schemaOf(toolbox.find(node.tool)!), { ...node, args }, references);
    if (problem !== undefined)
      throw new ReveilleError(
        'invalid_request',
        `the arguments of node ${node.id}, with their idempotency key: ${problem}`,
      );
    return args;
  });
  return { ...intent, plan };
}

type Schema = Readonly<Record<string, unknown>>;
/** Problems of arguments, as text that follows their position; empty when they are valid. */
type ArgumentCheck = (args: Readonly<Record<string, unknown>>) => string[];

const META_SCHEMAS: readonly (readonly [RegExp, string])[] = [
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, 'http://json-schema.org/draft-07/schema#'],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, 'https://json-schema.org/draft/2019-09/schema'],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, 'https://json-schema.org/draft/2020-12/schema'],
];
const DEFAULT_DIALECT = 'https://json-schema.org/draft/2020-12/schema';

const LONGEST_MESSAGE = 1000;

const messageOf = (thrown: unknown) => thrownText(thrown).slice(0, LONGEST_MESSAGE);

type Validator = ReturnType<AjvJsonSchemaValidator['getValidator']>;

/** By dialect. A checked schema is data for the validator and leaves no state behind. */
const metaValidators = new Map<string | undefined, Validator>();

function metaValidatorOf(dialect: unknown): Validator {
  const meta = typeof dialect === 'string' ? META_SCHEMAS.find(([pattern]) => pattern.test(dialect))?.[1] : undefined;
  const known = metaValidators.get(meta);
  if (known) return known;
  const $ref = meta ?? DEFAULT_DIALECT;
  const fresh = new AjvJsonSchemaValidator().getValidator({ ...(meta && { $schema: meta }), $ref });
  metaValidators.set(meta, fresh);
  return fresh;
}

/** Checks that the schema is a valid schema: the compiler ignores keywords with unexpected values. */
function malformed(schema: Schema): string | undefined {
  const check = metaValidatorOf(schema.$schema)(schema);
  return check.valid ? undefined : check.errorMessage;
}

/** The argument names that a plain object schema allows, because the validator's message names none. */
function allowedNames({ properties, additionalProperties }: Schema, args: object): string[] {
  if (additionalProperties !== false || typeof properties !== 'object' || properties === null) return [];
  const unknown = Object.keys(args).filter((name) => !Object.hasOwn(properties, name));
  if (unknown.length === 0) return [];
  const [got, allowed] = [unknown, Object.keys(properties)].map((names) => names.map((name) => JSON.stringify(name)));
  return [`does not accept ${got!.join(', ')}; the tool accepts ${allowed!.join(', ')}`];
}

function compile(schema: Schema): ArgumentCheck {
  // The engine would return a promise, which counts as valid; its rejection would end the process.
  if (Object.hasOwn(schema, '$async')) return () => ["cannot be checked: the tool's input schema has $async"];
  try {
    const problem = malformed(schema);
    if (problem !== undefined)
      return () => [`cannot be checked: the tool's input schema is wrong (${problem.slice(0, LONGEST_MESSAGE)})`];
    // A new engine for each schema: engines cache schemas by $id, and one server must not replace another's schema.
    // Engines load nothing: a reference to an external schema does not compile.
    const check = new AjvJsonSchemaValidator().getValidator(schema);
    return (args) => {
      const { valid, errorMessage } = check(args);
      if (valid) return [];
      const names = allowedNames(schema, args);
      const text = errorMessage.replaceAll(/(^|, )data(?=[ /])/g, '$1args').slice(0, LONGEST_MESSAGE);
      return [`does not fit the tool's input schema: ${[text, ...names].join('; it ')}`];
    };
  } catch (thrown) {
    const why = messageOf(thrown);
    return () => [`cannot be checked: the tool's input schema cannot be used (${why})`];
  }
}

const compiled = new WeakMap<Schema, ArgumentCheck>();

/** The check for a schema. A schema that cannot be compiled refuses every call with a message. */
function argumentCheck(schema: Schema): ArgumentCheck {
  const known = compiled.get(schema);
  if (known) return known;
  const fresh = compile(schema);
  compiled.set(schema, fresh);
  return fresh;
}

const opened = new WeakMap<Schema, Schema>();

/** The schema by which the arguments of a tool are checked: of an open one, only what it requires. */
function schemaOf({ definition: { inputSchema }, rail }: Pick<RailTool, 'definition' | 'rail'>): Schema {
  if (rail?.open !== true) return inputSchema;
  const known = opened.get(inputSchema);
  if (known) return known;
  const { properties, additionalProperties: _, ...rest } = inputSchema;
  const isText = (schema: unknown) => isObject(schema) && schema.type === 'string' && schema.enum === undefined;
  const members = Object.entries(isObject(properties) ? properties : {}).filter(([, schema]) => !isText(schema));
  const schema = { ...rest, properties: Object.fromEntries(members) };
  opened.set(inputSchema, schema);
  return schema;
}

/** Problems of arguments as they are sent; the text follows their position. */
export function argumentProblems(tool: Pick<RailTool, 'definition' | 'rail'>, args: CallNode['args']): string[] {
  return argumentCheck(schemaOf(tool))(args);
}

/** With only these keywords a schema does not constrain nested values by other means. */
const PLAIN_KEYWORDS: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples'],
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties', 'deprecated', 'readOnly', 'writeOnly'],
]);

/** The schema with any value allowed at a path; `undefined` when its plain keywords do not determine this. */
function loosened(schema: unknown, path: readonly string[]): unknown {
  const [head, ...rest] = path;
  if (head === undefined || schema === true) return {};
  if (!isObject(schema) || Object.keys(schema).some((keyword) => !PLAIN_KEYWORDS.has(keyword))) return undefined;
  const { properties, items } = schema;
  if (isObject(properties) && Object.hasOwn(properties, head)) {
    const inner = loosened(properties[head], rest);
    return inner === undefined ? undefined : { ...schema, properties: { ...properties, [head]: inner } };
  }
  if (isObject(items) && /^\d+$/.test(head)) {
    const inner = loosened(items, rest);
    return inner === undefined ? undefined : { ...schema, items: inner };
  }
  // An unknown name: the schema itself decides about it.
  return isObject(properties) ? schema : undefined;
}

/** Problems that are visible before references are resolved; all arguments are checked again afterwards. */
function earlyProblems(inputSchema: Schema, node: CallNode, references: readonly PlanReference[]): string[] {
  const own = references.filter(({ node_id }) => node_id === node.id);
  if (own.length === 0) return argumentCheck(inputSchema)(node.args);
  const schema = own.reduce<unknown>((before, { place }) => before && loosened(before, partsOf(place)), inputSchema);
  return isObject(schema) ? compile(schema)(node.args) : [];
}

/** Placeholder for the id of an intent that has none yet. */
const PLACEHOLDER_INTENT = '00000000-0000-7000-8000-000000000000';

type LocatedCall = { readonly node: CallNode; readonly place: string };

function locate(plan: PlanNode, place: string): LocatedCall[] {
  if (plan.kind === 'call') return [{ node: plan, place }];
  if (plan.kind === 'wait') return [];
  return plan.nodes.flatMap((node, index) => locate(node, `${place}.nodes[${index}]`));
}

function problemsOf(
  { node, place }: LocatedCall,
  references: readonly PlanReference[],
  toolbox: Pick<Toolbox, 'find' | 'absence'>,
): string[] {
  const tool = toolbox.find(node.tool);
  if (tool === undefined) return [`${place}.tool: ${toolbox.absence(node.tool)}`];
  const argument = tool.rail?.idempotency_key;
  const forbidden = keyProblem(node, argument);
  if (forbidden !== undefined) return [`${place}.args ${forbidden}`];
  const args = argument === undefined ? node.args : { ...node.args, [argument]: callKey(PLACEHOLDER_INTENT, node.id) };
  return earlyProblems(schemaOf(tool), { ...node, args }, references).map((problem) => `${place}.args ${problem}`);
}

/**
 * Checks a plan as it was submitted or compiled, before idempotency keys are filled in.
 *
 * @returns a sentence for each problem, with its position (`plan.nodes[1].args …`); empty when the plan can be executed
 */
export function checkPlan(intent: Intent, toolbox: Pick<Toolbox, 'find' | 'absence'>): { problems: string[] } {
  const { references } = readReferences(intent.plan);
  return { problems: locate(intent.plan, 'plan').flatMap((located) => problemsOf(located, references, toolbox)) };
}
