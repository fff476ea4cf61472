/**
 * `reveille/verify`: checks the receipts of an executor on any machine, without a daemon, a key of one's own or a
 * network (docs/receipts.md).
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
   * Public keys that the executor may have signed with: 64 hex digits each, the key's id, or the 16 digits of it that
   * stand in a DID. Without them the key is the receipt's own claim, and only that it is whole is checked.
   */
  readonly keys?: readonly string[];
  /** Public keys of people, one of whom must have approved each call that was escalated to a person. */
  readonly approvers?: readonly string[];
};

export type CheckedReceipt = {
  /** Whether everything holds. */
  readonly valid: boolean;
  /** The line of the text on which it begins, from 1. */
  readonly line: number;
  /** What is wrong first, in a sentence; `undefined` when it is valid. */
  readonly why: string | undefined;
  /** What the envelopes that hold come to; `undefined` for text that cannot be read. */
  readonly report: ReceiptReport | undefined;
};

/**
 * Checks the receipts of a text: one, several as JSON lines, or the executor's answer around one.
 *
 * @param text as it was written: a member that stands twice, or a number that JavaScript rounds, is a reason to refuse
 * @returns one entry a receipt, in their order; text that cannot be read is the last
 */
export async function checkReceipts(text: string, expected: Expected = {}): Promise<CheckedReceipt[]> {
  const lowerCase = (keys: readonly string[] | undefined) => keys?.map((key) => key.toLowerCase());
  const given = { keys: lowerCase(expected.keys), approvers: lowerCase(expected.approvers) };
  const checked: CheckedReceipt[] = [];
  // Editors put a byte order mark there; it is no part of the text.
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
