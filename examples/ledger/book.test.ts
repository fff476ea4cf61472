import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { openDatabase } from '../../src/kit/sqlite/open.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { type Book, type ExchangeOrder, type Order, openBook } from './book.ts';

function bookFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-ledger-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function open(t: TestContext, folder = bookFolder(t)): Book {
  const book = openBook(folder, systemClock);
  t.after(() => book.close());
  return book;
}

const order = (more: Partial<Order> = {}): Order => ({
  from: 'alice',
  to: 'rent',
  amount: '10',
  currency: 'EUR',
  ...more,
});
const swap = (more: Partial<ExchangeOrder> = {}): ExchangeOrder => ({
  ...{ from: 'alice', to: 'alice-usd', amount: '10', currency: 'EUR' },
  ...more,
});
const held = (book: Book, currency = 'EUR') =>
  book.accounts().flatMap((one) => (one.currency === currency ? [`${one.account} ${one.balance}`] : []));
/** Writes into the database of a book directly; no caller of the API can do that. */
function alter(t: TestContext, folder: string, sql: string): void {
  const db = new DatabaseSync(join(folder, 'ledger.db'));
  t.after(() => db.close());
  db.exec(sql);
}

function refuses(act: () => unknown, code: string, pattern: RegExp) {
  assert.throws(act, (thrown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.deepEqual([thrown.code, pattern.test(thrown.message)], [code, true], thrown.message);
    return true;
  });
}

test('a new book holds a few accounts of play money', (t) => {
  const book = open(t);
  assert.deepEqual(held(book), ['alice 5000.00', 'bob 1000.00', 'rent 0.00']);
  assert.deepEqual(held(book, 'USD'), ['alice-usd 0.00', 'bob-usd 0.00']);
});

test('a transfer moves money once per key, also from another process and after a restart', (t) => {
  const folder = bookFolder(t);
  const book = open(t, folder);
  const made = book.transfer(order({ memo: 'March' }), 'k1');
  assert.deepEqual(
    { ...made, transfer_id: '', made_at: '' },
    { transfer_id: '', ...order({ amount: '10.00', memo: 'March' }), made_at: '' },
  );
  const other = open(t, folder);
  assert.deepEqual(other.transfer(order({ memo: 'March', amount: '10.00' }), 'k1'), made);
  assert.deepEqual(held(other), ['alice 4990.00', 'bob 1000.00', 'rent 10.00']);
});

test('a key that one transfer used is refused for another', (t) => {
  const book = open(t);
  book.transfer(order(), 'k1');
  for (const more of [{ amount: '10.01' }, { to: 'bob' }, { memo: 'x' }, { from: 'bob' }])
    refuses(() => book.transfer(order(more), 'k1'), 'conflict', /was used for another call: the transfer/);
  assert.deepEqual(held(book), ['alice 4990.00', 'bob 1000.00', 'rent 10.00']);
});

test('an invalid transfer is refused with a reason, also by a simulation, and its key stays usable', (t) => {
  const book = open(t);
  const cases: [Partial<Order>, string, RegExp][] = [
    [{ amount: '5000.01' }, 'conflict', /alice has 5000\.00 EUR, which is less than 5000\.01 EUR/],
    [{ to: 'carol' }, 'not_found', /no account "carol"; there are alice, alice-usd, bob, bob-usd, rent/],
    [{ from: 'opening' }, 'not_found', /no account "opening"/],
    [{ currency: 'USD' }, 'invalid_request', /alice is kept in EUR, not in "USD"/],
    [{ to: 'alice' }, 'invalid_request', /two accounts/],
    [{ amount: '-5' }, 'invalid_request', /amount must be a decimal number above zero/],
    [{ amount: '1.001' }, 'invalid_request', /at most two decimals/],
  ];
  for (const [more, code, pattern] of cases) {
    refuses(() => book.simulate(order(more)), code, pattern);
    refuses(() => book.transfer(order(more), 'k1'), code, pattern);
  }
  assert.deepEqual(held(book), ['alice 5000.00', 'bob 1000.00', 'rent 0.00']);
  assert.equal(book.transfer(order(), 'k1').amount, '10.00');
});

