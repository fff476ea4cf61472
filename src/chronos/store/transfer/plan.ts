/** What is to be done, from what both sides say. Pure. */
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import type { Arrival } from '../postgres/arrival.ts';
import type { Departure } from '../sqlite/departure.ts';

/**
 * `begin` in an empty database; `restart` where an earlier move of the same file was given up; `resume` the one under
 * way; `finish` one that the database has, and the file does not know yet; `done` when nothing is left.
 */
export type Plan = 'begin' | 'restart' | 'resume' | 'finish' | 'done';

export type Findings = {
  /** The file, and what it says. */
  path: string;
  departure: Departure | undefined;
  /** The database, what it says, and whether nothing is kept in it. */
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
        : `a move of ${path} into ${target} is not finished; go on with that database, or give it up first with "reveille migrate --abandon"`,
    );
  if (arrival.state === 'abandoned')
    throw refuse(
      `the move into ${name} is being given up; finish that with "reveille migrate --abandon --to <this database>"`,
    );
  // A database that failed over to a standby which lagged behind may have forgotten that the move was complete.
  if (arrival.state === 'arriving') return 'resume';
  return state === 'moved' ? 'done' : 'finish';
}

/**
 * Decides.
 *
 * @throws ReveilleError `conflict` when the file is on its way to somewhere else, or the database holds something else
 */
export function planOf(findings: Findings): Plan {
  const { departure, name, arrival, empty } = findings;
  if (departure && departure.state !== 'home') return planAway({ ...findings, departure });
  if (!arrival) {
    if (empty) return 'begin';
    throw refuse(`${name} holds alarms or keys already, and nothing is mixed; move into an empty database`);
  }
  if (arrival.state === 'arrived')
    throw refuse(
      `${name} has been in use since alarms moved into it on ${formatInstant(arrival.since)}, and nothing is mixed; move into an empty database`,
    );
  if (arrival.source === departure?.source) return 'restart';
  throw refuse(
    arrival.state === 'arriving'
      ? `a move of another SQLite file into ${name} is not finished; finish it there, or move into an empty database`
      : `${name} holds what another SQLite file left there when its move was given up; move into an empty database`,
  );
}
