/** JSON Pointer (RFC 6901) into values that came as JSON. Pure. */

const INDEX = /^(?:0|[1-9]\d*)$/;

/**
 * The value at a pointer.
 *
 * @param pointer empty for the whole value, otherwise beginning with `/`
 * @returns `undefined` when there is no value; JSON itself has no such value
 */
export function valueAt(value: unknown, pointer: string): unknown {
  if (pointer === '') return value;
  if (!pointer.startsWith('/')) return undefined;
  let at = value;
  for (const part of pointer.slice(1).split('/')) {
    // Section 4: first ~1, then ~0, so that ~01 is read as ~1.
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null) return undefined;
    if (Array.isArray(at) && !INDEX.test(key)) return undefined;
    if (!Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}
