/** JSON Pointer (RFC 6901) into values that came as JSON. Pure. */

/** A list's index in a pointer. */
export const INDEX = /^(?:0|[1-9]\d*)$/;

/** A member name as a part of a pointer. */
export const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** The parts of a pointer. Section 4: first ~1, then ~0, so that ~01 is read as ~1. */
export const partsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

/**
 * @param pointer empty for the whole value, otherwise beginning with `/`
 * @returns `undefined` when there is no value; JSON itself has no such value
 */
export function valueAt(value: unknown, pointer: string): unknown {
  if (pointer !== '' && !pointer.startsWith('/')) return undefined;
  let at = value;
  for (const key of partsOf(pointer)) {
    if (typeof at !== 'object' || at === null) return undefined;
    if (Array.isArray(at) && !INDEX.test(key)) return undefined;
    if (!Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}
