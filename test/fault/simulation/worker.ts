/** One thread of a campaign: runs one seed after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { MUTANTS } from './mutants.ts';
import { type Outcome, simulate } from './simulate.ts';

export type WorkerData = { mutant: string | undefined };
/** A thread's message for each seed. */
export type Report = { outcome: Outcome } | { seed: number; error: string };

const { mutant } = workerData as WorkerData;

// Without this, a tenth of the time goes into unused stacks; a replay has them.
Error.stackTraceLimit = 0;

parentPort!.on('message', async (seed: number) => {
  let report: Report;
  try {
    report = { outcome: await simulate({ seed, mutant: mutant === undefined ? undefined : MUTANTS[mutant] }) };
  } catch (error) {
    report = { seed, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  parentPort!.postMessage(report);
});
