/**
 * Grounding: every value of a plan must stand, verbatim and as a whole word, in the task, in the conversation handed
 * over, or in what a tool answered; otherwise somebody has made it up. Pure.
 *
 * The exceptions, each with its reason:
 * - names of tools, and of fields that a tool's schema names: there are no others;
 * - `true`, `false`, `null` and the empty text: nothing is named by them;
 * - values that the schema forces (`const`, `default`, the only one of an `enum`): the call would mean the same without
 *   them;
 * - of the values that a schema lists, one may be named in any case and with spaces for `_` and `-`: there is nothing
 *   that it could be
 *   mistaken for. It must be named all the same, for a chain or a currency is often picked from such a list;
 * - numbers may be written differently as the same decimal (`5`, `5.00`), so may amounts that are texts;
 * - texts for people (`memo`, `constraints`, …) may be put together from words that occur; whatever in them is no plain
 *   word has to
 *   occur as it stands;
 * - a wait, and an argument in seconds, may be given with a unit (`10 minutes`), an instant as the same moment in another zone;
 * - a `conversation_id` may be that of the conversation which the task comes from;
 * - what a manifest lets a compiler choose of the values that a schema lists (`rail.chosen`);
 * - a reference to an earlier result (`$ref`): its value is not there yet;
 * - the verb and the ids of nodes are the compiler's own, so they can be nothing but plain words.
 */

import { isDeepStrictEqual } from 'node:util';
import { misleading } from '../../kit/text/hidden-characters.ts';
import type { CallNode, Intent, PlanNode } from '../../wire/intent.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { valueAt } from '../intent/pointer.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { type Material, ORIGINS, type Origin, type OriginKind, type Source, sourcesOf } from './sources.ts';

/** Where a value of a call's arguments comes from. */
export type Provenance = {
  readonly node_id: string;
  /** JSON Pointer into the arguments. */
  readonly place: string;
  /** A text as it is, a number as JSON writes it. */
  readonly value: string;
  /**
   * Where it stands, by the order of {@link ORIGINS}; of a text put together from words, the last of these. `nowhere`:
   * made up.
   */
  readonly from: OriginKind | 'nowhere';
  /** Of a `read`: `<alias>/<tool>` */
  readonly tool?: string;
};

type Tools = Pick<Toolbox, 'find'>;

/** Names of arguments that hold words for people, whatever tool they belong to. */
const FOR_PEOPLE =
  /^(?:memo|notes?|wake_message|description|comments?|message|reason|subject|title|summary|purpose|narration|body_?text)$/i;

/** Names of arguments that hold a length of time in seconds, which people say in other units, too. */
const SPAN = /^(?:[a-z]+_)*seconds$/;

/** An amount as a text: without leading zeros, which belong to identifiers. */
const DECIMAL_TEXT = /^(?:0|[1-9]\d{0,77})(?:\.\d{1,78})?$/;

/** Longer texts for people must occur as they are. In UTF-16 units. */
const LONGEST_COMPOSED = 2000;
/** Values of one plan; each is looked for in all that was handed over. */
const VALUES_MAX = 2000;

const PLAIN_KEY = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;
const PLAIN_VERB = /^[\p{L}\p{M}]+(?:[ _-][\p{L}\p{M}]+){0,4}$/u;

/** A value and how it may stand in a source. */
type Leaf = {
  /** `/to`, `/recipients/0/amount` */
  readonly place: string;
  readonly value: string | number;
  readonly kind: 'exact' | 'listed' | 'people' | 'forced' | 'chosen' | 'span';
};

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function kindOf(name: string, value: string | number, place: SchemaPosition | undefined): Leaf['kind'] {
  if (place === undefined) return 'people';
  if (isListed(place, value)) return 'listed';
  if (typeof value === 'number' && SPAN.test(name)) return 'span';
  return FOR_PEOPLE.test(name) ? 'people' : 'exact';
}

/**
 * Every text and number below a value, and every field name that the schema does not know.
 *
 * @param place `undefined` where there is no schema and all is for people
 */
