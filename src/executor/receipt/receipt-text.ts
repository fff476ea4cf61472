/**
 * Reading receipts from text, more strictly than `JSON.parse`: what two readers could take for two different values has
 * no place in something that is to be proof. Pure.
 */
import { JsonSyntaxError, type Place, StrictReader } from '../../kit/json/strict-json.ts';
import { RECEIPT_DEPTH_MAX } from './envelope.ts';

/** Where reading ended, and why. */
export type Unreadable = Place & { readonly message: string };

/** One value of a text; what could not be read is the last. */
export type ReadValue = { readonly value: unknown; readonly line: number } | { readonly unreadable: Unreadable };

/**
 * Whether a value is the answer of an executor around a receipt, whatever else it has. What has a `format` is to be a
 * receipt itself.
 */
export function isReceiptResponse(value: unknown): value is { readonly ok: true; readonly data: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return 'ok' in value && value.ok === true && Object.hasOwn(value, 'data') && !Object.hasOwn(value, 'format');
}

/** How many lines begin between two places. */
function linesBetween(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/**
 * The JSON values of a text, with white space or nothing between them: a receipt, or several as JSON lines. Refused are
 * members that stand in one object twice, numbers that JavaScript rounds, halves of surrogate pairs, and what is nested
 * too deep; the answer of an executor around a receipt does not count there.
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
      yield { unreadable: { ...thrown.place, message: thrown.message } };
      return;
    }
  }
}

/**
 * Why a text is not one JSON value that every reader takes for the same, read as a receipt is; `undefined` when it is.
 *
 * @param exact numbers that a double does not keep are a reason, too
 */
export function strictnessProblem(text: string, exact: boolean): string | undefined {
  try {
    const options = { depth: RECEIPT_DEPTH_MAX, exact, protoMember: true, mayBeDeeper: isReceiptResponse };
    new StrictReader(text, options).onlyDocument();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError) return thrown.message;
    throw thrown;
  }
}
