/** Compares the copy with the file: both sides are read completely, counted and hashed. */
import { createHash } from 'node:crypto';
import type { Report } from './progress.ts';
import type { Source } from './source.ts';
import { canonical, keyOf, MOVING_TABLES, type MovingTable, type Values } from './tables.ts';
import type { Target } from './target.ts';

/** One side of a table: its number of rows, and SHA-256 over the canonical form of every row in key order, in hex. */
export type Digest = { rows: number; sha256: string };

export type Comparison = {
  table: MovingTable['name'];
  source: Digest;
  target: Digest;
  equal: boolean;
  /** The key of the first row that differs between the sides, as JSON. */
  difference?: string;
};

/** Hashing a line is cheap; each call to the hash costs more. */
const HASHED_AT_ONCE = 64 * 1024;

class Digester {
  readonly #hash = createHash('sha256');
  #pending = '';
  rows = 0;

  add(row: string): void {
    this.rows++;
    this.#pending += `${row}\n`;
    if (this.#pending.length < HASHED_AT_ONCE) return;
    this.#hash.update(this.#pending);
    this.#pending = '';
  }

  end(): string {
    return this.#hash.update(this.#pending).digest('hex');
  }
}

type Sides = { source: Source; target: Target; total: number; report: Report };

async function compareTable(table: MovingTable, { source, target }: Sides, done: (rows: number) => void) {
  // Counted in the table itself: a damaged index would hide rows from the reading below.
  const counts = { source: source.count(table), target: await target.count(table) };
  const sourceDigest = new Digester();
  const targetDigest = new Digester();
  let difference: string | undefined;
  const compareRow = (sourceRow: Values | undefined, targetRow: Values | undefined) => {
    const [one, two] = [sourceRow, targetRow].map((row) => (row === undefined ? undefined : canonical(row)));
    if (one !== undefined) sourceDigest.add(one);
    if (two !== undefined) targetDigest.add(two);
    if (one !== two) difference ??= JSON.stringify(keyOf(table, sourceRow ?? targetRow!));
  };

  const rows = source.rows(table);
  for await (const page of target.pages(table)) {
    for (const row of page) {
      const next = rows.next();
      compareRow(next.done ? undefined : next.value, row);
    }
    done(sourceDigest.rows);
  }
  for (const row of rows) compareRow(row, undefined);

  const isComplete = sourceDigest.rows === counts.source && targetDigest.rows === counts.target;
  const comparison: Comparison = {
    table: table.name,
    source: { rows: counts.source, sha256: sourceDigest.end() },
    target: { rows: counts.target, sha256: targetDigest.end() },
    equal: false,
    ...(difference === undefined ? {} : { difference }),
  };
  comparison.equal =
    isComplete && counts.source === counts.target && comparison.source.sha256 === comparison.target.sha256;
  return comparison;
}

/** Compares all tables. */
export async function compare(sides: Sides): Promise<Comparison[]> {
  const { total, report } = sides;
  const comparisons: Comparison[] = [];
  let before = 0;
  for (const table of MOVING_TABLES) {
    const done = (rows: number) => report({ phase: 'comparing', rows: before + rows, total });
    const comparison = await compareTable(table, sides, done);
    comparisons.push(comparison);
    before += comparison.source.rows;
    done(0);
  }
  return comparisons;
}
