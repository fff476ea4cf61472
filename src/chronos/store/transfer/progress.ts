/** The progress of a move. */
import { z } from 'zod';
import { ReveilleError } from '../../../wire/errors.ts';
import { MOVING_TABLES, type MovingTable } from './tables.ts';

/**
 * A step that is reported. `began`: both sides are closed. `verified`, `arrived`: the source, then the target has
 * recorded it.
 */
export type Step =
  | { phase: 'began' | 'verified' | 'arrived' }
  | { phase: 'copying' | 'comparing'; rows: number; total: number };

export type Report = (step: Step) => void;

const schema = z.partialRecord(
  z.enum(MOVING_TABLES.map(({ name }) => name)),
  z.object({ rows: z.int().min(0), after: z.array(z.union([z.string(), z.number()])) }),
);

/** For each started table: its number of copied rows, and the key of the last one. */
export type Progress = z.output<typeof schema>;

export function formatProgress(progress: Progress): string {
  return JSON.stringify(progress);
}

/**
 * @throws ReveilleError `conflict` when the text was not written by a move
 */
export function parseProgress(text: string): Progress {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ReveilleError(
      'conflict',
      'the database has a move state that this Reveille does not understand; continue with the version that began the move, or give it up with "reveille migrate --abandon"',
      { cause },
    );
  }
}

/** The number of copied rows. */
export function rowsOf(progress: Progress): number {
  return Object.values(progress).reduce((sum, { rows }) => sum + rows, 0);
}

/** The progress after some more rows of a table. */
export function advance(progress: Progress, table: MovingTable, rows: number, after: readonly unknown[]): Progress {
  const before = progress[table.name]?.rows ?? 0;
  return { ...progress, [table.name]: { rows: before + rows, after } };
}
