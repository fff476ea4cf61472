/**
 * The book: accounts of play money, the transfers between them and the exchanges of one currency for another, in double
 * entry. Several processes may have it open at once.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../src/kit/clock/clock.ts';
import { GroupCommit } from '../../src/kit/sqlite/group-commit.ts';
import { openDatabase } from '../../src/kit/sqlite/open.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { formatInstant } from '../../src/wire/rfc3339.ts';
import { amountText, centsAtRate, centsOf } from './money.ts';

/** A requested transfer; `amount` is a decimal number as text. */
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

/** `amount` and `currency` describe the money that is given; the result is in the currency of the account `to`. */
export type ExchangeOrder = Omit<Order, 'memo'>;

type Exchanged = {
  readonly from: string;
  readonly to: string;
  readonly amount: string;
  readonly currency: string;
  readonly received: { readonly amount: string; readonly currency: string };
  readonly rate: string;
};

export type Exchange = Exchanged & { readonly exchange_id: string; readonly made_at: string };

export type Quote = Exchanged & Simulation;

/** `not_done` is final: the key cannot be used any more. */
export type Standing =
  | { readonly status: 'done'; readonly transfer_id: string }
  | { readonly status: 'done'; readonly exchange_id: string }
  | { readonly status: 'not_done' };

/**
 * Each method throws ReveilleError: `not_found`, `conflict` and `invalid_request` concern the order, `unavailable`
 * concerns the disk.
 */
