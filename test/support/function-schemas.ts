/** The limits of model providers for functions, as checks of a schema. */

type Schema = Readonly<Record<string, unknown>>;

/** A function as it is sent to a provider. */
export type FunctionSchema = {
  readonly name: string;
  readonly description?: string | undefined;
  readonly parameters?: Schema | undefined;
  /** The same for Google, as JSON Schema. */
  readonly parametersJsonSchema?: Schema | undefined;
  /** The same for Anthropic. */
  readonly input_schema?: Schema | undefined;
};

const parametersOf = ({ parameters, parametersJsonSchema, input_schema }: FunctionSchema) =>
  parameters ?? parametersJsonSchema ?? input_schema;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems', 'maxItems'],
  string: ['enum'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
};
const DESCRIPTION_MAX = 1024;
const LEVELS_MAX = 10;

/** Each place of a schema with its path: the arguments themselves, members and elements. */
export function* placesOf(
  schema: unknown,
  path = '',
  level = 0,
): Generator<{ path: string; schema: Schema; level: number }> {
  if (!isObject(schema)) return;
  yield { path, schema, level };
  const { properties, items } = schema;
  if (isObject(properties))
    for (const [name, member] of Object.entries(properties)) yield* placesOf(member, `${path}/${name}`, level + 1);
  yield* placesOf(items, `${path}[]`, level + 1);
}

function placeProblems(schema: Schema, level: number): string[] {
  const { type, description, properties, required = [], items, ...others } = schema;
  const allowed = KEYWORDS[type as string];
  if (allowed === undefined) return [`the type is ${JSON.stringify(type)}`];
  const problems = Object.keys(others).flatMap((key) => (allowed.includes(key) ? [] : [`it has ${key}`]));
  if (level > LEVELS_MAX) problems.push('it is too deep');
  if (description !== undefined && (typeof description !== 'string' || description.length > DESCRIPTION_MAX))
    problems.push('the description is too long');
  if (typeof description === 'string' && !description.isWellFormed()) problems.push('the description is ill-formed');
  if (type === 'object') {
    if (!isObject(properties) || (level > 0 && Object.keys(properties).length === 0))
      problems.push('it names no members');
    const names = Object.keys(properties ?? {});
    problems.push(...names.flatMap((name) => (/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name) ? [] : [`it has ${name}`])));
    const unknown = (required as string[]).filter((name) => !names.includes(name));
    if (unknown.length > 0) problems.push(`it requires ${unknown}, which it does not have`);
  } else if (properties !== undefined || 'required' in schema) problems.push('it has members');
  if ((type === 'array') !== isObject(items)) problems.push('it must have items exactly if it is a list');
  const values = schema.enum;
  if (values !== undefined) {
    const texts = Array.isArray(values) ? values.filter((value) => typeof value === 'string' && value !== '') : [];
    if (texts.length === 0 || texts.length !== (values as unknown[]).length) problems.push('the enum has other values');
    if (new Set(texts).size !== texts.length) problems.push('the enum has a value twice');
  }
  return problems;
}

/** How a function differs from the subset that every provider accepts, one text for each difference. */
export function unsafeParts(sent: FunctionSchema): string[] {
  const { name, description = '' } = sent;
  const parameters = parametersOf(sent);
  return [
    ...(/^[A-Za-z0-9_-]{1,64}$/.test(name) ? [] : [`the name ${name}`]),
    ...(description.length > DESCRIPTION_MAX ? [`the description has ${description.length} characters`] : []),
    ...(parameters?.type === 'object' ? [] : ['the parameters are no object']),
    ...[...placesOf(parameters)].flatMap(({ path, schema, level }) =>
      placeProblems(schema, level).map((problem) => `${path || 'the parameters'}: ${problem}`),
    ),
  ];
}

/** The documented limits of a provider, for a function in the form in which a library sends it. */
export type Provider = 'openai' | 'google' | 'anthropic';

const typesOf = ({ type }: Schema) => [type].flat().filter((one) => one !== undefined);

/** Keywords that strict mode of OpenAI refuses ("Structured outputs", "Supported schemas"). */
const NOT_STRICT = ['allOf', 'not', 'oneOf', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'default'];

/** "Function calling" and "Structured outputs" of OpenAI. */
function openaiProblems(place: Schema, strict: boolean): string[] {
  const problems = typesOf(place).includes('array') && !('items' in place) ? ['it has no items'] : [];
  if (!strict) return problems;
  if (typesOf(place).length === 0 && !('anyOf' in place) && !('$ref' in place)) problems.push('it has no type');
  problems.push(...NOT_STRICT.flatMap((key) => (key in place ? [`it has ${key}`] : [])));
  if (!typesOf(place).includes('object')) return problems;
  const { properties = {}, required = [], additionalProperties } = place;
  if (additionalProperties !== false) problems.push('it allows more members');
  const optional = Object.keys(properties as object).filter((name) => !(required as string[]).includes(name));
  return optional.length === 0 ? problems : [...problems, `it does not require ${optional.length} members`];
}

/** The members of "Schema" of Vertex AI and the Gemini API, and those of their `parametersJsonSchema`. */
const GOOGLE = [
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'minItems', 'maxItems', 'properties'],
  ...['required', 'minProperties', 'maxProperties', 'minLength', 'maxLength', 'pattern', 'anyOf', 'propertyOrdering'],
  ...['default', 'minimum', 'maximum', 'example', 'additionalProperties'],
];

