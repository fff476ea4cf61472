/** Canonical JSON (RFC 8785, JCS): one text for a value, whatever the order in which its members arrived. */

/**
 * Writes a value that came from JSON. Strings and numbers are written as ECMAScript does, which RFC 8785 takes its
 * rules from (sections 3.2.2.2 and 3.2.2.3); members are sorted by the UTF-16 code units of their names (3.2.3).
 *
 * @param value members that are `undefined` are left out
 * @throws TypeError for what JSON cannot carry
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      // Comparing strings compares their UTF-16 code units.
      .sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`JSON cannot carry ${value}`);
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`JSON cannot carry a ${typeof value}`);
  return text;
}
