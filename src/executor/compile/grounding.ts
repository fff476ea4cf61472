/**
 * Grounding: every value of a plan must occur verbatim, as a whole word, in the task, in the submitted conversation, or
 * in an answer of a tool. Otherwise the model has invented it. Pure.
 *
 * Exceptions and their reasons:
 * - names of tools, and of fields in a tool's schema: the set is closed;
 * - `true`, `false`, `null` and the empty text: they identify nothing;
 * - values that the schema forces (`const`, `default`, the only one of an `enum`): the call has the same meaning
 *   without them;
 * - a value that a schema lists may be written in any case and with spaces for `_` and `-`, because it is unambiguous.
 *   It must still occur: chains and currencies are often chosen from such a list;
 * - numbers may be written differently as the same decimal (`5`, `5.00`), so may amounts that are texts;
 * - texts for people (`memo`, `constraints`, …) may be composed of words that occur; a part that is not a plain word
 *   must occur verbatim;
 * - a wait, and an argument in seconds, may be given with a unit (`10 minutes`), an instant as the same moment in
 *   another zone;
 * - a `conversation_id` may be that of the task's conversation;
 * - listed values that a manifest lets the compiler choose (`rail.chosen`);
 * - a reference to an earlier result (`$ref`): its value does not exist yet;
 * - the verb and the ids of nodes are the compiler's own; they must be plain words.
 */
import { isDeepStrictEqual } from 'node:util';
import { misleading } from '../../kit/text/hidden-characters.ts';
import type { CallNode, Intent, PlanNode } from '../../wire/intent.ts';
import { isObject } from '../../wire/json.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { withoutTrailing } from '../../wire/text.ts';
import { escaped, valueAt } from '../intent/pointer.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { type Material, ORIGINS, type Origin, type OriginKind, type Source, sourcesOf } from './sources.ts';

/** The origin of a value in a call's arguments. */
export type Provenance = {
  readonly node_id: string;
  /** JSON Pointer into the arguments. */
  readonly place: string;
  /** A text as it is, a number as JSON writes it. */
  readonly value: string;
  /**
   * Its origin, by the order of {@link ORIGINS}; for a composed text, the last origin of its words. `nowhere`:
   * invented.
   */
  readonly from: OriginKind | 'nowhere';
  /** Of a `read`: `<alias>/<tool>` */
  readonly tool?: string;
};

type Tools = Pick<Toolbox, 'find'>;

/** Names of arguments with text for people, in any tool. */
const FOR_PEOPLE =
  /^(?:memo|notes?|wake_message|description|comments?|message|reason|subject|title|summary|purpose|narration|body_?text)$/i;

/** Names of arguments with a duration in seconds, which people also write in other units. */
const DURATION_NAME = /^(?:[a-z]+_)*seconds$/;

/** An amount as a text: without leading zeros, which belong to identifiers. */
const DECIMAL_TEXT = /^(?:0|[1-9]\d{0,77})(?:\.\d{1,78})?$/;

/** Longer texts for people must occur verbatim. In UTF-16 units. */
const COMPOSED_MAX = 2000;
/** Values of one plan; each is searched in all sources. */
const VALUES_MAX = 2000;

const PLAIN_KEY = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;
const PLAIN_VERB = /^[\p{L}\p{M}]+(?:[ _-][\p{L}\p{M}]+){0,4}$/u;

/** A value and how it may occur in a source. */
type Leaf = {
  /** `/to`, `/recipients/0/amount` */
  readonly place: string;
  readonly value: string | number;
  readonly kind: 'exact' | 'listed' | 'people' | 'forced' | 'chosen' | 'span';
};

function kindOf(name: string, value: string | number, place: SchemaPosition | undefined): Leaf['kind'] {
  if (place === undefined) return 'people';
  if (isListed(place, value)) return 'listed';
  if (typeof value === 'number' && DURATION_NAME.test(name)) return 'span';
  return FOR_PEOPLE.test(name) ? 'people' : 'exact';
}

/**
 * Every text and number in a value, and every field name that the schema does not have.
 *
 * @param place `undefined` without a schema: all texts are for people
 */
