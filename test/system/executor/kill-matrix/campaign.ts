/**
 * Lives of an executor, one after the other over the same data, each but the last ended by a kill; and the invariants
 * that must hold afterwards.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { IntentState } from '../../../../src/executor/rail.ts';
import { verifyReceipt } from '../../../../src/executor/receipt/verify-receipt.ts';
import type { IntentReceipt } from '../../../../src/wire/intent-receipt.ts';
import { LEAN } from '../../../support/quick-start.ts';
import { executorSettings } from '../executor-bench.ts';
import type { Life } from './executor-process.fixture.ts';
import { type KillPoint, nameOf } from './kill-point.ts';

const ENTRY = fileURLToPath(import.meta.resolve('./executor-process.fixture.ts'));
const LIFE_MS = 60_000;

export type Figures = {
  readonly transfers: number;
  readonly kills: number;
  /** Points that no transfer reached before the end. */
  readonly missed: readonly string[];
  readonly statuses: Readonly<Record<string, number>>;
  readonly reconciled: number;
  readonly envelopes: number;
};

type Outcome = { readonly name: string; readonly state: IntentState; readonly receipt: IntentReceipt };

/** @returns whether it was killed */
async function live(life: Life, compileCache: string): Promise<boolean> {
  const child = spawn(process.execPath, [...LEAN, ENTRY, JSON.stringify(life)], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache },
    stdio: ['ignore', 'inherit', 'pipe'],
    timeout: LIFE_MS,
    killSignal: 'SIGTERM',
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const [status, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  assert.ok(status === 0 || signal === 'SIGKILL', `the executor ended with ${status ?? signal}: ${log}`);
  return signal === 'SIGKILL';
}

function readLedger(folder: string): { total: number; rent: number; keys: string[] } {
  const db = new DatabaseSync(join(folder, 'ledger', 'ledger.db'), { readOnly: true });
  const sum = (where: string) =>
    Number(db.prepare(`SELECT coalesce(sum(cents), 0) AS cents FROM entries WHERE ${where}`).get()!.cents);
  const keys = db.prepare('SELECT idempotency_key AS key FROM transfers WHERE idempotency_key IS NOT NULL').all();
  const read = {
    total: sum(`account <> 'opening'`),
    rent: sum(`account = 'rent'`),
    keys: keys.map(({ key }) => key as string),
  };
  db.close();
  return read;
}

function countOf(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Compares one intent with the ledger and the record of calls. */
function assertIntent(
  { name, state, receipt }: Outcome,
  keys: ReadonlySet<string>,
  calls: ReadonlyMap<string, number>,
): void {
  const report = verifyReceipt(receipt);
  assert.equal(report.broken, undefined, `${name}: ${JSON.stringify(report.broken)}`);
  const started = receipt.envelopes.find(({ kind }) => kind === 'call.started');
  const starts = receipt.envelopes.filter(({ kind }) => kind === 'call.started').length;
  const isBlind = Number(name.split('.').at(-1)) % 2 === 1;
  const key = isBlind ? name : `${receipt.intent_id}.pay`;
  const isMade = keys.has(key);
  const made = calls.get(key) ?? 0;
  assert.ok(made <= 1 && starts <= 1, `${name} was called ${made} times, started ${starts} times`);
  assert.ok(started || made === 0, `${name} was called without a line in the journal`);
  switch (state.status) {
    case 'completed':
      assert.ok(isMade, `${name} is completed and was not made`);
      break;
    case 'failed':
      assert.ok(!isMade, `${name} failed and was made: ${state.error?.message}`);
      break;
    case 'unknown':
      assert.match(state.error?.message ?? '', new RegExp(`reveille intent reconcile ${receipt.intent_id}`));
      assert.ok(isBlind, `${name} is unknown although its tool can be asked`);
      break;
    default:
      assert.fail(`${name} is ${state.status} at the end`);
  }
}

/**
 * Kills an executor at each of the points, with this many transfers in progress each time, and completes everything.
 *
 * @throws AssertionError when money was lost or made, a transfer was made twice, or an intent has no correct final
 * state
 */
export async function campaign(points: readonly KillPoint[], batch: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-kill-'));
  try {
    const compileCache = process.env.NODE_COMPILE_CACHE ?? join(folder, 'compile-cache');
    const { EXECUTOR_MANIFEST: manifest } = executorSettings(folder);
    const keys: string[] = [];
    const missed: string[] = [];
    for (const [index, point] of points.entries()) {
      const fresh = Array.from({ length: batch }, (_, n) => `user-${n}.${index}.${n}`);
      // The answers to the last life's requests may be lost, so they are sent again.
      const again = keys.slice(-batch);
      keys.push(...fresh);
      const count = point.first ? 1 : Math.ceil((batch * 2) / 3);
      const killed = await live(
        { folder, manifest: manifest!, keys: [...again, ...fresh], kill: { ...point, count } },
        compileCache,
      );
      if (!killed) missed.push(nameOf(point));
    }
    assert.equal(await live({ folder, manifest: manifest!, keys, kill: undefined }, compileCache), false);

    const { total, rent, keys: made } = readLedger(folder);
    assert.equal(total, 600_000, 'money was lost or made');
    assert.equal(rent, made.length);
    const calls = countOf(readFileSync(join(folder, 'calls.log'), 'utf8').split('\n').filter(Boolean));
    const names = readdirSync(join(folder, 'outcomes'));
    const outcomes = names.map((name) => JSON.parse(readFileSync(join(folder, 'outcomes', name), 'utf8')) as Outcome);
    assert.equal(outcomes.length, keys.length);
    for (const outcome of outcomes) assertIntent(outcome, new Set(made), calls);
    const envelopes = outcomes.flatMap(({ receipt }) => receipt.envelopes);
    return {
      transfers: outcomes.length,
      kills: points.length - missed.length,
      missed,
      statuses: Object.fromEntries(countOf(outcomes.map(({ state }) => state.status))),
      reconciled: envelopes.filter(({ kind }) => kind === 'call.reconciled').length,
      envelopes: envelopes.length,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
