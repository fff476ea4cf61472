/** Determines the next step of a move from the states of both sides. Pure. */
import { ReveilleError } from '../../../wire/errors.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import type { TargetState } from '../postgres/transfer-state.ts';
import type { SourceState } from '../sqlite/departure.ts';

/**
 * `begin`: in an empty database. `restart`: an earlier move of the same file was given up. `resume`: a move is running.
 * `finish`: the database has completed it, and the file does not know yet. `done`: nothing remains.
 */
export type Plan = 'begin' | 'restart' | 'resume' | 'finish' | 'done';

export type Findings = {
  /** The file and its state. */
  path: string;
  sourceState: SourceState | undefined;
  /** The database, its state, and whether it is empty. */
  name: string;
  targetState: TargetState | undefined;
  empty: boolean;
};

function refuse(message: string): ReveilleError {
  return new ReveilleError('conflict', message);
}

function planOfMovedFile({ path, sourceState, name, targetState }: Findings & { sourceState: SourceState }): Plan {
  const { state, transfer, target, since } = sourceState;
  if (!targetState || targetState.transfer !== transfer)
    throw refuse(
      state === 'moved'
        ? `the alarms of ${path} moved to ${target} on ${formatInstant(since)}; they are not in ${name}`
        : `a move of ${path} into ${target} is not finished; continue with that database, or give it up first with "reveille migrate --abandon"`,
    );
  if (targetState.state === 'abandoned')
    throw refuse(
      `the move into ${name} is being given up; finish that with "reveille migrate --abandon --to <this database>"`,
    );
  // After a failover to a standby that lagged behind, the database may have lost the completion of the move.
  if (targetState.state === 'arriving') return 'resume';
  return state === 'moved' ? 'done' : 'finish';
}

/**
 * Determines the plan.
 *
 * @throws ReveilleError `conflict` when the file is being moved to another database, or the database contains other
 *   data
 */
export function planOf(findings: Findings): Plan {
  const { sourceState, name, targetState, empty } = findings;
  if (sourceState && sourceState.state !== 'home') return planOfMovedFile({ ...findings, sourceState: sourceState });
  if (!targetState) {
    if (empty) return 'begin';
    throw refuse(`${name} contains alarms or keys already, and data is not merged; move into an empty database`);
  }
  if (targetState.state === 'arrived')
    throw refuse(
      `${name} has been in use since alarms moved into it on ${formatInstant(targetState.since)}, and data is not merged; move into an empty database`,
    );
  if (targetState.source === sourceState?.source) return 'restart';
  throw refuse(
    targetState.state === 'arriving'
      ? `a move of another SQLite file into ${name} is not finished; finish it there, or move into an empty database`
      : `${name} contains rows of another SQLite file whose move was given up; move into an empty database`,
  );
}