/** "FunctionDeclaration" and "Schema" of Vertex AI, and errors of both interfaces. */
function googleProblems(place: Schema, level: number): string[] {
  const problems = Object.keys(place).flatMap((key) => (GOOGLE.includes(key) ? [] : [`it has ${key}`]));
  const [type, ...more] = typesOf(place);
  if (place.anyOf !== undefined) problems.push('it has anyOf');
  else if (type === undefined || more.length > 0) problems.push('it has no single type');
  const values = (place.enum ?? []) as unknown[];
  if (values.some((value) => typeof value !== 'string' || value === '')) problems.push('the enum has other values');
  if (place.enum !== undefined && String(type).toLowerCase() !== 'string') problems.push('an enum must be of strings');
  const names = isObject(place.properties) ? Object.keys(place.properties) : [];
  if (String(type).toLowerCase() === 'object' && level > 0 && names.length === 0) problems.push('it names no members');
  if (String(type).toLowerCase() === 'array' && !isObject(place.items)) problems.push('it has no items');
  return problems;
}

/** "Tool use" of Anthropic. */
function anthropicProblems(place: Schema, level: number): string[] {
  const combined = level > 0 ? [] : ['anyOf', 'oneOf', 'allOf'].filter((key) => key in place);
  const names = isObject(place.properties) ? Object.keys(place.properties) : [];
  const wrong = names.filter((name) => !/^[A-Za-z0-9_.-]{1,64}$/.test(name));
  return [...combined.map((key) => `it has ${key}`), ...wrong.map((name) => `it has ${name}`)];
}

/** Why a provider refuses a function by its documented limits. */
export function refusalOf(provider: Provider, sent: FunctionSchema, strict: boolean) {
  const { name, description = '' } = sent;
  const parameters = parametersOf(sent);
  const problems: string[] = [];
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) problems.push(`the name ${name}`);
  if (provider === 'openai' && description.length > DESCRIPTION_MAX)
    problems.push(`the description has ${description.length} characters`);
  // A function without arguments may have none.
  if (parameters === undefined) return problems;
  if (String(parameters.type).toLowerCase() !== 'object') problems.push('the arguments are no object');
  for (const { path, schema, level } of placesOf(parameters)) {
    const found = {
      openai: () => openaiProblems(schema, strict),
      google: () => googleProblems(schema, level),
      anthropic: () => anthropicProblems(schema, level),
    }[provider]();
    problems.push(...found.map((problem) => `${path || 'arguments'}: ${problem}`));
  }
  return problems;
}

/** A place without null, in any notation, and with the bounds of Google's texts as numbers. */
function plainPlace(place: Schema) {
  const { nullable: _, anyOf, ...own } = place;
  const others = Array.isArray(anyOf) ? anyOf.filter((one) => String(one.type).toLowerCase() !== 'null') : [];
  const { type, enum: values, format, ...rest }: Schema = others.length === 1 ? { ...own, ...others[0] } : place;
  const types = [type].flat().map((one) => String(one).toLowerCase());
  const bounds = ['minimum', 'maximum', 'minItems', 'maxItems', 'minLength', 'maxLength'];
  return {
    ...rest,
    type: types.filter((one) => one !== 'null').join(' or '),
    enum: Array.isArray(values) ? values.filter((value) => value !== null) : undefined,
    // Google's "enum" only repeats the enum.
    format: format === 'enum' ? undefined : format,
    ...Object.fromEntries(bounds.map((key) => [key, rest[key] === undefined ? undefined : Number(rest[key])])),
  } as Schema;
}

const COMPARED = ['type', 'enum', 'description', 'minimum', 'maximum', 'minItems', 'maxItems'];

function changesOfPlace(before: unknown, after: unknown, path: string, strict: boolean): string[] {
  const at = path || 'arguments';
  if (!isObject(before) || !isObject(after)) return isObject(before) ? [`${at} is gone`] : [];
  const [one, other] = [plainPlace(before), plainPlace(after)];
  const changes = COMPARED.filter((key) => JSON.stringify(one[key]) !== JSON.stringify(other[key])).map(
    (key) =>
      `${at}: ${key} ${JSON.stringify(one[key])?.slice(0, 40)} became ${JSON.stringify(other[key])?.slice(0, 40)}`,
  );
  const [these, those] = [one, other].map(({ properties }) => (isObject(properties) ? properties : {})) as [
    Schema,
    Schema,
  ];
  const required = new Set(strict ? Object.keys(these) : ((before.required ?? []) as string[]));
  const stillRequired = (after.required ?? []) as string[];
  const differing = Object.keys(these).filter((name) => required.has(name) !== stillRequired.includes(name));
  if (differing.length > 0) changes.push(`${at}: required differs for ${differing.length} members`);
  const added = Object.keys(those).filter((name) => !Object.hasOwn(these, name));
  return [
    ...changes,
    ...added.map((name) => `${path}/${name} is new`),
    ...Object.entries(these).flatMap(([name, member]) =>
      changesOfPlace(member, those[name], `${path}/${name}`, strict),
    ),
    ...(isObject(one.items) ? changesOfPlace(one.items, other.items, `${path}[]`, strict) : []),
  ];
}

/** How a library has changed the meaning of a function. In strict mode it must require all members. */
export function changesOf(before: FunctionSchema, after: FunctionSchema, strict: boolean): string[] {
  const said = before.description === after.description ? [] : ['the description differs'];
  const name = before.name === after.name ? [] : [`the name became ${after.name}`];
  const [these, those] = [parametersOf(before), parametersOf(after)];
  const isEmpty = Object.keys((these?.properties ?? {}) as object).length === 0 && those === undefined;
  return [...name, ...said, ...(isEmpty ? [] : changesOfPlace(these, those, '', strict))];
}
