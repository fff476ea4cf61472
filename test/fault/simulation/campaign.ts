/** Many seeds over several threads. */
import { Worker } from 'node:worker_threads';
import type { Outcome } from './simulate.ts';
import type { Report, WorkerData } from './worker.ts';

export type Campaign = {
  from: number;
  seeds: number;
  workers: number;
  /** No new seed is begun later than this. */
  limitMs: number;
  /** No new seed is begun once it has aborted. */
  stop: AbortSignal;
  mutant?: string | undefined;
  onOutcome: (outcome: Outcome) => void;
  /** A seed that could not be lived through to its end: a defect of the simulation, or a world that stands still. */
  onFailure: (seed: number, error: string) => void;
};

/** The longest that a thread may be silent about one seed. */
const SILENCE_MS = 120_000;

/** Runs the seeds; resolves when all of them, or all that were begun in time, are done. */
export async function runCampaign(campaign: Campaign): Promise<void> {
  const began = performance.now();
  let next = campaign.from;
  const take = (): number | undefined => {
    const isOver = campaign.stop.aborted || performance.now() - began > campaign.limitMs;
    return isOver || next >= campaign.from + campaign.seeds ? undefined : next++;
  };
  await Promise.all(Array.from({ length: campaign.workers }, () => work(campaign, take)));
}

/** One thread, and another one in its place should it be lost. */
async function work(campaign: Campaign, take: () => number | undefined): Promise<void> {
  const workerData: WorkerData = { mutant: campaign.mutant };
  let seed = take();
  while (seed !== undefined) {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData });
    try {
      while (seed !== undefined) {
        const report: Report = await live(worker, seed);
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

function live(worker: Worker, seed: number): Promise<Report> {
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
