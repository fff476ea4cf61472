/** Looking at plans: which calls they hold, and what stands for a call. Pure. */

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, Intent, PlanNode } from '../../wire/intent.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { type PlanReference, readReferences } from './reference.ts';

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

/** The same for every attempt at a node, and no other node's of any intent. */
export function idempotencyKey(intentId: string, nodeId: string): string {
  return `${intentId}.${nodeId}`;
}

/**
 * Why a plan must not set the argument itself; `undefined` when it does not. To follow the place of the node's
 * arguments.
 */
function keyProblem(node: CallNode, argument: string | undefined): string | undefined {
  if (argument === undefined || !Object.hasOwn(node.args, argument)) return undefined;
  return `must not set ${JSON.stringify(argument)}: it takes the idempotency key, which the executor fills in itself`;
}

/**
 * The intent with an idempotency key in every call whose tool takes one.
 *
 * @throws ReveilleError `invalid_request` when the plan sets one itself, or when the tool's schema does not take ours
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
    const args = { ...node.args, [argument]: idempotencyKey(intentId, node.id) };
    const [problem] = earlyProblems(toolbox.find(node.tool)!.definition.inputSchema, { ...node, args }, references);
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
/** Sentences about what is wrong with arguments, to follow their place; none when they are right. */
type ArgumentCheck = (args: Readonly<Record<string, unknown>>) => string[];

const META_SCHEMAS: readonly (readonly [RegExp, string])[] = [
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, 'http://json-schema.org/draft-07/schema#'],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, 'https://json-schema.org/draft/2019-09/schema'],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, 'https://json-schema.org/draft/2020-12/schema'],
];
const DEFAULT_DIALECT = 'https://json-schema.org/draft/2020-12/schema';

const LONGEST_MESSAGE = 1000;

const messageOf = (thrown: unknown) =>
  (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, LONGEST_MESSAGE);

type Validator = ReturnType<AjvJsonSchemaValidator['getValidator']>;

/** By dialect. A schema that is looked at with one is data to it, and leaves nothing behind. */
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

/** Whether the schema is one itself: the compiler passes over keywords whose value it does not expect. */
function malformed(schema: Schema): string | undefined {
  const check = metaValidatorOf(schema.$schema)(schema);
  return check.valid ? undefined : check.errorMessage;
}

/** The names that a plain schema of an object allows, for a message that names none. */
function allowedNames({ properties, additionalProperties }: Schema, args: object): string[] {
  if (additionalProperties !== false || typeof properties !== 'object' || properties === null) return [];
  const unknown = Object.keys(args).filter((name) => !Object.hasOwn(properties, name));
  if (unknown.length === 0) return [];
  const [got, allowed] = [unknown, Object.keys(properties)].map((names) => names.map((name) => JSON.stringify(name)));
  return [`has no place for ${got!.join(', ')}; the tool takes ${allowed!.join(', ')}`];
}

function compile(schema: Schema): ArgumentCheck {
  // The engine would answer with a promise, which counts as a yes and brings the process down when it is a no.
  if (Object.hasOwn(schema, '$async')) return () => ["cannot be checked: the tool's input schema has $async"];
  try {
    const wrong = malformed(schema);
    if (wrong !== undefined)
      return () => [`cannot be checked: the tool's input schema is wrong (${wrong.slice(0, LONGEST_MESSAGE)})`];
    // An engine of its own: engines remember schemas by their $id, and servers must not put theirs into each other's
    // place. Engines load nothing: a reference to what stands elsewhere does not compile.
    const check = new AjvJsonSchemaValidator().getValidator(schema);
    return (args) => {
      const { valid, errorMessage } = check(args);
      if (valid) return [];
      const names = allowedNames(schema, args);
      const words = errorMessage.replaceAll(/(^|, )data(?=[ /])/g, '$1args').slice(0, LONGEST_MESSAGE);
      return [`does not fit the tool's input schema: ${[words, ...names].join('; it ')}`];
    };
  } catch (thrown) {
    const why = messageOf(thrown);
    return () => [`cannot be checked: the tool's input schema cannot be used (${why})`];
  }
}

