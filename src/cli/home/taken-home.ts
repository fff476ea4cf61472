/** One `reveille up` per `REVEILLE_HOME`. A system lock (`up.lock`) decides between two starts; `run.json` describes the winner. */
import { join } from 'node:path';
import { fromNow, localTime } from '../../kit/clock/local-time.ts';
import { FileInUse, ownFile } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { isStopped, orUndefined } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { readerOf } from '../screens/reader.ts';
import { makeHome, type RunRecord, readRun } from './home.ts';

/**
 * Creates the home and locks it for this process.
 *
 * @returns releases the lock; harmless when called twice
 * @throws ReveilleError `conflict` naming the running process, `unavailable` when the home cannot be created or written
 */
export function takeHome(context: CliContext): () => void {
  const { home } = context;
  makeHome(home);
  try {
    return ownFile(join(home.path, 'up'));
  } catch (error) {
    if (error instanceof FileInUse) throw runsAlready(context, error.pid);
    if (error instanceof ReveilleError) throw error;
    const why = thrownText(error);
    const remedy = 'make it writable for this user, or choose another folder with REVEILLE_HOME';
    throw new ReveilleError('unavailable', `REVEILLE_HOME ${home.path} cannot be written to: ${why}; ${remedy}`, {
      retryable: false,
      cause: error,
    });
  }
}

/** The record of the lock's owner; a record of an earlier process does not count. */
function recordOf({ home }: CliContext, owner: number | undefined): RunRecord | undefined {
  // The lock decides; the doctor reports an unreadable record.
  const run = orUndefined(() => readRun(home));
  return owner === undefined || run?.pid === owner ? run : undefined;
}

function runsAlready(context: CliContext, owner: number | undefined): ReveilleError {
  const run = recordOf(context, owner);
  const home = context.home.path;
  const another =
    'for a second one set REVEILLE_HOME, CHRONOS_PORT, ROUTER_PORT, ROUTER_PUBLIC_PORT and EXECUTOR_PORT to others';
  if (!run) {
    const who = owner === undefined ? 'another process' : `process ${owner}`;
    const message = `Reveille is starting or stopping in ${home} (${who}): wait a moment; ${another}`;
    return new ReveilleError('conflict', message, { retryable: true });
  }
  const look = readerOf(context);
  const since = Date.parse(run.started_at);
  const frozen = isStopped(run.pid) ? ` It is stopped; continue it with: kill -CONT ${run.pid}` : '';
  const lines = [
    `Reveille already runs as process ${run.pid}, since ${localTime(since, look)} (${fromNow(since, look.now)}).${frozen}`,
    `  home      ${home}`,
    `  chronosd  ${run.chronos_url}`,
    `  router    ${run.router_url}`,
    ...(run.executor_url === undefined ? [] : [`  executor  ${run.executor_url}`]),
    `See it with: reveille status. To stop it: reveille stop, or press Ctrl-C in its terminal, or: kill ${run.pid}; ${another}.`,
  ];
  return new ReveilleError('conflict', lines.join('\n'), { retryable: false });
}
