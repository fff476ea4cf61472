/**
 * Reads receipts from text, more strictly than `JSON.parse`: a proof must not contain text that two readers parse to
 * different values. Pure.
 */
import { type JsonPosition, JsonSyntaxError, StrictReader } from '../../kit/json/strict-json.ts';
import { isObject } from '../../wire/json.ts';
import { RECEIPT_DEPTH_MAX } from './envelope.ts';

/** Where and why parsing failed. */
export type Unreadable = JsonPosition & { readonly message: string };

/** One value of a text; an unreadable value is the last one. */
export type ReadValue = { readonly value: unknown; readonly line: number } | { readonly unreadable: Unreadable };

/**
 * Whether a value is an executor's response envelope around a receipt; other members are ignored. A value with `format`
 * is a receipt itself.
 */
export function isReceiptResponse(value: unknown): value is { readonly ok: true; readonly data: unknown } {
  return isObject(value) && value.ok === true && Object.hasOwn(value, 'data') && !Object.hasOwn(value, 'format');
}

/** Number of line breaks between two offsets. */
function linesBetween(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/**
 * The JSON values of a text, with optional white space between them: one receipt, or several as JSON lines. It refuses
 * duplicate members, numbers that JavaScript rounds, lone surrogates and values that are nested too deep. An executor's
 * response envelope around a receipt does not count towards the depth.
 */
export function* readValues(text: string): Generator<ReadValue, void, void> {
  const reader = new StrictReader(text, {
    depth: RECEIPT_DEPTH_MAX,
    exact: true,
    protoMember: true,
    mayBeDeeper: isReceiptResponse,
  });
  let line = 1;
  let counted = 0;
  for (;;) {
    reader.skipBlank();
    if (reader.isAtEnd()) return;
    line += linesBetween(text, counted, reader.at);
    counted = reader.at;
    try {
      yield { value: reader.document(), line };
    } catch (thrown) {
      if (!(thrown instanceof JsonSyntaxError)) throw thrown;
      yield { unreadable: { ...thrown.position, message: thrown.message } };
      return;
    }
  }
}

/**
 * Why a text is not one unambiguous JSON value by the rules for receipts, in whose numbers a double loses nothing;
 * `undefined` when it is.
 */
export function strictnessProblem(text: string): string | undefined {
  try {
    const options = { depth: RECEIPT_DEPTH_MAX, exact: true, protoMember: true, mayBeDeeper: isReceiptResponse };
    new StrictReader(text, options).onlyDocument();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError) return thrown.message;
    throw thrown;
  }
}
