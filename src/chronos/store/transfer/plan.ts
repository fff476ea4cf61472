/** Determines the next step of a move from the states of both sides. Pure. */
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import type { Arrival } from '../postgres/arrival.ts';
import type { Departure } from '../sqlite/departure.ts';

/**
 * `begin`: in an empty database. `restart`: an earlier move of the same file was given up. `resume`: a move is running.
 * `finish`: the database has completed it, and the file does not know yet. `done`: nothing remains.
 */
export type Plan = 'begin' | 'restart' | 'resume' | 'finish' | 'done';

export type Findings = {
  /** The file and its state. */
  path: string;
  departure: Departure | undefined;
  /** The database, its state, and whether it is empty. */
  name: string;
  arrival: Arrival | undefined;
  empty: boolean;
};

function refuse(message: string): ReveilleError {
  return new ReveilleError('conflict', message);
}

function planAway({ path, departure, name, arrival }: Findings & { departure: Departure }): Plan {
  const { state, transfer, target, since } = departure;
  if (!arrival || arrival.transfer !== transfer)
    throw refuse(
      state === 'moved'
        ? `the alarms of ${path} moved to ${target} on ${formatInstant(since)}; they are not in ${name}`
        : `a move of ${path} into ${target} is not finished; continue with that database, or give it up first with "reveille migrate --abandon"`,
    );
  if (arrival.state === 'abandoned')
    throw refuse(
      `the move into ${name} is being given up; finish that with "reveille migrate --abandon --to <this database>"`,
    );
  // After a failover to a standby that lagged behind, the database may have lost the completion of the move.
  if (arrival.state === 'arriving') return 'resume';
  return state === 'moved' ? 'done' : 'finish';
}

/**
 * Determines the plan.
 *
 * @throws ReveilleError `conflict` when the file is being moved to another database, or the database contains other
 *   data
 */
export function planOf(findings: Findings): Plan {
  const { departure, name, arrival, empty } = findings;
  if (departure && departure.state !== 'home') return planAway({ ...findings, departure });
  if (!arrival) {
    if (empty) return 'begin';
    throw refuse(`${name} contains alarms or keys already, and data is not merged; move into an empty database`);
  }
  if (arrival.state === 'arrived')
    throw refuse(
      `${name} has been in use since alarms moved into it on ${formatInstant(arrival.since)}, and data is not merged; move into an empty database`,
    );
  if (arrival.source === departure?.source) return 'restart';
  throw refuse(
    arrival.state === 'arriving'
      ? `a move of another SQLite file into ${name} is not finished; finish it there, or move into an empty database`
      : `${name} contains rows of another SQLite file whose move was given up; move into an empty database`,
  );
}
