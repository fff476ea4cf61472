/** Values within a JSON text by JSON Pointer (RFC 6901), as source text, so that numbers keep their digits. Pure. */
import { decimalForm, isNumberLiteral } from '../../wire/json.ts';
import { JsonSyntaxError, readJsonWithPositions } from './strict-json.ts';

export type Scalar = string | number | boolean | null;

/** The names of a pointer, outermost first: `/a~1b/0` names `a/b` and `0`. The empty pointer is the whole document. */
const namesOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));

/**
 * The value at a pointer.
 *
 * @returns its source text; `undefined` when there is none, or the text is no JSON, nests too deep, or names a member twice
 */
export function sourceAt(text: string, pointer: string): string | undefined {
  try {
    const span = readJsonWithPositions(text).spanOf(namesOf(pointer));
    return span && text.slice(span.from, span.to);
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError) return undefined;
    throw thrown;
  }
}

/** Whether a value, as source text, is this scalar. Numbers are compared by their digits: `1.0` is `1`. */
export function isScalar(source: string, scalar: Scalar): boolean {
  if (typeof scalar === 'number') return isNumberLiteral(source) && decimalForm(source) === decimalForm(String(scalar));
  return !/^[[{]/.test(source) && JSON.parse(source) === scalar;
}

/** Whether a document has this value at a pointer; without `equals`, any value but `null` and `false`. */
export function hasValue(text: string, { pointer, equals }: { pointer: string; equals?: Scalar | undefined }): boolean {
  const source = sourceAt(text, pointer);
  if (source === undefined) return false;
  return equals === undefined ? source !== 'null' && source !== 'false' : isScalar(source, equals);
}
