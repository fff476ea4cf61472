/** What a tool's input schema says of a place in the arguments: which fields it names there, and which values it lists. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { valueAt } from '../intent/pointer.ts';

type Schema = Readonly<Record<string, unknown>>;

/** The schemas that may apply at one place: those behind references and in alternatives as well. */
export type Place = { readonly root: Schema; readonly schemas: readonly Schema[] };

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** How many schemas are looked at for one place; schemas can refer to themselves. */
const MOST_SCHEMAS = 64;

function gather(given: readonly unknown[], root: Schema): Place {
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
export const wholeOf = (root: Schema): Place => gather([root], root);

/** The place of a field, and whether the schema names that field. */
export function fieldOf({ root, schemas }: Place, name: string): { place: Place; named: boolean } {
  const own = (schema: Schema) =>
    isObject(schema.properties) && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  const known = schemas.map(own).filter((schema) => schema !== undefined);
  const given = known.length > 0 ? known : schemas.map(({ additionalProperties }) => additionalProperties);
  return { place: gather(given, root), named: known.length > 0 };
}

/** The place of an entry of a list. */
export function entryOf({ root, schemas }: Place, index: number): Place {
  const given = schemas.map(({ prefixItems, items }) => {
    if (Array.isArray(prefixItems) && index < prefixItems.length) return prefixItems[index];
    return Array.isArray(items) ? items[index] : items;
  });
  return gather(given, root);
}

/** Whether the tool takes no other value here, or this one where none is given: then nobody has chosen it. */
export function isForced({ schemas }: Place, value: unknown): boolean {
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
export function isListed({ schemas }: Place, value: unknown): boolean {
  return schemas.some(
    ({ enum: listed, ...schema }) =>
      (Array.isArray(listed) && listed.includes(value)) || (Object.hasOwn(schema, 'const') && schema.const === value),
  );
}
