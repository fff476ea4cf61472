/**
 * The names under which a model calls tools: `alias__tool` if models accept it, otherwise a readable beginning and a
 * digest. A name depends on its own tool only, so other tools do not change it.
 */
import { createHash } from 'node:crypto';

/** The names that every provider accepts. */
export const FUNCTION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** Names of functions that do not belong to a server. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['core_execute', 'memory_recall']);

const LONGEST = 63;
const DIGEST_CHARACTERS = 12;

/**
 * The suffix of names with a digest. A tool whose own name ends like this gets a digest too, so that the two cannot be
 * confused.
 */
const LIKE_A_DIGEST = new RegExp(`_[0-9a-f]{${DIGEST_CHARACTERS}}$`);

/**
 * The alias ends at the first double underscore. This holds unless the alias contains one or ends with an underscore:
 * `a_` and `b` would give the same name as `a` and `_b`.
 */
const isSeparable = (alias: string) => !alias.includes('__') && !alias.endsWith('_');

/**
 * The function name of a tool. Two tools get the same name only if 48 bits of SHA-256 collide.
 *
 * @returns a name that matches {@link FUNCTION_NAME} and is not reserved
 */
export function functionName(alias: string, tool: string): string {
  const plain = `${alias}__${tool}`;
  if (FUNCTION_NAME.test(plain) && isSeparable(alias) && !LIKE_A_DIGEST.test(plain)) return plain;
  // JSON keeps the two apart and distinguishes lone surrogates, which have no UTF-8 form.
  const identity = JSON.stringify([alias, tool]);
  const digest = createHash('sha256').update(identity).digest('hex').slice(0, DIGEST_CHARACTERS);
  const readable = plain.replace(/[^A-Za-z0-9_-]/g, '_').replace(/^(?![A-Za-z_])/, '_');
  return `${readable.slice(0, LONGEST - DIGEST_CHARACTERS - 1)}_${digest}`;
}

/** Two tools with the same function name. */
export type NameCollision<T> = { name: string; tools: readonly [T, T] };

/** Gives every tool its name. @returns the map for dispatching calls, and the tools whose names collide */
export function bindNames<T extends { alias: string; tool: string }>(
  tools: readonly T[],
  name: (alias: string, tool: string) => string = functionName,
): { byName: Map<string, T>; collisions: NameCollision<T>[] } {
  const byName = new Map<string, T>();
  const collisions: NameCollision<T>[] = [];
  for (const tool of tools) {
    const called = name(tool.alias, tool.tool);
    const other = byName.get(called);
    if (other) collisions.push({ name: called, tools: [other, tool] });
    else byName.set(called, tool);
  }
  return { byName, collisions };
}