function leavesOf(value: unknown, place: SchemaPosition | undefined, at: string, name: string): Leaf[] {
  if (value === null || value === '' || typeof value === 'boolean') return [];
  // A reference to an earlier result has no value yet; the question shows its origin.
  if (place !== undefined && typeof value === 'object' && Object.hasOwn(value, '$ref')) return [];
  if (place !== undefined && isForced(place, value)) {
    const shown = typeof value === 'object' ? JSON.stringify(value) : (value as string | number);
    return [{ place: at, value: shown, kind: 'forced' }];
  }
  if (typeof value === 'string' || typeof value === 'number')
    return [{ place: at, value, kind: kindOf(name, value, place) }];
  if (Array.isArray(value)) {
    return value.flatMap((entry, index) => leavesOf(entry, place && entryOf(place, index), `${at}/${index}`, name));
  }
  return Object.entries(value as object).flatMap(([key, member]) => {
    const inside = `${at}/${escaped(key)}`;
    if (place === undefined) return leavesOf(member, undefined, inside, key);
    const field = fieldOf(place, key);
    const keys: Leaf[] = field.named ? [] : [{ place: inside, value: key, kind: 'exact' }];
    return [...keys, ...leavesOf(member, field.place, inside, key)];
  });
}

const latestOrigin = (origins: readonly Origin[]) =>
  origins.reduce((one, other) => (ORIGINS.indexOf(one.kind) >= ORIGINS.indexOf(other.kind) ? one : other));

const originOf = ({ kind, tool }: Source): Origin => ({ kind, ...(tool === undefined ? {} : { tool }) });

function occursIn({ words }: Source, value: string, kind: Leaf['kind']): boolean {
  // Compare as a number: `5 million` does not contain 5.
  if (kind !== 'people' && DECIMAL_TEXT.test(value)) return words.hasNumber(value);
  if (words.has(value)) return true;
  return kind === 'listed' && (words.hasInAnyCase(value) || words.hasInAnyCase(value.replace(/[_-]/g, ' ')));
}

/** The origin of a leaf; `undefined` when it occurs nowhere. */
function groundingOf({ place, value, kind }: Leaf, given: readonly Source[]): Origin | undefined {
  if (kind === 'forced' || kind === 'chosen') return { kind: 'schema' };
  const sources = given.filter((source) => source.kind !== 'conversation' || place.endsWith('/conversation_id'));
  const source = sources.find((candidate) =>
    typeof value === 'number'
      ? candidate.words.hasNumber(String(value)) || (kind === 'span' && candidate.words.hasSeconds(value))
      : occursIn(candidate, value, kind),
  );
  if (source !== undefined) return originOf(source);
  if (kind !== 'people' || typeof value === 'number' || value.length > COMPOSED_MAX) return undefined;
  const parts = textParts(value).map(({ text, plain }) =>
    sources.find(({ words }) => words.has(text) || (plain && words.hasInAnyCase(text))),
  );
  if (parts.length === 0 || parts.includes(undefined)) return undefined;
  return latestOrigin(parts.map((part) => originOf(part!)));
}

type Located = { readonly node: PlanNode; readonly place: string };

function nodesOf(node: PlanNode, place = 'plan'): Located[] {
  const inner = node.kind === 'sequence' || node.kind === 'parallel' ? node.nodes : [];
  return [{ node, place }, ...inner.flatMap((child, index) => nodesOf(child, `${place}.nodes[${index}]`))];
}

function leavesOfCall({ tool, args }: CallNode, tools: Tools): Leaf[] {
  const found = tools.find(tool);
  const leaves = leavesOf(args, rootPosition(found?.definition.inputSchema ?? {}), '', '');
  const chosen = found?.rail?.chosen ?? [];
  return leaves.map((leaf) =>
    leaf.kind === 'listed' && chosen.includes(leaf.place) ? { ...leaf, kind: 'chosen' } : leaf,
  );
}

