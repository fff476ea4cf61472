/** Values inside a JSON document, compared by their source text: numbers keep their digits (RFC 6901). */
import { decimalForm, elementsOf, isNumberLiteral, sliceAt } from './json.ts';

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

/** A value's text without white space between its parts, and with numbers in one form. */
export function normalText(text: string): string {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[^\s"]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') ? part : part.replace(/-?\d[\d.eE+-]*/g, decimalForm))).join('');
}
