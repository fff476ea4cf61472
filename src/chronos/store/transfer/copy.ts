/** Copying the rows, batch by batch, each with the progress it makes: what was interrupted goes on behind the last one stored. */
import type { Arrival } from '../postgres/arrival.ts';
import { advance, formatProgress, parseProgress, type Report, rowsOf } from './progress.ts';
import type { Source } from './source.ts';
import { keyOf, MOVING_TABLES, type Values } from './tables.ts';
import type { Target } from './target.ts';

/** A batch ends with this many rows or characters, whichever is reached first. */
const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 2 * 1024 * 1024;

function weigh(row: Values): number {
  return row.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 8), 0);
}

function* batchesOf(rows: Iterable<Values>): Generator<Values[]> {
  let batch: Values[] = [];
  let weight = 0;
  for (const row of rows) {
    batch.push(row);
    weight += weigh(row);
    if (batch.length < BATCH_ROWS && weight < BATCH_CHARACTERS) continue;
    yield batch;
    batch = [];
    weight = 0;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Copies what is not there yet.
 *
 * @param total how many rows there are to be in the end
 * @returns how many rows this call has copied
 */
export async function copyRows(
  { source, target, total, report }: { source: Source; target: Target; total: number; report: Report },
  arrival: Arrival,
): Promise<number> {
  let progress = parseProgress(arrival.progress);
  let { step } = arrival;
  const before = rowsOf(progress);
  // One batch is written while the next is read.
  let underWay: Promise<void> = Promise.resolve();
  for (const table of MOVING_TABLES) {
    for (const batch of batchesOf(source.rows(table, progress[table.name]?.after))) {
      progress = advance(progress, table, batch.length, keyOf(table, batch.at(-1)!));
      const stored = target.put(table, batch, { transfer: arrival.transfer, step, progress: formatProgress(progress) });
      stored.catch(() => undefined);
      step++;
      const rows = rowsOf(progress) - batch.length;
      await underWay;
      report({ phase: 'copying', rows, total });
      underWay = stored;
    }
  }
  await underWay;
  report({ phase: 'copying', rows: rowsOf(progress), total });
  return rowsOf(progress) - before;
}
