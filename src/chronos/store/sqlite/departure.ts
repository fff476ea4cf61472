/** Whether the alarms of a file fire from it, are being moved to PostgreSQL, or have been moved. */
import type { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';

/**
 * `home`: the file is in use. `moving`: it is being copied. `verified`: the copy is complete; only the database knows
 * whether it is in use. `moved`: the copy is in use.
 */
export type SourcePhase = 'home' | 'moving' | 'verified' | 'moved';

export type SourceState = {
  /** Identifies this file permanently to the databases that it moves to. */
  source: string;
  state: SourcePhase;
  /** Identifies the move; `null` for `home`. */
  transfer: string | null;
  /** The database, `host:port/database`; `null` for `home`. */
  target: string | null;
  /** When the state was entered, epoch ms. */
  since: number;
};

/** The state in the file; `undefined` when no move was ever started. */
export function readSourceState(db: DatabaseSync): SourceState | undefined {
  return db.prepare('SELECT source, state, transfer, target, since FROM departures').get() as SourceState | undefined;
}

/** Stores the state. It is on disk when this returns. */
export function writeDeparture(db: DatabaseSync, { source, state, transfer, target, since }: SourceState): void {
  db.prepare(
    `INSERT OR REPLACE INTO departures (only_one, source, state, transfer, target, since) VALUES (1, ?, ?, ?, ?, ?)`,
  ).run(source, state, transfer, target, since);
}

/**
 * Refuses a file whose alarms do not fire from it any more.
 *
 * @param path names the file in the message
 * @throws ReveilleError `conflict`, with the place of the alarms and how to continue or go back
 */
export function refuseDeparted(db: DatabaseSync, path: string): void {
  const departure = readSourceState(db);
  if (!departure || departure.state === 'home') return;
  const { state, target, since } = departure;
  const message =
    state === 'moved'
      ? `the alarms of ${path} moved to PostgreSQL (${target}) on ${formatInstant(since)}; set CHRONOS_POSTGRES_URI to that database, or restore the alarms as of then with "reveille migrate --abandon"`
      : `the move of the alarms of ${path} to PostgreSQL (${target}) is not finished; finish it with "reveille migrate --to <that database>", or keep the file with "reveille migrate --abandon"`;
  throw new ReveilleError('conflict', message);
}
