/**
 * The book: accounts of play money and the transfers between them, in double entry. Several processes may hold it open
 * at once.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../src/kit/clock/clock.ts';
import { GroupCommit } from '../../src/kit/sqlite/group-commit.ts';
import { openDatabase } from '../../src/kit/sqlite/open.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { formatInstant } from '../../src/wire/rfc3339.ts';
import { amountText, centsOf } from './money.ts';

/** What is to be moved; `amount` is a decimal number as text. */
export type Order = {
  readonly from: string;
  readonly to: string;
  readonly amount: string;
  readonly currency: string;
  readonly memo?: string | undefined;
};

export type Balance = { readonly account: string; readonly balance: string; readonly currency: string };

export type Transfer = {
  readonly transfer_id: string;
  readonly from: string;
  readonly to: string;
  readonly amount: string;
  readonly currency: string;
  readonly memo?: string;
  readonly made_at: string;
};

export type Simulation = { readonly before: readonly Balance[]; readonly after: readonly Balance[] };

/** `not_done` is final: the key cannot be used any more. */
export type Standing =
  | { readonly status: 'done'; readonly transfer_id: string }
  | { readonly status: 'not_done'; readonly transfer_id?: undefined };

/**
 * Each method throws ReveilleError: `not_found`, `conflict` and `invalid_request` are about the order, `unavailable`
 * about the disk.
 */
export type Book = {
  /** All accounts, or those that are named, in that order. */
  accounts(names?: readonly string[]): readonly Balance[];
  /** Moves the money, once for a key however often it is called with it. On disk when it returns. */
  transfer(order: Order, key: string): Transfer;
  /** What {@link transfer} would do, without doing it. */
  simulate(order: Order): Simulation;
  /** What became of the transfer with this key. */
  status(key: string): Standing;
  close(): void;
};

type TransferRow = {
  transfer_id: string;
  source: string;
  target: string;
  cents: number;
  currency: string;
  memo: string | null;
  made_at: number;
};

function transferOf({ transfer_id, source, target, cents, currency, memo, made_at }: TransferRow): Transfer {
  const made = { transfer_id, from: source, to: target, amount: amountText(cents), currency };
  return { ...made, ...(memo !== null && { memo }), made_at: formatInstant(made_at) };
}

const balance = (account: string, cents: number, currency: string): Balance => ({
  account,
  balance: amountText(cents),
  currency,
});

/**
 * Opens the book in its folder, and makes it with a few accounts of play money when there is none.
 *
 * The lock is a shared one: a predecessor that was killed, or hangs with a transfer that it has not read yet, keeps
 * nobody out. SQLite puts the transactions of all of them in one order, and that is all that the promises of this file
 * rest on.
 *
 * @throws ReveilleError as `openDatabase` does
 */
