import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { pause } from '../../support/cluster/processes.ts';
import { runCampaign } from './campaign.ts';
import type { Extent, Fault } from './fault.ts';
import { wasJudged } from './report.ts';
import { complaints, table } from './summary.ts';

const extent: Extent = { strikes: 1, strikingMs: 5000, recoveringMs: 0, drainMs: 5000 };

/** Waits until a value is available, and returns it. */
async function take(path: string, least: number, statement: string): Promise<void> {
  for (let taken = 0; taken < least; ) {
    const db = new DatabaseSync(path, { timeout: 5000 });
    taken += Number(db.prepare(statement).run().changes);
    db.close();
    if (taken < least) await pause(20);
  }
}

const NO_OCCURRENCE = ['scheduled_for', 'nominal', 'due_at', 'attempt', 'fence', 'missed_count']
  .map((column) => `${column} = NULL`)
  .join(', ');

/** An occurrence of a single alarm without an attempt. */
const ONE_OWED = `
  alarm IN (
    SELECT o.alarm FROM progress AS o JOIN definitions AS a ON a.seq = o.alarm
    WHERE a.kind = 'once' AND o.attempt = 0
      AND NOT EXISTS (SELECT 1 FROM claims AS c WHERE c.alarm = o.alarm AND c.scheduled_for = o.scheduled_for) LIMIT 1)`;

test('a campaign with manipulated alarms reports the violations and keeps its logs', async (t) => {
  const tampering: Fault = {
    name: 'tampering',
    title: 'manipulated database',
    stores: ['sqlite'],
    short: extent,
    async strike({ installation }) {
      // For some of them, the clients later cancel the alarm themselves, and nothing is lost.
      await take(installation.sqlitePath, 8, `UPDATE progress SET ${NO_OCCURRENCE} WHERE ${ONE_OWED}`);
      await take(installation.sqlitePath, 1, `UPDATE progress SET fence = fence + 7 WHERE ${ONE_OWED}`);
      return { what: 'an alarm and a fence', endedAt: Date.now() };
    },
  };
  const outcome = await runCampaign({ fault: tampering, store: 'sqlite', seed: 1, extent });
  assert.ok(wasJudged(outcome), JSON.stringify(outcome));
  const { folder } = outcome;
  assert.ok(folder !== undefined);
  t.after(() => rmSync(folder, { recursive: true }));
  assert.ok(outcome.lost >= 1 && outcome.unfencedWrites >= 1, outcome.violations.join('\n'));
  for (const name of ['client.jsonl', 'receiver.jsonl', 'database.json', 'verdict.txt', 'house/chronosd-0.log'])
    assert.ok(existsSync(join(folder, name)), name);
  const [heading, ...sentences] = complaints([outcome]);
  assert.match(heading ?? '', /^manipulated database on sqlite \(seed 1, logs in \/.*\):$/);
  assert.ok(sentences.some((sentence) => /has no pending occurrence/.test(sentence)));
  assert.ok(sentences.some((sentence) => /the fence of .* went from 0 to 7 without a claim/.test(sentence)));
  t.diagnostic(`\n${table([outcome])}`);
});