export type Book = {
  /** All accounts, or the named ones in the order of their names in the call. */
  accounts(names?: readonly string[]): readonly Balance[];
  /** Moves the money once per key, however often it is called. The transfer is on disk when the method returns. */
  transfer(order: Order, key: string): Transfer;
  /** The result that {@link transfer} would have, without the transfer. */
  simulate(order: Order): Simulation;
  /**
   * Exchanges money of one currency for another at the current rate of the book: once per key, at one rate, however
   * often it is called. The result is rounded down to the cent. The exchange is on disk when the method returns.
   */
  exchange(order: ExchangeOrder, key: string): Exchange;
  /** The result that {@link exchange} would have now, without the exchange. */
  quote(order: ExchangeOrder): Quote;
  /** The outcome of the transfer or exchange with this key. */
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

/** The two transfers of an exchange. */
type ExchangeRow = {
  exchange_id: string;
  source: string;
  target: string;
  cents: number;
  currency: string;
  cents_out: number;
  currency_out: string;
  rate: string;
  made_at: number;
};

function exchangeOf({ exchange_id, source, target, rate, made_at, ...row }: ExchangeRow): Exchange {
  return {
    ...{ exchange_id, from: source, to: target, amount: amountText(row.cents), currency: row.currency },
    received: { amount: amountText(row.cents_out), currency: row.currency_out },
    ...{ rate, made_at: formatInstant(made_at) },
  };
}

type AccountRow = { account: string; currency: string; cents: number };

const sides = (...rows: AccountRow[]): Balance[] =>
  rows.map(({ account, cents, currency }) => ({ account, balance: amountText(cents), currency }));

/**
 * Opens the book in its folder. Without one, it creates a book with a few accounts of play money.
 *
 * The lock is shared: a killed predecessor, or one that hangs with an unread transfer, does not block this process.
 * SQLite serializes the transactions of all processes, and the guarantees of this file need only that.
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
  const selectExchange = db.prepare(`
    SELECT exchange_id, paid.source, received.target, paid.cents, paid.currency, received.cents AS cents_out,
           received.currency AS currency_out, rate, paid.made_at
      FROM exchanges
      JOIN transfers AS paid ON paid.transfer_id = exchanges.paid
      JOIN transfers AS received ON received.transfer_id = exchanges.received
     WHERE exchanges.idempotency_key = ?`);
  const insertExchange = db.prepare(`
    INSERT INTO exchanges (exchange_id, idempotency_key, paid, received, rate) VALUES (?, ?, ?, ?, ?)`);
  const selectRate = db.prepare('SELECT rate FROM rates WHERE base = ? AND quote = ?');
  const selectMarket = db.prepare(`
    SELECT account FROM accounts WHERE is_origin = 1 AND account LIKE 'market-%' AND currency = ?`);
  const selectClosed = db.prepare('SELECT 1 FROM closed_keys WHERE idempotency_key = ?');
  const closeKey = db.prepare('INSERT OR IGNORE INTO closed_keys (idempotency_key, closed_at) VALUES (?, ?)');

  const allAccounts = () => selectAccounts.all() as AccountRow[];

  function account(name: string): AccountRow {
    const row = selectAccount.get(name) as AccountRow | undefined;
    if (row) return row;
    const names = allAccounts().map((one) => one.account);
    throw new ReveilleError('not_found', `there is no account ${JSON.stringify(name)}; there are ${names.join(', ')}`);
  }

  /** Conditions for transfers and exchanges. */
  function checkSides({ from, to, amount, currency }: ExchangeOrder) {
    const cents = centsOf(amount);
    if (cents === undefined) {
      const what = 'amount must be a decimal number above zero with at most two decimals, such as 12.50';
      throw new ReveilleError('invalid_request', `${what} (got ${JSON.stringify(amount.slice(0, 60))})`);
    }
    if (from === to) throw new ReveilleError('invalid_request', `from and to must be two accounts (got ${from} twice)`);
    const [source, target] = [account(from), account(to)];
    keptIn(source, currency);
    return { cents, source, target };
  }

  function keptIn(side: AccountRow, currency: string): void {
    if (side.currency === currency) return;
    const message = `${side.account} is kept in ${side.currency}, not in ${JSON.stringify(currency)}`;
    throw new ReveilleError('invalid_request', message);
  }

  function affordable({ account: from, cents: held, currency }: AccountRow, cents: number): void {
    if (held >= cents) return;
    const message = `${from} has ${amountText(held)} ${currency}, which is less than ${amountText(cents)} ${currency}`;
    throw new ReveilleError('conflict', message);
  }

  /** All conditions for a transfer. */
  function check(order: Order) {
    const checked = checkSides(order);
    keptIn(checked.target, order.currency);
    affordable(checked.source, checked.cents);
    return checked;
  }

  /** All conditions for an exchange, and its result. */
  function priced(order: ExchangeOrder) {
    const { cents, source, target } = checkSides(order);
    const { currency } = target;
    if (currency === source.currency) {
      const message = `${order.from} and ${order.to} are both kept in ${currency}; use transfer between them`;
      throw new ReveilleError('invalid_request', message);
    }
    affordable(source, cents);
    const found = selectRate.get(source.currency, currency) as { rate: string } | undefined;
    if (!found) throw new ReveilleError('not_found', `there is no rate from ${source.currency} to ${currency}`);
    const received = centsAtRate(cents, found.rate);
    if (received === undefined) {
      const message = `amount must come to at least 0.01 ${currency} and at most 999999999999.99 ${currency}`;
      const given = `${amountText(cents)} ${source.currency} at ${found.rate}`;
      throw new ReveilleError('invalid_request', `${message} (got ${given})`);
    }
    return { cents, source, target, received, rate: found.rate };
  }

  const transferWith = (key: string) => selectByKey.get(key) as TransferRow | undefined;
  const exchangeWith = (key: string) => selectExchange.get(key) as ExchangeRow | undefined;

  const isSame = (row: TransferRow | (ExchangeRow & { memo?: null }), order: Order) =>
    row.source === order.from &&
    row.target === order.to &&
    row.cents === centsOf(order.amount) &&
    row.currency === order.currency &&
    (row.memo ?? undefined) === order.memo;

  /** A key is valid for one transfer or one exchange. After a status query an unused key is invalid. */
  function refuseUsed(key: string): void {
    const [transfer, exchange] = [transferWith(key), exchangeWith(key)];
    const made = transfer ? `transfer (${transfer.transfer_id})` : exchange && `exchange (${exchange.exchange_id})`;
    if (made !== undefined) {
      const message = `the idempotency_key was used for another call: the ${made}; use a new one for this`;
      throw new ReveilleError('conflict', message);
    }
    if (!selectClosed.get(key)) return;
    const message = 'nothing was moved: a status query closed this idempotency_key; use a new one';
    throw new ReveilleError('conflict', message);
  }

  type Movement = { source: string; target: string; cents: number; currency: string };
  function move({ source, target, cents, currency }: Movement, key?: string, memo?: string): string {
    const id = randomUUID();
    insertTransfer.run(id, key ?? null, source, target, cents, currency, memo ?? null, clock.now());
    insertEntry.run(id, source, -cents);
    insertEntry.run(id, target, cents);
    return id;
  }

  const marketOf = (currency: string) => (selectMarket.get(currency) as { account: string }).account;

  return {
    accounts: (names) => sides(...(names === undefined ? allAccounts() : names.map(account))),

    transfer: (order, key) =>
      writes.runNow(() => {
        const before = transferWith(key);
        if (before && isSame(before, order)) return transferOf(before);
        refuseUsed(key);
        const { cents } = check(order);
        move({ source: order.from, target: order.to, cents, currency: order.currency }, key, order.memo);
        return transferOf(transferWith(key)!);
      }),

    exchange: (order, key) =>
      writes.runNow(() => {
        const before = exchangeWith(key);
        if (before && isSame(before, order)) return exchangeOf(before);
        refuseUsed(key);
        const { cents, source, target, received, rate } = priced(order);
        const [given, receivedCurrency] = [source.currency, target.currency];
        const paid = { source: source.account, target: marketOf(given), cents, currency: given };
        const out = {
          source: marketOf(receivedCurrency),
          target: target.account,
          cents: received,
          currency: receivedCurrency,
        };
        insertExchange.run(randomUUID(), key, move(paid), move(out), rate);
        return exchangeOf(exchangeWith(key)!);
      }),

    quote(order) {
      const { cents, source, target, received, rate } = priced(order);
      const { from, to, currency } = order;
      return {
        ...{ from, to, amount: amountText(cents), currency, rate },
        received: { amount: amountText(received), currency: target.currency },
        before: sides(source, target),
        after: sides({ ...source, cents: source.cents - cents }, { ...target, cents: target.cents + received }),
      };
    },

    simulate(order) {
      const { cents, source, target } = check(order);
      return {
        before: sides(source, target),
        after: sides({ ...source, cents: source.cents - cents }, { ...target, cents: target.cents + cents }),
      };
    },

    // A status query means that the caller lost the answer to a call. That call may still arrive, from a pipe or a
    // process that hangs, after the answer "not done". So the same transaction closes an unused key: a call before it
    // is found, and a call after it is refused.
    status: (key) =>
      writes.runNow((): Standing => {
        const made = transferWith(key);
        if (made) return { status: 'done', transfer_id: made.transfer_id };
        const exchanged = exchangeWith(key);
        if (exchanged) return { status: 'done', exchange_id: exchanged.exchange_id };
        closeKey.run(key, clock.now());
        return { status: 'not_done' };
      }),

    close: () => file.close(),
  };
}
