/** The port of an outbox: receipts that are on disk and have not been taken by chronosd yet. */
import type { TurnReport } from '../../wire/receipt.ts';

/** A receipt that waits to be posted. */
export type WaitingReceipt = {
  /** Grows with each one that is put in. */
  id: number;
  /** Whose alarm rang. */
  userId: string;
  fireId: string;
  report: TurnReport;
};

export type ReceiptOutbox = {
  /** The first ones behind an id, in the order in which they were put in. Throws `unavailable` when the file cannot be read. */
  waiting(page: { after: number; limit: number }): WaitingReceipt[];
  /** Takes receipts out for good; resolves when that is on disk. */
  remove(ids: readonly number[]): Promise<void>;
};
