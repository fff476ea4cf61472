/** Starting a campaign in a process of its own and waiting for what comes of it. */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { CampaignOrder } from './campaign-process.ts';
import type { Job } from './options.ts';
import type { CampaignOutcome } from './report.ts';

/** @param signal asks the campaign to end, in order, as soon as it can */
export function runApart(
  { fault, store, extent }: Job,
  { seed, keep, signal }: { seed: number; keep: boolean; signal: AbortSignal },
): Promise<CampaignOutcome> {
  const child = fork(join(import.meta.dirname, 'campaign-process.ts'));
  const end = () => child.kill('SIGTERM');
  signal.addEventListener('abort', end);
  return new Promise<CampaignOutcome>((resolve) => {
    let outcome: CampaignOutcome | undefined;
    child.once('message', (message) => {
      outcome = message as CampaignOutcome;
    });
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', end);
      const broke = `its process ended with ${code ?? killedBy} before it could say what came of it`;
      resolve(outcome ?? { fault: fault.name, title: fault.title, store, seed, broke });
    });
    child.send({ fault: fault.name, store, seed, extent, keep } satisfies CampaignOrder);
  });
}
