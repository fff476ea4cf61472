/**
 * Checking a call's arguments against the input schema that the server gives its tool: JSON Schema 2020-12 unless the schema names
 * 2019-09, draft-07 or draft-06.
 */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';

type Schema = Readonly<Record<string, unknown>>;
/** Sentences about what is wrong with arguments, to follow their place; none when they are right. */
export type ArgumentCheck = (args: Readonly<Record<string, unknown>>) => string[];

const META_SCHEMAS: readonly (readonly [RegExp, string])[] = [
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, 'http://json-schema.org/draft-07/schema#'],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, 'https://json-schema.org/draft/2019-09/schema'],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, 'https://json-schema.org/draft/2020-12/schema'],
];
const DEFAULT_DIALECT = 'https://json-schema.org/draft/2020-12/schema';

const LONGEST_WORDS = 1000;

const wordsOf = (thrown: unknown) =>
  (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, LONGEST_WORDS);

/** Whether the schema is one itself: the compiler passes over keywords whose value it does not expect. */
function malformed(schema: Schema): string | undefined {
  const { $schema: dialect } = schema;
  const meta = typeof dialect === 'string' ? META_SCHEMAS.find(([pattern]) => pattern.test(dialect))?.[1] : undefined;
  const $ref = meta ?? DEFAULT_DIALECT;
  const check = new AjvJsonSchemaValidator().getValidator({ ...(meta && { $schema: meta }), $ref })(schema);
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
      return () => [`cannot be checked: the tool's input schema is wrong (${wrong.slice(0, LONGEST_WORDS)})`];
    // An engine of its own: engines remember schemas by their $id, and servers must not put theirs into each other's place.
    // Engines load nothing: a reference to what stands elsewhere does not compile.
    const check = new AjvJsonSchemaValidator().getValidator(schema);
    return (args) => {
      const { valid, errorMessage } = check(args);
      if (valid) return [];
      const names = allowedNames(schema, args);
      const words = errorMessage.replaceAll(/(^|, )data(?=[ /])/g, '$1args').slice(0, LONGEST_WORDS);
      return [`does not fit the tool's input schema: ${[words, ...names].join('; it ')}`];
    };
  } catch (thrown) {
    const why = wordsOf(thrown);
    return () => [`cannot be checked: the tool's input schema cannot be used (${why})`];
  }
}

const compiled = new WeakMap<Schema, ArgumentCheck>();

/** The check for a schema; one that cannot be compiled refuses every call, in words. */
export function argumentCheck(schema: Schema): ArgumentCheck {
  const known = compiled.get(schema);
  if (known) return known;
  const fresh = compile(schema);
  compiled.set(schema, fresh);
  return fresh;
}