function leavesOf(value: unknown, place: SchemaPosition | undefined, at: string, name: string): Leaf[] {
  if (value === null || value === '' || typeof value === 'boolean') return [];
  // A reference to an earlier result: there is no value yet, and whoever is asked is told where it came from.
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

const lastOf = (origins: readonly Origin[]) =>
  origins.reduce((one, other) => (ORIGINS.indexOf(one.kind) >= ORIGINS.indexOf(other.kind) ? one : other));

const originOf = ({ kind, tool }: Source): Origin => ({ kind, ...(tool === undefined ? {} : { tool }) });

function occursIn({ words }: Source, value: string, kind: Leaf['kind']): boolean {
  // As a number it is not found in `5 million`.
  if (kind !== 'people' && DECIMAL_TEXT.test(value)) return words.hasNumber(value);
  if (words.has(value)) return true;
  return kind === 'listed' && (words.hasInAnyCase(value) || words.hasInAnyCase(value.replace(/[_-]/g, ' ')));
}

/** Where a leaf comes from; `undefined` when it stands nowhere. */
function groundingOf({ place, value, kind }: Leaf, given: readonly Source[]): Origin | undefined {
  if (kind === 'forced' || kind === 'chosen') return { kind: 'schema' };
  const sources = given.filter((source) => source.kind !== 'conversation' || place.endsWith('/conversation_id'));
  const source = sources.find((candidate) =>
    typeof value === 'number'
      ? candidate.words.hasNumber(String(value)) || (kind === 'span' && candidate.words.hasSeconds(value))
      : occursIn(candidate, value, kind),
  );
  if (source !== undefined) return originOf(source);
  if (kind !== 'people' || typeof value === 'number' || value.length > LONGEST_COMPOSED) return undefined;
  const parts = textParts(value).map(({ text, plain }) =>
    sources.find(({ words }) => words.has(text) || (plain && words.hasInAnyCase(text))),
  );
  if (parts.length === 0 || parts.includes(undefined)) return undefined;
  return lastOf(parts.map((part) => originOf(part!)));
}

type Located = { readonly node: PlanNode; readonly place: string };

function nodesOf(node: PlanNode, place = 'plan'): Located[] {
  const inner = node.kind === 'sequence' || node.kind === 'parallel' ? node.nodes : [];
  return [{ node, place }, ...inner.flatMap((child, index) => nodesOf(child, `${place}.nodes[${index}]`))];
}

function leavesOfCall({ tool, args }: CallNode, tools: Tools): Leaf[] {
  const found = tools.find(tool);
  const leaves = leavesOf(args, wholeOf(found?.definition.inputSchema ?? {}), '', '');
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
  'stands neither in the task, nor in the conversation handed over, nor in what a tool answered, as a whole and character for character';

function problemsOfLeaves(leaves: readonly Leaf[], place: string, sources: readonly Source[]): string[] {
  return leaves.flatMap((leaf) => {
    const at = `${place}${leaf.place} ${shown(leaf.value)}`;
    const why = typeof leaf.value === 'string' && leaf.kind !== 'forced' ? misleading(leaf.value) : undefined;
    if (why !== undefined) return [`${at} ${why}`];
    return groundingOf(leaf, sources) === undefined ? [`${at} ${NOWHERE}`] : [];
  });
}

/** Field names below `objects` and `constraints`: nobody has written them, so they can only be names. */
function namesBelow(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(namesBelow);
  return Object.entries(value).flatMap(([name, member]) => [name, ...namesBelow(member)]);
}

/** Whether the same moment stands in a source, in whatever zone. */
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
    problems.push(...names.map((name) => `${part} must not have a field named ${shown(name)}: a plain name is needed`));
    problems.push(...problemsOfLeaves(leavesOf(value ?? null, undefined, '', ''), part, sources));
  }
  const { deadline } = intent;
  if (deadline !== undefined) {
    if (!occursAsInstant(deadline, sources))
      problems.push(`deadline ${shown(deadline)} ${NOWHERE}; leave it out, or ask for it`);
  }
  return problems;
}

