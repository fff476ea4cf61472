/**
 * Gives a move up: the alarms fire from the file again, in their state when it was closed.
 *
 * During the copy the database was closed to chronosd, and stays closed. After a complete copy it may be in use. Then
 * it is closed first, and only if nothing has changed in it since, unless those changes are to be discarded.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { SourcePhase, SourceState } from '../sqlite/departure.ts';
import { compare } from './compare.ts';
import type { Report } from './progress.ts';
import { Source } from './source.ts';
import { MOVING_TABLES } from './tables.ts';
import { Target } from './target.ts';

export type AbandonOptions = {
  /** The SQLite file. */
  from: string;
  /** The database it moved to; required once the copy was complete. */
  to: string | undefined;
  /** Whether to discard changes in the database since then, or changes that cannot be determined. */
  discard: boolean;
  clock: Clock;
  log: Logger;
  report?: Report;
};

export type AbandonResult = {
  from: string;
  /** The former state in the file; `home`: there was nothing to give up. */
  was: SourcePhase;
  /** The database of the move. */
  to: string | null;
  /** Whether chronosd refuses to start on the database now. */
  closed: boolean;
};

type OpenTransfer = SourceState & { transfer: string; target: string };

/** Ensures that the alarms do not fire from the database any more. */
async function closeTarget(
  target: Target,
  source: Source,
  transfer: OpenTransfer,
  { discard, report }: AbandonOptions,
): Promise<void> {
  const targetState = await target.state();
  if (targetState?.transfer !== transfer.transfer)
    throw new ReveilleError(
      'conflict',
      `the alarms of ${source.path} are not in ${target.name}; they moved to ${transfer.target}`,
    );
  if (targetState.state === 'arriving') return;
  if (targetState.state === 'arrived') {
    await target.refuseReplicas();
    await target.changePhase(transfer.transfer, 'arrived', 'abandoned');
  }
  try {
    // Checked again, for a replica that started in between.
    await target.refuseReplicas();
    if (!discard) await refuseChanged(target, source, report);
  } catch (error) {
    // If this fails as well, both sides stay closed, and the next attempt checks everything again.
    await target.changePhase(transfer.transfer, 'abandoned', 'arrived').catch(() => undefined);
    throw error;
  }
}

async function refuseChanged(target: Target, source: Source, report: Report = () => {}): Promise<void> {
  const total = MOVING_TABLES.reduce((sum, table) => sum + source.count(table), 0);
  const changed = (await compare({ source, target, total, report })).filter(({ equal }) => !equal);
  // Rows of owners are derived from alarms and recomputed at times: a difference only there is no change.
  if (changed.every(({ table }) => table === 'owners')) return;
  const tables = changed.map(({ table }) => table).join(', ');
  throw new ReveilleError(
    'conflict',
    `${target.name} has changed since the move (${tables}): alarms were set, fired or were edited there; add --discard to discard these changes and restore the alarms as of the move`,
  );
}

/** @returns whether the database is closed */
async function close(source: Source, transfer: OpenTransfer, options: AbandonOptions): Promise<boolean> {
  const { to: uri, discard, clock, log } = options;
  // The database was never open: that comes after "verified".
  if (transfer.state === 'moving') return true;
  if (uri === undefined) {
    if (discard) return false;
    throw new ReveilleError(
      'invalid_request',
      `the alarms of ${source.path} may be in use in ${transfer.target}; name that database with --to, so that it is closed first`,
    );
  }
  try {
    const target = await Target.open({ uri, clock, log });
    try {
      await closeTarget(target, source, transfer, options);
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
 * @throws ReveilleError when the database cannot be queried, a chronosd uses it, or it has changed since; the file
 *   stays closed then
 */
export async function abandon(options: AbandonOptions): Promise<AbandonResult> {
  const source = new Source(options.from, options.clock);
  try {
    const { state: sourceState, path } = source;
    if (!sourceState || sourceState.state === 'home') return { from: path, was: 'home', to: null, closed: false };
    const closed = await close(source, sourceState as OpenTransfer, options);
    source.writeState({ ...sourceState, state: 'home', transfer: null, target: null, since: options.clock.now() });
    return { from: path, was: sourceState.state, to: sourceState.target, closed };
  } finally {
    source.close();
  }
}
