/** Many seeds on several threads. */
import { Worker } from 'node:worker_threads';
import type { Outcome } from './simulate.ts';
import type { Report, WorkerData } from './worker.ts';

export type Campaign = {
  from: number;
  seeds: number;
  workers: number;
  /** No new seed begins after this time. */
  limitMs: number;
  /** No new seed begins after its abort. */
  stop: AbortSignal;
  mutant?: string | undefined;
  onOutcome: (outcome: Outcome) => void;
  /** A seed that did not run to its end: a defect of the simulation, or a deadlocked world. */
  onFailure: (seed: number, error: string) => void;
};

/** Longest silence of a thread about one seed. */
const SILENCE_MS = 120_000;

/** Runs the seeds; resolves when all of them, or all that began in time, are done. */
export async function runCampaign(campaign: Campaign): Promise<void> {
  const began = performance.now();
  let next = campaign.from;
  const take = (): number | undefined => {
    const isOver = campaign.stop.aborted || performance.now() - began > campaign.limitMs;
    return isOver || next >= campaign.from + campaign.seeds ? undefined : next++;
  };
  await Promise.all(Array.from({ length: campaign.workers }, () => work(campaign, take)));
}

/** One thread, and a replacement if it is lost. */
async function work(campaign: Campaign, take: () => number | undefined): Promise<void> {
  const workerData: WorkerData = { mutant: campaign.mutant };
  let seed = take();
  while (seed !== undefined) {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData });
    try {
      while (seed !== undefined) {
        const report: Report = await runSeed(worker, seed);
        if ('outcome' in report) campaign.onOutcome(report.outcome);
        else campaign.onFailure(seed, report.error);
        seed = take();
      }
    } catch (error) {
      campaign.onFailure(seed!, error instanceof Error ? error.message : String(error));
      seed = take();
    } finally {
      await worker.terminate();
    }
  }
}

function runSeed(worker: Worker, seed: number): Promise<Report> {
  return new Promise((resolve, reject) => {
    const silence = setTimeout(
      () => settle(() => reject(new Error(`no end after ${SILENCE_MS / 1000} s`))),
      SILENCE_MS,
    );
    const onMessage = (report: Report) => settle(() => resolve(report));
    const onError = (error: Error) => settle(() => reject(error));
    const settle = (then: () => void) => {
      clearTimeout(silence);
      worker.off('message', onMessage).off('error', onError);
      then();
    };
    worker.on('message', onMessage).on('error', onError);
    worker.postMessage(seed);
  });
}
