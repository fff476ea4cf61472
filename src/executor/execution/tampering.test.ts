import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { generateKey } from '../../kit/identity/keys.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { openJournal } from '../journal/journal.ts';
import { signingKey } from '../receipt/chain.ts';
import { sha256Hex } from '../receipt/envelope.ts';
import { BOUNDS, call, createWorkbench, planOf, transfer, type Workbench } from './testing/workbench.ts';

/** A question that was never asked. */
const NO_GATE = { node_id: 'pay', call: { call_sha256: '0'.repeat(64) }, displayed_sha256: '0'.repeat(64) };

type Change = (db: DatabaseSync, intentId: string) => void;

const edit: Change = (db, id) =>
  void db
    .prepare(`UPDATE envelopes SET envelope = replace(envelope, '10.00', '99.00') WHERE intent_id = ? AND seq = 3`)
    .run(id);
const remove: Change = (db, id) => void db.prepare('DELETE FROM envelopes WHERE intent_id = ? AND seq = 3').run(id);
const cutOff: Change = (db, id) => void db.prepare('DELETE FROM envelopes WHERE intent_id = ? AND seq > 3').run(id);
const swap: Change = (db, id) => {
  const rows = db.prepare('SELECT envelope FROM envelopes WHERE intent_id = ? AND seq IN (3, 4) ORDER BY seq').all(id);
  const put = db.prepare('UPDATE envelopes SET envelope = ? WHERE intent_id = ? AND seq = ?');
  put.run(rows[1]!.envelope!, id, 3);
  put.run(rows[0]!.envelope!, id, 4);
};
const garble: Change = (db, id) =>
  void db.prepare(`UPDATE envelopes SET envelope = '{' WHERE intent_id = ? AND seq = 4`).run(id);
const forge: Change = (db, id) =>
  void db
    .prepare(
      `INSERT INTO envelopes SELECT intent_id, 99, replace(envelope, 'gate.asked', 'gate.answered') FROM envelopes
       WHERE intent_id = ? ORDER BY seq DESC LIMIT 1`,
    )
    .run(id);
const first: Change = (db, id) =>
  void db
    .prepare(`UPDATE envelopes SET envelope = replace(envelope, 'alice', 'mallory') WHERE intent_id = ? AND seq = 1`)
    .run(id);
const headBack: Change = (db, id) => void db.prepare('UPDATE intents SET head_seq = 2 WHERE id = ?').run(id);

function tamper(bench: Workbench, change: Change, intentId: string): void {
  const db = new DatabaseSync(join(bench.folder, 'journal.db'));
  change(db, intentId);
  db.close();
}

for (const change of [edit, remove, cutOff, swap, garble, forge, first, headBack]) {
  test(`a tampered chain (${change.name}) ends with a reason, and verifies up to the change`, async (t) => {
    const bench = createWorkbench(t);
    const id = await bench.submit(planOf(transfer('pay')));
    await bench.gate(id, 'pay');
    const before = bench.rail.receipt('alice', id).envelopes;
    await bench.stop();
    tamper(bench, change, id);
    bench.start();
    await eventually('it has ended', () => ['failed', 'unknown'].includes(bench.status(id)));
    // Missing or unreadable rows could have recorded a call.
    if (change === edit || change === first || change === headBack) assert.equal(bench.status(id), 'failed');
    // The next intent is not blocked.
    const next = await bench.submit(planOf(call('look', 'balance', { of: 'bob' })));
    await bench.reaches(next, 'completed');
    const { envelopes } = bench.verified(id);
    const broken = envelopes.findIndex(({ kind }) => kind === 'journal.broken');
    assert.ok(broken >= 0);
    assert.deepEqual(envelopes.slice(0, broken), before.slice(0, broken));
    assert.deepEqual(
      envelopes.slice(broken + 1).map(({ kind }) => kind),
      [`intent.${bench.status(id)}`],
    );
    assert.match(bench.rail.state('alice', id).error?.message ?? '', /was tampered with/);
    const late = bench.approver.answer(id, NO_GATE);
    await assert.rejects(bench.rail.answer('alice', id, 'pay', late), { code: /conflict|not_found/ });
    assert.equal(bench.bank.transfers.size, 0);
    bench.verified(id);
  });
}

