/** Whether all alarms are in a database, or are still being moved into it from a SQLite file. */
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import type { Executor } from './pool.ts';
import { type Row, statement } from './statement.ts';

/**
 * `arriving`: being copied. `arrived`: in use here. `abandoned`: the move was given up and the alarms fire from the
 * file again.
 */
export type TargetPhase = 'arriving' | 'arrived' | 'abandoned';

export type TargetState = {
  /** Identifies the file that the alarms come from. */
  source: string;
  /** Identifies the move. */
  transfer: string;
  state: TargetPhase;
  /** Every batch increments it. */
  step: number;
  /** The progress of the copy, as JSON. */
  progress: string;
  /** When the state was entered, epoch ms. */
  since: number;
};

const READ = statement('arrival', 'SELECT source, transfer, state, step, progress, since FROM arrivals');

/** The state in the database; `undefined` when nothing was ever moved into it. */
export async function readTargetState(executor: Executor): Promise<TargetState | undefined> {
  const [row] = await executor.query(READ, []);
  if (!row) return undefined;
  const [source, transfer, state, step, progress, since] = row as Row & [string, string, TargetPhase, ...unknown[]];
  return { source, transfer, state, step: step as number, progress: progress as string, since: since as number };
}

/**
 * Refuses a database whose alarms are incomplete, or fire from elsewhere again.
 *
 * @param server names the database in the message
 * @throws ReveilleError `conflict`
 */
export async function refuseIncompleteTransfer(executor: Executor, server: string): Promise<void> {
  const state = await readTargetState(executor);
  if (!state || state.state === 'arrived') return;
  const message =
    state.state === 'arriving'
      ? `a move into the database ${server} is not finished; run "reveille migrate --to <this database>" again where the SQLite file is, or use another database`
      : `the move into the database ${server} was given up on ${formatInstant(state.since)} and its alarms fire from the SQLite file again; use that, move again with "reveille migrate", or use another database`;
  throw new ReveilleError('conflict', message);
}
