/**
 * One `reveille up` for each `REVEILLE_HOME`. A lock that the system holds decides (`up.lock`), so that of two starts
 * at the same moment one wins; `run.json` only says more about the winner.
 */
import { join } from 'node:path';
import { fromNow, localTime } from '../../kit/clock/local-time.ts';
import { FileInUse, ownFile } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isStopped } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { lookOf } from '../screens/look.ts';
import { makeHome, type RunRecord, readRun } from './home.ts';

/**
 * Makes the home and takes it for this process.
 *
 * @returns gives it up; harmless when called twice
 * @throws ReveilleError `conflict` saying what runs there already, `unavailable` when the home cannot be made or
 *   written to
 */
export function takeHome(context: CliContext): () => void {
  const { home } = context;
  makeHome(home);
  try {
    return ownFile(join(home.path, 'up'));
  } catch (error) {
    if (error instanceof FileInUse) throw runsAlready(context, error.pid);
    if (error instanceof ReveilleError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const remedy = 'make it writable for this user, or choose another folder with REVEILLE_HOME';
    throw new ReveilleError('unavailable', `REVEILLE_HOME ${home.path} cannot be written to: ${why}; ${remedy}`, {
      retryable: false,
      cause: error,
    });
  }
}

/** What the owner of the home has written down about itself; a record that an earlier one left is none of it. */
function recordOf({ home }: CliContext, owner: number | undefined): RunRecord | undefined {
  try {
    const run = readRun(home);
    return owner === undefined || run?.pid === owner ? run : undefined;
  } catch (error) {
    // The lock has said what matters; the doctor tells of a record that cannot be read.
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

function runsAlready(context: CliContext, owner: number | undefined): ReveilleError {
  const run = recordOf(context, owner);
  const home = context.home.path;
  const another =
    'for a second one set REVEILLE_HOME, CHRONOS_PORT, ROUTER_PORT, ROUTER_PUBLIC_PORT and EXECUTOR_PORT to others';
  if (!run) {
    const who = owner === undefined ? 'another process' : `process ${owner}`;
    const message = `Reveille is just being started, or ended, in ${home} by ${who}: wait a moment; ${another}`;
    return new ReveilleError('conflict', message, { retryable: true });
  }
  const look = lookOf(context);
  const since = Date.parse(run.started_at);
  const frozen = isStopped(run.pid) ? ` It is stopped; let it go on with: kill -CONT ${run.pid}` : '';
  const lines = [
    `Reveille runs already, as process ${run.pid}, since ${localTime(since, look)} (${fromNow(since, look.now)}).${frozen}`,
    `  home      ${home}`,
    `  chronosd  ${run.chronos_url}`,
    `  router    ${run.router_url}`,
    ...(run.executor_url === undefined ? [] : [`  executor  ${run.executor_url}`]),
    `There is nothing to start: "reveille alarm list" and all the others talk to it. To stop it press Ctrl-C where it runs, or: kill ${run.pid}; ${another}.`,
  ];
  return new ReveilleError('conflict', lines.join('\n'), { retryable: false });
}