const compiled = new WeakMap<Schema, ArgumentCheck>();

/** The check for a schema; one that cannot be compiled refuses every call, in words. */
function argumentCheck(schema: Schema): ArgumentCheck {
  const known = compiled.get(schema);
  if (known) return known;
  const fresh = compile(schema);
  compiled.set(schema, fresh);
  return fresh;
}

/** What is wrong with arguments as they are sent: words that follow their place. */
export function argumentProblems(inputSchema: Schema, args: CallNode['args']): string[] {
  return argumentCheck(inputSchema)(args);
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Besides these keywords nothing in a schema speaks of what stands below it. */
const PLAIN_KEYWORDS: ReadonlySet<string> = new Set([
  ...['$schema', '$id', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples'],
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties', 'deprecated', 'readOnly', 'writeOnly'],
]);

/** A schema that takes anything at a place; `undefined` where that cannot be told from its plain keywords. */
function loosened(schema: unknown, path: readonly string[]): unknown {
  const [head, ...rest] = path;
  if (head === undefined || schema === true) return {};
  if (!isSchema(schema) || Object.keys(schema).some((keyword) => !PLAIN_KEYWORDS.has(keyword))) return undefined;
  const { properties, items } = schema;
  if (isSchema(properties) && Object.hasOwn(properties, head)) {
    const inner = loosened(properties[head], rest);
    return inner === undefined ? undefined : { ...schema, properties: { ...properties, [head]: inner } };
  }
  if (isSchema(items) && /^\d+$/.test(head)) {
    const inner = loosened(items, rest);
    return inner === undefined ? undefined : { ...schema, items: inner };
  }
  // A name that the schema does not have: it says itself what it thinks of that.
  return isSchema(properties) ? schema : undefined;
}

/** What can be told of arguments before their references are resolved; all of it is checked again then. */
function earlyProblems(inputSchema: Schema, node: CallNode, references: readonly PlanReference[]): string[] {
  const own = references.filter(({ node_id }) => node_id === node.id);
  if (own.length === 0) return argumentCheck(inputSchema)(node.args);
  const partsOf = (place: string) =>
    place
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const schema = own.reduce<unknown>((before, { place }) => before && loosened(before, partsOf(place)), inputSchema);
  return isSchema(schema) ? compile(schema)(node.args) : [];
}

/** Stands in for an intent's id while it has none. */
const SOME_INTENT = '00000000-0000-7000-8000-000000000000';

type Located = { readonly node: CallNode; readonly place: string };

function locate(plan: PlanNode, place: string): Located[] {
  if (plan.kind === 'call') return [{ node: plan, place }];
  if (plan.kind === 'wait') return [];
  return plan.nodes.flatMap((node, index) => locate(node, `${place}.nodes[${index}]`));
}

function problemsOf(
  { node, place }: Located,
  references: readonly PlanReference[],
  toolbox: Pick<Toolbox, 'find' | 'absence'>,
): string[] {
  const tool = toolbox.find(node.tool);
  if (tool === undefined) return [`${place}.tool: ${toolbox.absence(node.tool)}`];
  const argument = tool.rail?.idempotency_key;
  const forbidden = keyProblem(node, argument);
  if (forbidden !== undefined) return [`${place}.args ${forbidden}`];
  const args = argument === undefined ? node.args : { ...node.args, [argument]: idempotencyKey(SOME_INTENT, node.id) };
  return earlyProblems(tool.definition.inputSchema, { ...node, args }, references).map(
    (problem) => `${place}.args ${problem}`,
  );
}

/**
 * Checks a plan as it was submitted or compiled, before idempotency keys are filled in.
 *
 * @returns a sentence for each thing that is wrong, with its place (`plan.nodes[1].args …`); none when the plan can be
 *   carried out
 */
export function checkPlan(intent: Intent, toolbox: Pick<Toolbox, 'find' | 'absence'>): { problems: string[] } {
  const { references } = readReferences(intent.plan);
  return { problems: locate(intent.plan, 'plan').flatMap((located) => problemsOf(located, references, toolbox)) };
}
