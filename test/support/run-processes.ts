/** Starts test processes with Node's runner. */
import { availableParallelism } from 'node:os';
import { run } from 'node:test';
import { NODE_ARGS, type TestProcess } from './suites.ts';

/** The limit of one suite, and of one test: twice what the commands of all pages take on a busy computer. */
const TIMEOUT_MS = 600_000;
/**
 * Files at a time for each core: most wait for processes half of their time. Three are up to a tenth faster on two
 * cores, but twice as many processes then wait for a core, which sometimes fails a test.
 */
const FILES_PER_CORE = 2;

/** @returns the events of the run */
export function runProcesses(processes: readonly TestProcess[]) {
  return run({
    files: processes.map(({ file }) => file),
    concurrency: FILES_PER_CORE * availableParallelism(),
    timeout: TIMEOUT_MS,
    execArgv: [...NODE_ARGS],
  });
}