test('a chain that is tampered with while the executor runs does not grow; a started call makes it unknown', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('one'), transfer('two')));
  await bench.approve(id, 'one');
  await bench.gate(id, 'two');
  tamper(bench, cutOff, id);
  const [waiting] = bench.rail.gates('alice', id);
  await assert.rejects(bench.rail.answer('alice', id, 'two', bench.approver.answer(id, waiting!)), {
    code: 'conflict',
    message: /journal of this intent was tampered with|the intent has ended/,
  });
  await bench.reaches(id, 'unknown');
  assert.equal(bench.bank.transfers.size, 1);
  bench.verified(id);
});

test('a chain that was cut before its call, with its new end in the row, does not repeat the call', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  const approved = bench.verified(id).envelopes.find(({ kind }) => kind === 'gate.answered')!;
  await bench.stop();
  tamper(
    bench,
    (db) => {
      const { seq } = approved;
      db.prepare('DELETE FROM envelopes WHERE intent_id = ? AND seq > ?').run(id, seq);
      db.prepare(`UPDATE intents SET head_seq = ?, head_hash = ?, is_over = 0, status = 'executing' WHERE id = ?`).run(
        seq,
        sha256Hex(canonicalJson(approved)),
        id,
      );
    },
    id,
  );
  bench.start();
  await bench.reaches(id, 'unknown');
  assert.equal(bench.bank.calls.filter(({ tool }) => tool.endsWith('/transfer')).length, 1);
  bench.verified(id);
});

test('an intent whose row names another user does not belong to that user', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  await bench.stop();
  tamper(bench, (db) => void db.prepare(`UPDATE intents SET user_id = 'bob' WHERE id = ?`).run(id), id);
  bench.start();
  assert.deepEqual(
    bench.rail.receipt('bob', id).envelopes.map(({ kind }) => kind),
    ['journal.broken', 'intent.failed'],
  );
});

test('a final intent is checked again when its receipt is requested', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
  tamper(bench, edit, id);
  const { envelopes } = bench.verified(id);
  assert.deepEqual(
    envelopes.slice(-2).map(({ kind }) => kind),
    ['journal.broken', 'intent.unknown'],
  );
  assert.equal(bench.status(id), 'unknown');
});

test('a chain in the place of another one is detected', async (t) => {
  const bench = createWorkbench(t);
  const one = await bench.submit(planOf(transfer('pay')));
  const other = await bench.submit(planOf(transfer('pay')), {}, 'bob');
  await bench.gate(one, 'pay');
  await bench.gate(other, 'pay', 'bob');
  await bench.stop();
  tamper(
    bench,
    (db, id) => {
      db.prepare('DELETE FROM envelopes WHERE intent_id = ?').run(id);
      db.prepare('UPDATE envelopes SET intent_id = ? WHERE intent_id = ?').run(id, other);
      const head = db.prepare('SELECT head_seq, head_hash FROM intents WHERE id = ?').get(other)!;
      db.prepare('UPDATE intents SET head_seq = ?, head_hash = ? WHERE id = ?').run(
        head.head_seq!,
        head.head_hash!,
        id,
      );
    },
    one,
  );
  bench.start();
  for (const [id, user] of [
    [one, 'alice'],
    [other, 'bob'],
  ] as const) {
    assert.match(bench.rail.state(user, id).error?.message ?? '', /was tampered with/);
    bench.verified(id, user);
  }
});

test('a journal of another key is not changed', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay')));
  await bench.gate(id, 'pay');
  await bench.stop();
  const key = signingKey(generateKey());
  assert.throws(
    () => openJournal({ dataDir: bench.folder, key, clock: bench.clock, log: silentLogger, bounds: BOUNDS }),
    {
      code: 'conflict',
      message: /put the old executor.key back/,
    },
  );
  bench.start();
  await bench.approve(id, 'pay');
  await bench.reaches(id, 'completed');
});