test('a simulation returns the resulting balances and changes nothing', (t) => {
  const book = open(t);
  const { before, after } = book.simulate(order({ amount: '4999.99' }));
  assert.deepEqual(
    [...before, ...after].map(({ balance }) => balance),
    ['5000.00', '0.00', '0.01', '4999.99'],
  );
  assert.deepEqual(held(book), ['alice 5000.00', 'bob 1000.00', 'rent 0.00']);
});

test('after a status says that a transfer was not made, that transfer is refused', (t) => {
  const folder = bookFolder(t);
  const [book, late] = [open(t, folder), open(t, folder)];
  assert.deepEqual(book.status('k1'), { status: 'not_done' });
  refuses(() => late.transfer(order(), 'k1'), 'conflict', /a status query closed this idempotency_key/);
  assert.deepEqual(late.status('k1'), { status: 'not_done' });
  const { transfer_id } = late.transfer(order(), 'k2');
  assert.deepEqual(book.status('k2'), { status: 'done', transfer_id });
});

test('an exchange pays the amount at the rate, rounded down to the cent: once per key, at one rate', (t) => {
  const folder = bookFolder(t);
  const book = open(t, folder);
  const quoted = book.quote(swap());
  assert.deepEqual(held(book, 'USD'), ['alice-usd 0.00', 'bob-usd 0.00']);
  const made = book.exchange(swap(), 'k1');
  const { before, after, ...expected } = quoted;
  assert.deepEqual({ ...expected, exchange_id: made.exchange_id, made_at: made.made_at }, made);
  // 10.00 at 1.1637 is 11.637.
  assert.deepEqual([made.received, made.rate], [{ amount: '11.63', currency: 'USD' }, '1.1637']);
  assert.deepEqual(
    [...before, ...after].map(({ balance }) => balance),
    ['5000.00', '0.00', '4990.00', '11.63'],
  );
  alter(t, folder, "UPDATE rates SET rate = '2' WHERE base = 'EUR'");
  assert.deepEqual(open(t, folder).exchange(swap({ amount: '10.00' }), 'k1'), made);
  assert.deepEqual(held(book, 'USD'), ['alice-usd 11.63', 'bob-usd 0.00']);
  assert.equal(book.exchange(swap({ amount: '0.01' }), 'k2').received.amount, '0.02');
  const back = book.exchange(swap({ from: 'alice-usd', to: 'bob', amount: '11.63', currency: 'USD' }), 'k3');
  // 11.63 at 0.8576 is 9.973888.
  assert.deepEqual([back.received, held(book)[1]], [{ amount: '9.97', currency: 'EUR' }, 'bob 1009.97']);
});

test('an invalid exchange is refused with a reason, also by a quote, and its key stays usable', (t) => {
  const folder = bookFolder(t);
  const book = open(t, folder);
  alter(t, folder, "INSERT INTO accounts (account, currency) VALUES ('yen', 'JPY')");
  book.transfer(order({ from: 'bob', amount: '1' }), 'before');
  const cases: [Partial<ExchangeOrder>, string, RegExp][] = [
    [{ amount: '5000.01' }, 'conflict', /alice has 5000\.00 EUR, which is less than 5000\.01 EUR/],
    [{ to: 'rent' }, 'invalid_request', /both kept in EUR; use transfer/],
    [{ to: 'yen' }, 'not_found', /no rate from EUR to JPY/],
    [{ to: 'market-usd' }, 'not_found', /no account "market-usd"/],
    [{ currency: 'USD' }, 'invalid_request', /alice is kept in EUR, not in "USD"/],
    [{ to: 'alice' }, 'invalid_request', /two accounts/],
    [{ amount: '0' }, 'invalid_request', /amount must be a decimal number above zero/],
  ];
  for (const [more, code, pattern] of cases) {
    refuses(() => book.quote(swap(more)), code, pattern);
    refuses(() => book.exchange(swap(more), 'k1'), code, pattern);
  }
  refuses(() => book.transfer(order({ to: 'bob-usd' }), 'k1'), 'invalid_request', /bob-usd is kept in USD/);
  refuses(() => book.exchange(swap(), 'before'), 'conflict', /was used for another call: the transfer/);
  book.exchange(swap(), 'k1');
  refuses(
    () => book.exchange(swap({ from: 'alice-usd', to: 'bob', amount: '0.01', currency: 'USD' }), 'k2'),
    'invalid_request',
    /must come to at least 0\.01 EUR .*\(got 0\.01 USD at 0\.8576\)/,
  );
  for (const more of [{ amount: '10.01' }, { to: 'bob-usd' }, { from: 'bob' }])
    refuses(() => book.exchange(swap(more), 'k1'), 'conflict', /was used for another call: the exchange/);
  refuses(() => book.transfer(order(), 'k1'), 'conflict', /was used for another call: the exchange/);
});

