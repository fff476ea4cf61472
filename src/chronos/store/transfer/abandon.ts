/**
 * Giving a move up: the alarms are rung from the file again, as they were when it was closed.
 *
 * While they were being copied, the database has not been open to anybody, and stays closed. Once the copy was whole it
 * may be in use: it is closed first, and only when nothing has happened in it since, unless that is to be given up as
 * well.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Departure, DepartureState } from '../sqlite/departure.ts';
import { compare } from './compare.ts';
import type { Report } from './progress.ts';
import { Source } from './source.ts';
import { MOVING_TABLES } from './tables.ts';
import { Target } from './target.ts';

export type AbandonOptions = {
  /** The SQLite file. */
  from: string;
  /** The database it moved to; needed once the copy was whole. */
  to: string | undefined;
  /** Whether to give up what has happened in the database since, or what cannot be found out about it. */
  discard: boolean;
  clock: Clock;
  log: Logger;
  report?: Report;
};

export type AbandonResult = {
  from: string;
  /** What the file said before; `home`: there was nothing to give up. */
  was: DepartureState;
  /** Where it was moving or had moved to. */
  to: string | null;
  /** Whether chronosd refuses to start on the database now. */
  closed: boolean;
};

type Away = Departure & { transfer: string; target: string };

/** Sees to it that nobody rings the alarms from the database any more. */
async function closeTarget(
  target: Target,
  source: Source,
  away: Away,
  { discard, report }: AbandonOptions,
): Promise<void> {
  const arrival = await target.arrival();
  if (arrival?.transfer !== away.transfer)
    throw new ReveilleError(
      'conflict',
      `the alarms of ${source.path} are not in ${target.name}; they moved to ${away.target}`,
    );
  if (arrival.state === 'arriving') return;
  if (arrival.state === 'arrived') {
    await target.refuseReplicas();
    await target.turn(away.transfer, 'arrived', 'abandoned');
  }
  try {
    // Once more, for one that started in between.
    await target.refuseReplicas();
    if (!discard) await refuseChanged(target, source, report);
  } catch (error) {
    // Where that fails as well, both sides stay closed, and the next attempt asks the same questions again.
    await target.turn(away.transfer, 'abandoned', 'arrived').catch(() => undefined);
    throw error;
  }
}

async function refuseChanged(target: Target, source: Source, report: Report = () => {}): Promise<void> {
  const total = MOVING_TABLES.reduce((sum, table) => sum + source.count(table), 0);
  const changed = (await compare({ source, target, total, report })).filter(({ equal }) => !equal);
  // What stands about an owner is worked out from their alarms, and worked out anew at times: by itself it is no
  // change.
  if (changed.every(({ table }) => table === 'owners')) return;
  const tables = changed.map(({ table }) => table).join(', ');
  throw new ReveilleError(
    'conflict',
    `${target.name} has changed since the move (${tables}): alarms were set, rang or were edited there; add --discard to give that up and go back to them as they were`,
  );
}

/** @returns whether the database is closed */
async function close(source: Source, away: Away, options: AbandonOptions): Promise<boolean> {
  const { to: uri, discard, clock, log } = options;
  // It has never been open: that comes after "verified".
  if (away.state === 'moving') return true;
  if (uri === undefined) {
    if (discard) return false;
    throw new ReveilleError(
      'invalid_request',
      `the alarms of ${source.path} may be in use in ${away.target}; name that database with --to, so that it is closed first`,
    );
  }
  try {
    const target = await Target.open({ uri, clock, log });
    try {
      await closeTarget(target, source, away, options);
      return true;
    } finally {
      await target.close();
    }
  } catch (error) {
    const gone = error instanceof ReveilleError && error.code === 'unavailable';
    if (discard && gone) return false;
    throw error;
  }
}

/**
 * Gives the move of a file up.
 *
 * @throws ReveilleError when the database cannot be asked, a chronosd uses it, or it has changed since; the file stays
 *   closed then
 */
export async function abandon(options: AbandonOptions): Promise<AbandonResult> {
  const source = new Source(options.from, options.clock);
  try {
    const { departure, path } = source;
    if (!departure || departure.state === 'home') return { from: path, was: 'home', to: null, closed: false };
    const closed = await close(source, departure as Away, options);
    source.mark({ ...departure, state: 'home', transfer: null, target: null, since: options.clock.now() });
    return { from: path, was: departure.state, to: departure.target, closed };
  } finally {
    source.close();
  }
}
