/**
 * Reads an intent from its source text. The approved call must equal the sent call to the last digit. So ambiguous text
 * is refused: numbers that JavaScript rounds, duplicate fields, lone surrogates.
 */
import { JsonSyntaxError, readPlacedJson } from '../../kit/json/strict-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Intent, intentSchema, PLAN_DEPTH_MAX, PLAN_NODES_MAX, type PlanNode } from '../../wire/intent.ts';
import { utf8Bytes } from '../../wire/text.ts';
import { checkInput } from '../../wire/validate.ts';
import { readReferences } from './reference.ts';

export const INTENT_MAX_BYTES = 256 * 1024;

/** Names with a special meaning in JavaScript. */
const DANGEROUS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

type Path = readonly PropertyKey[];

/** `plan.nodes[1].args.amount` */
function pathText(path: Path): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}

function refuse(path: Path, what: string): never {
  const position = pathText(path);
  throw new ReveilleError('invalid_request', `${position === '' ? 'the intent' : position} ${what}`);
}

/** @throws ReveilleError naming the first few positions */
function refuseAll(problems: readonly { path: Path; what: string }[]): never {
  const sentences = problems.slice(0, 10).map(({ path, what }) => `${pathText(path)} ${what}`);
  throw new ReveilleError('invalid_request', sentences.join('; '));
}

function parse(text: string): unknown {
  try {
    return readPlacedJson(text, true).value;
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    const { line, column } = thrown.place;
    return refuse(thrown.path, `cannot be read (line ${line}, column ${column}): ${thrown.message}`);
  }
}

/** Checks every field name at any depth. */
function checkNames(value: unknown, path: Path): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (DANGEROUS.has(name)) refuse(path, `must not have a field named ${name}`);
    checkNames(member, [...path, Array.isArray(value) ? Number(name) : name]);
  }
}

/** Checks limits that a schema cannot express: number and depth of nodes, and unique ids. */
function checkNodes(plan: PlanNode): void {
  const seen = new Map<string, Path>();
  const visit = (node: PlanNode, path: Path, depth: number) => {
    const firstPath = seen.get(node.id);
    if (firstPath)
      refuse([...path, 'id'], `is ${JSON.stringify(node.id)}, which is the id of ${pathText(firstPath)} as well`);
    seen.set(node.id, path);
    if (seen.size > PLAN_NODES_MAX) refuse(['plan'], `must have at most ${PLAN_NODES_MAX} nodes`);
    if (node.kind === 'call' || node.kind === 'wait') return;
    if (depth === PLAN_DEPTH_MAX) {
      refuse(path, `is nested too deep: sequences and parallels may be nested ${PLAN_DEPTH_MAX} deep`);
    }
    for (const [index, inner] of node.nodes.entries()) visit(inner, [...path, 'nodes', index], depth + 1);
  };
  visit(plan, ['plan'], 0);
}

/**
 * @param sourceText JSON from a client or a model
 * @returns the intent; every number in it is exact
 * @throws ReveilleError `invalid_request` naming the position, such as `plan.nodes[1].args.amount`
 */
export function readIntent(sourceText: string): Intent {
  const bytes = utf8Bytes(sourceText);
  if (bytes > INTENT_MAX_BYTES) refuse([], `must be at most ${INTENT_MAX_BYTES} bytes of UTF-8, it has ${bytes}`);
  const value = parse(sourceText);
  checkNames(value, []);
  const checked = checkInput(intentSchema, value);
  if ('problems' in checked) {
    const sentences = checked.problems.map(({ path, sentence }) =>
      path.length === 0 && sentence.startsWith('must ')
        ? `the intent ${sentence}`
        : sentence.replace(path.join('.'), pathText(path)),
    );
    throw new ReveilleError('invalid_request', [...new Set(sentences)].join('; '));
  }
  checkNodes(checked.value.plan);
  const { problems } = readReferences(checked.value.plan);
  if (problems.length > 0) refuseAll(problems);
  return checked.value;
}
