/** Values inside a JSON document, compared by their source text: numbers keep their digits (RFC 6901). */
import { decimalForm, elementsOf, isNumberLiteral, parseUntrustedJson, sliceAt } from './json.ts';

/**
 * The source text of the value at a pointer; `undefined` if there is none.
 *
 * @param text well-formed JSON
 * @param pointer well-formed; the empty one is the document itself
 */
export function textAt(text: string, pointer: string): string | undefined {
  let found: string | undefined = text.trim();
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const elements = elementsOf(found);
    if (elements === undefined) found = sliceAt(found, [key]);
    else found = /^(?:0|[1-9]\d*)$/.test(key) ? elements[Number(key)] : undefined;
    if (found === undefined) return undefined;
  }
  return found;
}

/** Whether a value equals a scalar: numbers by their decimal value, texts by their characters. */
export function isScalar(text: string, expected: string | number | boolean | null): boolean {
  if (typeof expected === 'number') return isNumberLiteral(text) && decimalForm(text) === decimalForm(String(expected));
  if (typeof expected === 'string') return text.startsWith('"') && JSON.parse(text) === expected;
  return text === String(expected);
}

/**
 * Whether any text is JSON with this value at a pointer; without `equals`, with any value but `null` and `false`.
 *
 * @param pointer well-formed
 */
export function hasValue(
  text: string,
  { pointer, equals }: { pointer: string; equals?: string | number | boolean | null | undefined },
): boolean {
  try {
    parseUntrustedJson(text);
  } catch {
    return false;
  }
  const found = textAt(text, pointer);
  if (found === undefined) return false;
  return equals === undefined ? found !== 'null' && found !== 'false' : isScalar(found, equals);
}

/** A value's text without white space between its parts, and with numbers in one form. */
export function normalText(text: string): string {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[^\s"]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') ? part : part.replace(/-?\d[\d.eE+-]*/g, decimalForm))).join('');
}
