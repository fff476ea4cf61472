/**
 * The names under which a model calls tools: `alias__tool` where that is a name that models accept, otherwise a
 * readable beginning and a digest. A name depends on its own tool only, so that it stays the same whatever other tools
 * come and go.
 */
import { createHash } from 'node:crypto';

/** What every provider accepts. */
export const FUNCTION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** Names of functions that are not tools of a server. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['core_execute', 'memory_recall']);

const LONGEST = 63;
const DIGEST_CHARACTERS = 12;

/** Ends as names with a digest do; a tool that is called so by itself gets one too, lest it be taken for another. */
const LIKE_A_DIGEST = new RegExp(`_[0-9a-f]{${DIGEST_CHARACTERS}}$`);

/**
 * The alias ends where the first double underscore begins. That holds unless the alias has one itself or ends with an
 * underscore: `a_` and `b` would be named like `a` and `_b`.
 */
const isSeparable = (alias: string) => !alias.includes('__') && !alias.endsWith('_');

/**
 * The name of a tool. Two tools have the same one only if 48 bits of SHA-256 collide.
 *
 * @returns a name that matches {@link FUNCTION_NAME} and is not reserved
 */
export function functionName(alias: string, tool: string): string {
  const plain = `${alias}__${tool}`;
  if (FUNCTION_NAME.test(plain) && isSeparable(alias) && !LIKE_A_DIGEST.test(plain)) return plain;
  // As JSON, in which the two cannot flow into each other and a lone surrogate, which has no UTF-8, is told from
  // others.
  const identity = JSON.stringify([alias, tool]);
  const digest = createHash('sha256').update(identity).digest('hex').slice(0, DIGEST_CHARACTERS);
  const readable = plain.replace(/[^A-Za-z0-9_-]/g, '_').replace(/^(?![A-Za-z_])/, '_');
  return `${readable.slice(0, LONGEST - DIGEST_CHARACTERS - 1)}_${digest}`;
}

/** Two tools that would be called by one name. */
export type NameCollision<T> = { name: string; tools: readonly [T, T] };

/**
 * Gives every tool its name.
 *
 * @returns the map that calls are dispatched by, and the tools that could not be told apart
 */
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