/** How many values and names of fields there are. */
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
  return [`${place}.seconds ${node.seconds} stands nowhere, neither as seconds nor as minutes, hours or days`];
}

/**
 * What in an intent was made up, or cannot be read by a person.
 *
 * @returns a sentence for each such value, with its place; none when all of them are grounded
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

/** The same for a call that is made while compiling. */
export function groundingProblemsOfCall(call: CallNode, material: Material, tools: Tools): string[] {
  if (valuesIn(call.args) > VALUES_MAX) return [`the arguments must have at most ${VALUES_MAX} values`];
  return problemsOfLeaves(leavesOfCall(call, tools), 'args', sourcesOf(material));
}

/** Where each value of a plan's calls comes from: what a person should know who is asked about one. */
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

/** Letters, with a hyphen or an apostrophe between them at most. */
const PLAIN = /^[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*$/u;
const AROUND = /^[([{<"'‘“„«]+|[)\]}>"'’”»“.,:;!?…]+$/gu;

type TextPart = {
  readonly text: string;
  /** Whether it is one plain word. */
  readonly plain: boolean;
};

/**
 * The parts of a text. Neighbours that are no plain words (`DE89 3704 0044`) stay together as they stand: put together
 * from pieces they would be a value that nobody has written.
 */
function textParts(text: string): readonly TextPart[] {
  const parts: { start: number; end: number; plain: boolean }[] = [];
  for (const { 0: word, index } of text.matchAll(/\S+/gu)) {
    const bare = word.replace(AROUND, '');
    if (bare === '') continue;
    const start = index + word.indexOf(bare);
    const plain = PLAIN.test(bare);
    const last = parts.at(-1);
    if (!plain && last && !last.plain) last.end = start + bare.length;
    else parts.push({ start, end: start + bare.length, plain });
  }
  return parts.map(({ start, end, plain }) => ({ text: text.slice(start, end), plain }));
}

type Schema = Readonly<Record<string, unknown>>;

/** The schemas that may apply at one place: those behind references and in alternatives as well. */
export type SchemaPosition = { readonly root: Schema; readonly schemas: readonly Schema[] };

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** How many schemas are looked at for one place; schemas can refer to themselves. */
const MOST_SCHEMAS = 64;

function gather(given: readonly unknown[], root: Schema): SchemaPosition {
  const schemas = new Set<Schema>();
  const visit = (schema: unknown) => {
    if (!isObject(schema) || schemas.has(schema) || schemas.size === MOST_SCHEMAS) return;
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

/** The arguments as a whole. */
const wholeOf = (root: Schema): SchemaPosition => gather([root], root);

/** The place of a field, and whether the schema names that field. */
function fieldOf({ root, schemas }: SchemaPosition, name: string): { place: SchemaPosition; named: boolean } {
  const own = (schema: Schema) =>
    isObject(schema.properties) && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  const known = schemas.map(own).filter((schema) => schema !== undefined);
  const given = known.length > 0 ? known : schemas.map(({ additionalProperties }) => additionalProperties);
  return { place: gather(given, root), named: known.length > 0 };
}

/** The place of an entry of a list. */
export function entryOf({ root, schemas }: SchemaPosition, index: number): SchemaPosition {
  const given = schemas.map(({ prefixItems, items }) => {
    if (Array.isArray(prefixItems) && index < prefixItems.length) return prefixItems[index];
    return Array.isArray(items) ? items[index] : items;
  });
  return gather(given, root);
}

/** Whether the tool takes no other value here, or this one where none is given: then nobody has chosen it. */
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

/** Whether the schema lists this value among those that it takes. */
function isListed({ schemas }: SchemaPosition, value: unknown): boolean {
  return schemas.some(
    ({ enum: listed, ...schema }) =>
      (Array.isArray(listed) && listed.includes(value)) || (Object.hasOwn(schema, 'const') && schema.const === value),
  );
}