export function openBook(dataDir: string, clock: Clock): Book {
  const file = openDatabase({
    path: join(dataDir, 'ledger.db'),
    migrations: new URL('./migrations/', import.meta.url),
    clock,
    lock: 'shared',
  });
  const { db } = file;
  const writes = new GroupCommit(db);
  const selectAccounts = db.prepare(`
    SELECT account, currency, coalesce((SELECT sum(cents) FROM entries WHERE entries.account = accounts.account), 0) AS cents
      FROM accounts
     WHERE is_origin = 0
     ORDER BY account`);
  const selectAccount = db.prepare(`
    SELECT account, currency, coalesce((SELECT sum(cents) FROM entries WHERE entries.account = accounts.account), 0) AS cents
      FROM accounts
     WHERE is_origin = 0 AND account = ?`);
  const selectByKey = db.prepare(`
    SELECT transfer_id, source, target, cents, currency, memo, made_at
      FROM transfers
     WHERE idempotency_key = ?`);
  const insertTransfer = db.prepare(`
    INSERT INTO transfers (transfer_id, idempotency_key, source, target, cents, currency, memo, made_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const insertEntry = db.prepare('INSERT INTO entries (transfer_id, account, cents) VALUES (?, ?, ?)');
  const selectClosed = db.prepare('SELECT 1 FROM closed_keys WHERE idempotency_key = ?');
  const closeKey = db.prepare('INSERT OR IGNORE INTO closed_keys (idempotency_key, closed_at) VALUES (?, ?)');

  type AccountRow = { account: string; currency: string; cents: number };
  const allAccounts = () => selectAccounts.all() as AccountRow[];

  function account(name: string): AccountRow {
    const row = selectAccount.get(name) as AccountRow | undefined;
    if (row) return row;
    const names = allAccounts().map((one) => one.account);
    throw new ReveilleError('not_found', `there is no account ${JSON.stringify(name)}; there are ${names.join(', ')}`);
  }

  /** Everything that must hold before money moves. */
  function check({ from, to, amount, currency }: Order) {
    const cents = centsOf(amount);
    if (cents === undefined) {
      const what = 'amount must be a decimal number above zero with at most two decimals, such as 12.50';
      throw new ReveilleError('invalid_request', `${what} (got ${JSON.stringify(amount.slice(0, 60))})`);
    }
    if (from === to) throw new ReveilleError('invalid_request', `from and to must be two accounts (got ${from} twice)`);
    const [source, target] = [account(from), account(to)];
    for (const side of [source, target]) {
      if (side.currency !== currency) {
        const message = `${side.account} is kept in ${side.currency}, not in ${JSON.stringify(currency)}`;
        throw new ReveilleError('invalid_request', message);
      }
    }
    if (source.cents < cents) {
      const message = `${from} has ${amountText(source.cents)} ${currency}, which is less than ${amountText(cents)} ${currency}`;
      throw new ReveilleError('conflict', message);
    }
    return { cents, source, target };
  }

  function repeated(row: TransferRow, order: Order): Transfer {
    const isSame =
      row.source === order.from &&
      row.target === order.to &&
      row.cents === centsOf(order.amount) &&
      row.currency === order.currency &&
      (row.memo ?? undefined) === order.memo;
    if (isSame) return transferOf(row);
    const message = `the idempotency_key was used for another transfer (${row.transfer_id}); use a new one for this`;
    throw new ReveilleError('conflict', message);
  }

  return {
    accounts: (names) =>
      (names === undefined ? allAccounts() : names.map(account)).map((row) =>
        balance(row.account, row.cents, row.currency),
      ),

    transfer: (order, key) =>
      writes.runNow(() => {
        const before = selectByKey.get(key) as TransferRow | undefined;
        if (before) return repeated(before, order);
        if (selectClosed.get(key)) {
          const message =
            'nothing was moved: status was asked about this idempotency_key, which closed it; use a new one';
          throw new ReveilleError('conflict', message);
        }
        const { cents } = check(order);
        const [id, now] = [randomUUID(), clock.now()];
        insertTransfer.run(id, key, order.from, order.to, cents, order.currency, order.memo ?? null, now);
        insertEntry.run(id, order.from, -cents);
        insertEntry.run(id, order.to, cents);
        return transferOf(selectByKey.get(key) as TransferRow);
      }),

    simulate(order) {
      const { cents, source, target } = check(order);
      const sides = (change: number) => [
        balance(source.account, source.cents - change, source.currency),
        balance(target.account, target.cents + change, target.currency),
      ];
      return { before: sides(0), after: sides(cents) };
    },

    // Whoever asks has lost the answer to a transfer, which may still be on its way: in a pipe, in a process that
    // hangs. "Not done" would be worth nothing if it could arrive a moment later. So a key that was never used is
    // closed in the same transaction: the transfer has come before this one, and is found, or comes after it, and is
    // refused.
    status: (key) =>
      writes.runNow((): Standing => {
        const made = selectByKey.get(key) as TransferRow | undefined;
        if (made) return { status: 'done', transfer_id: made.transfer_id };
        closeKey.run(key, clock.now());
        return { status: 'not_done' };
      }),

    close: () => file.close(),
  };
}