const SHOWN = 120;
function shown(value: string | number): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN).toWellFormed()}…` : text;
}

const NOWHERE =
  'does not occur in the task, the submitted conversation or an answer of a tool, as a whole and character for character';

function problemsOfLeaves(leaves: readonly Leaf[], place: string, sources: readonly Source[]): string[] {
  return leaves.flatMap((leaf) => {
    const at = `${place}${leaf.place} ${shown(leaf.value)}`;
    const why = typeof leaf.value === 'string' && leaf.kind !== 'forced' ? misleading(leaf.value) : undefined;
    if (why !== undefined) return [`${at} ${why}`];
    return groundingOf(leaf, sources) === undefined ? [`${at} ${NOWHERE}`] : [];
  });
}

/** Field names in `objects` and `constraints`: the model chooses them, so they must be plain names. */
function namesBelow(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(namesBelow);
  return Object.entries(value).flatMap(([name, member]) => [name, ...namesBelow(member)]);
}

/** Whether the same instant occurs in a source, in any time zone. */
function occursAsInstant(instant: string, sources: readonly Source[]): boolean {
  const at = parseInstant(instant);
  return sources.some(({ words }) => words.instants.some((text) => parseInstant(text) === at));
}

function problemsForPeople(intent: Intent, sources: readonly Source[]): string[] {
  const problems: string[] = [];
  if (!PLAIN_VERB.test(intent.verb)) {
    problems.push(`verb ${shown(intent.verb)} must be one to five plain words, such as transfer`);
  }
  for (const part of ['objects', 'constraints'] as const) {
    const value = intent[part];
    const names = namesBelow(value).filter((name) => !PLAIN_KEY.test(name));
    problems.push(...names.map((name) => `${part} must not have a field named ${shown(name)}: use a plain name`));
    problems.push(...problemsOfLeaves(leavesOf(value ?? null, undefined, '', ''), part, sources));
  }
  const { deadline } = intent;
  if (deadline !== undefined) {
    if (!occursAsInstant(deadline, sources))
      problems.push(`deadline ${shown(deadline)} ${NOWHERE}; omit it, or ask for it`);
  }
  return problems;
}

/** Number of values and field names. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, member) => sum + 1 + valuesIn(member), 0);
}

function problemsOfNode({ node, place }: Located, sources: readonly Source[], tools: Tools): string[] {
  if (node.kind === 'call') return problemsOfLeaves(leavesOfCall(node, tools), `${place}.args`, sources);
  if (node.kind !== 'wait') return [];
  if (node.until !== undefined)
    return occursAsInstant(node.until, sources) ? [] : [`${place}.until ${shown(node.until)} ${NOWHERE}`];
  if (sources.some(({ words }) => words.hasSeconds(node.seconds!))) return [];
  return [`${place}.seconds ${node.seconds} does not occur, as seconds, minutes, hours or days`];
}

/**
 * The values of an intent that are invented or not readable for people.
 *
 * @returns a sentence for each such value, with its position; empty when all are grounded
 */
export function groundingProblems(intent: Intent, material: Material, tools: Tools): string[] {
  const count = valuesIn([intent.objects, intent.constraints, intent.plan]);
  if (count > VALUES_MAX) return [`the intent must have at most ${VALUES_MAX} values (it has ${count})`];
  const sources = sourcesOf(material);
  return [
    ...problemsForPeople(intent, sources),
    ...nodesOf(intent.plan).flatMap((located) => problemsOfNode(located, sources, tools)),
  ];
}

/** The same for a lookup during the compilation. */
export function groundingProblemsOfCall(call: CallNode, material: Material, tools: Tools): string[] {
  if (valuesIn(call.args) > VALUES_MAX) return [`the arguments must have at most ${VALUES_MAX} values`];
  return problemsOfLeaves(leavesOfCall(call, tools), 'args', sourcesOf(material));
}

/** The origin of each value of a plan's calls, for the approver. */
export function provenanceOf(intent: Intent, material: Material, tools: Tools): readonly Provenance[] {
  const sources = sourcesOf(material);
  return nodesOf(intent.plan).flatMap(({ node }) => {
    if (node.kind !== 'call') return [];
    return leavesOfCall(node, tools).map((leaf): Provenance => {
      const { kind = 'nowhere', tool } = groundingOf(leaf, sources) ?? {};
      const about = { node_id: node.id, place: leaf.place, value: String(leaf.value), from: kind } as const;
      return tool === undefined ? about : { ...about, tool };
    });
  });
}

/** Letters, with single hyphens or apostrophes between them. */
const PLAIN_WORD = /^[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*$/u;
const LEADING_PUNCTUATION = /^[([{<"'‘“„«]+/u;
const TRAILING_PUNCTUATION = `)]}>"'’”»“.,:;!?…`;

