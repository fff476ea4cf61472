/** Whether the alarms of a file are still rung from it, or are on their way to PostgreSQL, or have gone there. */
import type { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';

/**
 * `home`: the file is in use. `moving`: it is being copied. `verified`: the copy is whole, and whether it is in use
 * already only the database knows. `moved`: it is.
 */
export type DepartureState = 'home' | 'moving' | 'verified' | 'moved';

export type Departure = {
  /** Names this file to the databases that it moves to, for good. */
  source: string;
  state: DepartureState;
  /** Names the move; `null` at home. */
  transfer: string | null;
  /** The database, `host:port/database`; `null` at home. */
  target: string | null;
  /** When the state was entered, epoch ms. */
  since: number;
};

/** What the file says; `undefined` when it never was to move. */
export function readDeparture(db: DatabaseSync): Departure | undefined {
  return db.prepare('SELECT source, state, transfer, target, since FROM departures').get() as Departure | undefined;
}

/** Writes it down. It is on disk when this returns. */
export function writeDeparture(db: DatabaseSync, { source, state, transfer, target, since }: Departure): void {
  db.prepare(
    `INSERT OR REPLACE INTO departures (only_one, source, state, transfer, target, since) VALUES (1, ?, ?, ?, ?, ?)`,
  ).run(source, state, transfer, target, since);
}

/**
 * Refuses a file whose alarms are not rung from it any more.
 *
 * @param path names the file in the message
 * @throws ReveilleError `conflict`, saying where they are and how to go on or back
 */
export function refuseDeparted(db: DatabaseSync, path: string): void {
  const departure = readDeparture(db);
  if (!departure || departure.state === 'home') return;
  const { state, target, since } = departure;
  const message =
    state === 'moved'
      ? `the alarms of ${path} moved to PostgreSQL (${target}) on ${formatInstant(since)}; set CHRONOS_POSTGRES_URI to that database, or go back to them as they were then with "reveille migrate --abandon"`
      : `the alarms of ${path} are on their way to PostgreSQL (${target}) and the move is not finished; finish it with "reveille migrate --to <that database>", or stay with the file by "reveille migrate --abandon"`;
  throw new ReveilleError('conflict', message);
}
