import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { type Book, type Order, openBook } from './book.ts';

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
const held = (book: Book) => book.accounts().map(({ account, balance }) => `${account} ${balance}`);

function refuses(act: () => unknown, code: string, pattern: RegExp) {
  assert.throws(act, (thrown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.deepEqual([thrown.code, pattern.test(thrown.message)], [code, true], thrown.message);
    return true;
  });
}

test('a new book holds a few accounts of play money', (t) => {
  assert.deepEqual(held(open(t)), ['alice 5000.00', 'bob 1000.00', 'rent 0.00']);
});

test('a transfer moves money once for a key, also by another process and after a restart', (t) => {
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

test('a key that was used for one transfer is good for no other', (t) => {
  const book = open(t);
  book.transfer(order(), 'k1');
  for (const more of [{ amount: '10.01' }, { to: 'bob' }, { memo: 'x' }, { from: 'bob' }])
    refuses(() => book.transfer(order(more), 'k1'), 'conflict', /was used for another transfer/);
  assert.deepEqual(held(book), ['alice 4990.00', 'bob 1000.00', 'rent 10.00']);
});

test('what must not be is refused with a reason, by a simulation just as by a transfer, and the key stays good', (t) => {
  const book = open(t);
  const cases: [Partial<Order>, string, RegExp][] = [
    [{ amount: '5000.01' }, 'conflict', /alice has 5000\.00 EUR, which is less than 5000\.01 EUR/],
    [{ to: 'carol' }, 'not_found', /no account "carol"; there are alice, bob, rent/],
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

test('a simulation tells what the accounts would hold and changes nothing', (t) => {
  const book = open(t);
  const { before, after } = book.simulate(order({ amount: '4999.99' }));
  assert.deepEqual(
    [...before, ...after].map(({ balance }) => balance),
    ['5000.00', '0.00', '0.01', '4999.99'],
  );
  assert.deepEqual(held(book), ['alice 5000.00', 'bob 1000.00', 'rent 0.00']);
});

test('once a status says that a transfer was not made, it cannot be made any more', (t) => {
  const folder = bookFolder(t);
  const [book, late] = [open(t, folder), open(t, folder)];
  assert.deepEqual(book.status('k1'), { status: 'not_done' });
  refuses(
    () => late.transfer(order(), 'k1'),
    'conflict',
    /status was asked about this idempotency_key, which closed it/,
  );
  assert.deepEqual(late.status('k1'), { status: 'not_done' });
  const { transfer_id } = late.transfer(order(), 'k2');
  assert.deepEqual(book.status('k2'), { status: 'done', transfer_id });
});

test('every transfer has two entries that add up to nothing, and no balance goes below zero, whatever is asked', (t) => {
  const folder = bookFolder(t);
  const book = open(t, folder);
  const account = fc.constantFrom('alice', 'bob', 'rent', 'nobody');
  const amount = fc.oneof(
    fc.integer({ min: 0, max: 600_000 }).map((cents) => (cents / 100).toFixed(2)),
    fc.string(),
  );
  const key = fc.integer({ min: 0, max: 40 }).map(String);
  fc.assert(
    fc.property(account, account, amount, key, fc.boolean(), (from, to, sum, id, asks) => {
      try {
        if (asks) book.status(id);
        else book.transfer(order({ from, to, amount: sum }), id);
      } catch (thrown) {
        assert.ok(thrown instanceof ReveilleError, String(thrown));
      }
    }),
    { numRuns: 300 },
  );
  const cents = book.accounts().map(({ balance }) => Math.round(Number(balance) * 100));
  assert.equal(
    cents.reduce((sum, one) => sum + one),
    600_000,
  );
  assert.ok(cents.every((one) => one >= 0));
  const db = new DatabaseSync(join(folder, 'ledger.db'), { readOnly: true });
  t.after(() => db.close());
  const uneven = db.prepare(
    'SELECT transfer_id FROM entries GROUP BY transfer_id HAVING sum(cents) <> 0 OR count(*) <> 2',
  );
  assert.deepEqual(uneven.all(), []);
});
