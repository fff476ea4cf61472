/** Canonical JSON (RFC 8785, JCS): one text for a value, in whatever order its members arrived. */

/**
 * Encodes a JSON value. Strings and numbers are written as ECMAScript does, on which RFC 8785 bases its rules (sections
 * 3.2.2.2 and 3.2.2.3). Members are sorted by the UTF-16 code units of their names (3.2.3).
 *
 * @param value `undefined` members are omitted
 * @throws TypeError for a value that JSON cannot represent
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
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`JSON cannot represent ${value}`);
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`JSON cannot represent a ${typeof value}`);
  return text;
}