type TextPart = {
  readonly text: string;
  /** Whether it is one plain word. */
  readonly plain: boolean;
};

/**
 * The parts of a text. Adjacent parts that are not plain words (`DE89 3704 0044`) stay together: separate matches could
 * compose a value that occurs nowhere.
 */
function textParts(text: string): readonly TextPart[] {
  const parts: { start: number; end: number; plain: boolean }[] = [];
  for (const { 0: word, index } of text.matchAll(/\S+/gu)) {
    const bare = withoutTrailing(word.replace(LEADING_PUNCTUATION, ''), TRAILING_PUNCTUATION);
    if (bare === '') continue;
    const start = index + word.indexOf(bare);
    const plain = PLAIN_WORD.test(bare);
    const last = parts.at(-1);
    if (!plain && last && !last.plain) last.end = start + bare.length;
    else parts.push({ start, end: start + bare.length, plain });
  }
  return parts.map(({ start, end, plain }) => ({ text: text.slice(start, end), plain }));
}

type Schema = Readonly<Record<string, unknown>>;

/** The schemas that may apply at one position, including referenced schemas and alternatives. */
export type SchemaPosition = { readonly root: Schema; readonly schemas: readonly Schema[] };

/** Maximum number of schemas for one position; schemas can refer to themselves. */
const SCHEMAS_MAX = 64;

function collectSchemas(given: readonly unknown[], root: Schema): SchemaPosition {
  const schemas = new Set<Schema>();
  const visit = (schema: unknown) => {
    if (!isObject(schema) || schemas.has(schema) || schemas.size === SCHEMAS_MAX) return;
    schemas.add(schema);
    const { $ref } = schema;
    if (typeof $ref === 'string' && $ref.startsWith('#')) visit(valueAt(root, decodedPointer($ref)));
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
      const list = schema[keyword];
      if (Array.isArray(list)) for (const entry of list) visit(entry);
    }
    for (const keyword of ['then', 'else']) visit(schema[keyword]);
  };
  for (const schema of given) visit(schema);
  return { root, schemas: [...schemas] };
}

function decodedPointer(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return reference.slice(1);
  }
}

/** The position of the arguments as a whole. */
const rootPosition = (root: Schema): SchemaPosition => collectSchemas([root], root);

/** The position of a field, and whether the schema names that field. */
function fieldOf({ root, schemas }: SchemaPosition, name: string): { place: SchemaPosition; named: boolean } {
  const own = (schema: Schema) =>
    isObject(schema.properties) && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  const known = schemas.map(own).filter((schema) => schema !== undefined);
  const given = known.length > 0 ? known : schemas.map(({ additionalProperties }) => additionalProperties);
  return { place: collectSchemas(given, root), named: known.length > 0 };
}

/** The position of an entry of a list. */
export function entryOf({ root, schemas }: SchemaPosition, index: number): SchemaPosition {
  const given = schemas.map(({ prefixItems, items }) => {
    if (Array.isArray(prefixItems) && index < prefixItems.length) return prefixItems[index];
    return Array.isArray(items) ? items[index] : items;
  });
  return collectSchemas(given, root);
}

/** Whether the tool accepts no other value here, or uses this one by default: the model did not choose it. */
function isForced({ schemas }: SchemaPosition, value: unknown): boolean {
  return schemas.some((schema) => {
    const { enum: listed } = schema;
    return (
      (Object.hasOwn(schema, 'const') && isDeepStrictEqual(schema.const, value)) ||
      (Object.hasOwn(schema, 'default') && isDeepStrictEqual(schema.default, value)) ||
      (Array.isArray(listed) && listed.length === 1 && isDeepStrictEqual(listed[0], value))
    );
  });
}

/** Whether the schema lists this value. */
function isListed({ schemas }: SchemaPosition, value: unknown): boolean {
  return schemas.some(
    ({ enum: listed, ...schema }) =>
      (Array.isArray(listed) && listed.includes(value)) || (Object.hasOwn(schema, 'const') && schema.const === value),
  );
}
