/**
 * `reveille/verify`: verifies receipts of an executor on any computer, without a daemon, a private key or a network
 * (docs/reference/receipts.md).
 *
 * ```ts
 * import { readFileSync } from 'node:fs';
 * import { checkReceipts } from 'reveille/verify';
 *
 * const [receipt] = await checkReceipts(readFileSync('receipt.json', 'utf8'), { keys: [executorPublicKey] });
 * if (!receipt?.valid) throw new Error(receipt?.why ?? 'the file is empty');
 * ```
 */
import { readValues } from '../executor/receipt/receipt-text.ts';
import { type ReceiptReport, verifyReceipts } from '../executor/receipt/verify-receipt.ts';

export type { BrokenLink, BrokenProperty } from '../executor/receipt/verify.ts';
export type { ReceiptReport } from '../executor/receipt/verify-receipt.ts';
export type { IntentReceipt, ReceiptEnvelope, ReceiptKind } from '../wire/intent-receipt.ts';

export type Expected = {
  /**
   * Expected public keys of the executor: 64 hex digits, the key's id, or the 16 digits of a DID. Without them the key in
   * the receipt is used, and only integrity is checked.
   */
  readonly keys?: readonly string[];
  /** Public keys of people, one of whom must have approved each call that needed approval. */
  readonly approvers?: readonly string[];
};

export type CheckedReceipt = {
  /** Whether the receipt is valid. */
  readonly valid: boolean;
  /** The line of the text on which it begins, from 1. */
  readonly line: number;
  /** The first problem, as a sentence; `undefined` when it is valid. */
  readonly why: string | undefined;
  /** The content of the valid envelopes; `undefined` for unreadable text. */
  readonly report: ReceiptReport | undefined;
};

/**
 * Verifies the receipts of a text: one, several as JSON lines, or a response of the executor with one.
 *
 * @param text unchanged: a duplicate field, or a number that JavaScript rounds, makes it invalid
 * @returns one entry per receipt, in order; unreadable text is the last entry
 */
export async function checkReceipts(text: string, expected: Expected = {}): Promise<CheckedReceipt[]> {
  const lowerCase = (keys: readonly string[] | undefined) => keys?.map((key) => key.toLowerCase());
  const given = { keys: lowerCase(expected.keys), approvers: lowerCase(expected.approvers) };
  const checked: CheckedReceipt[] = [];
  // A byte order mark of an editor is not part of the text.
  for await (const found of verifyReceipts(readValues(text.replace(/^\uFEFF/, '')), given)) {
    if ('unreadable' in found) {
      const { line, column, message } = found.unreadable;
      checked.push({ valid: false, line, why: `line ${line}, column ${column}: ${message}`, report: undefined });
      continue;
    }
    const { line, report } = found;
    const why = report.broken && `envelope ${report.broken.seq}, ${report.broken.property}: ${report.broken.message}`;
    checked.push({ valid: why === undefined, line, why, report });
  }
  return checked;
}