test('a status reports an exchange like a transfer, and closes an unused key', (t) => {
  const book = open(t);
  const { exchange_id } = book.exchange(swap(), 'k1');
  assert.deepEqual(book.status('k1'), { status: 'done', exchange_id });
  assert.deepEqual(book.status('k2'), { status: 'not_done' });
  refuses(() => book.exchange(swap(), 'k2'), 'conflict', /a status query closed this idempotency_key/);
});

test('a book from before exchanges opens with its data', (t) => {
  const [folder, first] = [bookFolder(t), join(bookFolder(t), 'migrations')];
  mkdirSync(first);
  copyFileSync(new URL('./migrations/0001-ledger.sql', import.meta.url), join(first, '0001-ledger.sql'));
  const migrations = pathToFileURL(`${first}/`);
  openDatabase({ path: join(folder, 'ledger.db'), migrations, clock: systemClock, lock: 'shared' }).close();
  alter(t, folder, "INSERT INTO entries VALUES ('opening-bob', 'rent', 7)");
  assert.deepEqual(held(open(t, folder)), ['alice 5000.00', 'bob 1000.00', 'rent 0.07']);
});

test('after any sequence of calls, every transfer has two entries whose sum is zero, and no balance is negative', (t) => {
  const folder = bookFolder(t);
  const book = open(t, folder);
  const account = fc.constantFrom('alice', 'alice-usd', 'bob', 'bob-usd', 'rent', 'market-eur', 'nobody');
  const amount = fc.oneof(
    fc.integer({ min: 0, max: 600_000 }).map((cents) => (cents / 100).toFixed(2)),
    fc.string(),
  );
  const key = fc.integer({ min: 0, max: 40 }).map(String);
  const action = fc.constantFrom('status', 'transfer', 'exchange');
  fc.assert(
    fc.property(account, account, amount, key, action, (from, to, sum, id, what) => {
      const currency = from.endsWith('-usd') ? 'USD' : 'EUR';
      try {
        if (what === 'status') book.status(id);
        else book[what]({ from, to, amount: sum, currency }, id);
      } catch (thrown) {
        assert.ok(thrown instanceof ReveilleError, String(thrown));
      }
    }),
    { numRuns: 400 },
  );
  assert.ok(book.accounts().every(({ balance }) => !balance.startsWith('-')));
  const db = new DatabaseSync(join(folder, 'ledger.db'), { readOnly: true });
  t.after(() => db.close());
  const uneven = db.prepare(
    'SELECT transfer_id FROM entries GROUP BY transfer_id HAVING sum(cents) <> 0 OR count(*) <> 2',
  );
  assert.deepEqual(uneven.all(), []);
  const mixed = db.prepare(`
    SELECT account FROM entries JOIN accounts USING (account) JOIN transfers USING (transfer_id)
     WHERE accounts.currency <> transfers.currency`);
  assert.deepEqual(mixed.all(), []);
});
