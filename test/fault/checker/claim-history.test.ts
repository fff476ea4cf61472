import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimHistory } from './claim-history.ts';
import type { AuditEntry, OccurrenceImage } from './history.ts';

const ALARM = 'a';
const FREE: OccurrenceImage = {
  fireId: 'a@1000',
  alarmId: ALARM,
  source: 'schedule',
  nominal: 1000,
  dueAt: 1000,
  attempt: 0,
  fence: 0,
  claimedAt: null,
};
const holding = (attempt: number, fence = attempt): OccurrenceImage => ({
  ...FREE,
  attempt,
  fence,
  claimedAt: 1000 * attempt,
});
const released = (image: OccurrenceImage): OccurrenceImage => ({ ...image, claimedAt: null });

type Step = { row: [OccurrenceImage | null, OccurrenceImage | null] } | { ledger: number; fireId?: string };

/** An audit of transactions, each a list of changes; `told` says whether the engine reports transactions. */
function audit(reportsTransactions: boolean, ...transactions: Step[][]): AuditEntry[] {
  let seq = 0;
  return transactions.flatMap((steps, number) =>
    steps.map((step): AuditEntry => {
      seq++;
      const common = { seq, transaction: reportsTransactions ? String(number) : null, at: seq };
      if ('row' in step) return { table: 'occurrences', ...common, before: step.row[0], after: step.row[1] };
      const after = {
        fireId: step.fireId ?? FREE.fireId,
        alarmId: ALARM,
        attempt: step.ledger,
        outcome: 'unknown' as const,
      };
      return { table: 'fire_attempts', ...common, before: null, after };
    }),
  );
}

const came: Step = { row: [null, FREE] };
const claimed: Step = { row: [FREE, holding(1)] };
const freed: Step = { row: [holding(1), released(holding(1))] };
const claimedAgain: Step = { row: [released(holding(1)), holding(2)] };
const done: Step = { row: [holding(2), null] };

const complaints = (entries: AuditEntry[]) => claimHistory(entries).unentitled;

for (const reportsTransactions of [true, false]) {
  describe(reportsTransactions ? 'where transactions are told apart' : 'where they are not', () => {
    const findings = (...transactions: Step[][]) => complaints(audit(reportsTransactions, ...transactions));

    test('an interrupted claim, a second one, and its outcome are no violation', () => {
      const entries = audit(
        reportsTransactions,
        [came],
        [claimed],
        [freed, { ledger: 1 }],
        [claimedAgain],
        [done, { ledger: 2 }],
      );
      const { unentitled, claims, judged } = claimHistory(entries);
      assert.deepEqual(unentitled, []);
      assert.deepEqual(
        claims.map(({ attempt }) => attempt),
        [1, 2],
      );
      assert.equal(judged, entries.length);
    });

    test('a first attempt that gave way to a later occurrence needs no line in the ledger', () => {
      const next = { ...FREE, fireId: 'a@2000', nominal: 2000, dueAt: 2000 };
      assert.deepEqual(findings([came], [claimed], [{ row: [holding(1), null] }, { row: [null, next] }]), []);
      assert.deepEqual(findings([came], [claimed], [{ row: [holding(1), next] }]), []);
    });

    test('an outcome of the first holder during the second claim causes two findings', () => {
      const found = findings([came], [claimed], [freed, { ledger: 1 }], [claimedAgain], [done, { ledger: 1 }]);
      assert.equal(found.length, 2);
      assert.match(
        found.join(),
        /attempt 1 at a@1000 was recorded as unknown by a process without the claim \(change 7/,
      );
      assert.match(found.join(), /the claim of attempt 2 at a@1000 was ended without a line in the ledger \(change 6/);
    });

    test('an outcome after the end of the claim is a violation', () => {
      assert.match(
        findings([came], [claimed], [freed, { ledger: 1 }], [{ ledger: 1 }]).join(),
        /by a process without the claim/,
      );
    });

    test('a fence that changes without a claim, or by more than one, is a violation', () => {
      const back: Step = { row: [released(holding(2)), released(holding(2, 1))] };
      assert.match(findings([back]).join(), /the fence of a@1000 went from 2 to 1 without a claim/);
      assert.match(findings([{ row: [FREE, holding(1, 2)] }]).join(), /a claim of a@1000 took its fence from 0 to 2/);
      assert.match(findings([{ row: [FREE, holding(2, 1)] }]).join(), /a claim of a@1000 took its attempt from 0 to 2/);
    });

    test('a claim that passes to another process before its end is a violation', () => {
      const stolen: Step = { row: [holding(1), { ...holding(1), claimedAt: 7 }] };
      assert.match(findings([stolen]).join(), /the claim of a@1000 under fence 1 was taken from its holder/);
      assert.match(findings([{ row: [null, holding(1)] }]).join(), /was inserted as claimed, and no claim made that/);
    });

    test('a changed or shortened ledger is a violation', () => {
      const line = { fireId: FREE.fireId, alarmId: ALARM, attempt: 1, outcome: 'failed' as const };
      const common = { table: 'fire_attempts', seq: 1, transaction: null, at: 0, before: line } as const;
      assert.match(
        complaints([{ ...common, after: { ...line, outcome: 'delivered' } }]).join(),
        /was changed in the ledger/,
      );
      assert.match(complaints([{ ...common, after: null }]).join(), /was deleted from the ledger/);
    });
  });
}

test('within one transaction the ledger may be written before the claim is ended, but not in another', () => {
  const first = audit(true, [came], [claimed], [{ ledger: 1 }, freed]);
  assert.deepEqual(complaints(first), []);
  const apart = audit(true, [came], [claimed], [{ ledger: 1 }], [freed]);
  assert.match(complaints(apart).join(), /by a process without the claim/);
});
