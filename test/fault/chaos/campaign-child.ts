/** Starts a campaign in its own process and waits for its outcome. */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { CampaignOrder } from './campaign-process.ts';
import type { Job } from './options.ts';
import type { CampaignOutcome } from './report.ts';

/** A stopped campaign still ends its processes, reads their remains and judges. */
const ENDING_MS = 60_000;

/** @param signal asks the campaign to end in order, as soon as it can */
export function runApart(
  { fault, store, extent }: Job,
  { seed, keep, signal }: { seed: number; keep: boolean; signal: AbortSignal },
): Promise<CampaignOutcome> {
  // An own process group: Ctrl-C reaches only the main process. A forced end also reaches all processes that the
  // campaign started.
  const child = fork(join(import.meta.dirname, 'campaign-process.ts'), { detached: true });
  let patience: NodeJS.Timeout | undefined;
  const end = () => {
    child.kill('SIGTERM');
    patience = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), ENDING_MS);
  };
  signal.addEventListener('abort', end);
  return new Promise<CampaignOutcome>((resolve) => {
    let outcome: CampaignOutcome | undefined;
    child.once('message', (message) => {
      outcome = message as CampaignOutcome;
    });
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', end);
      clearTimeout(patience);
      const failure = `its process ended with ${code ?? killedBy} before it reported an outcome`;
      resolve(outcome ?? { fault: fault.name, title: fault.title, store, seed, broke: failure });
    });
    child.send({ fault: fault.name, store, seed, extent, keep } satisfies CampaignOrder);
  });
}
