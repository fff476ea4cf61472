/** Starting a campaign in a process of its own and waiting for what comes of it. */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { CampaignOrder } from './campaign-process.ts';
import type { Job } from './options.ts';
import type { CampaignOutcome } from './report.ts';

/** Told to end, a campaign still ends its house, reads what is left of it and judges. */
const ENDING_MS = 60_000;

/** @param signal asks the campaign to end, in order, as soon as it can */
export function runApart(
  { fault, store, extent }: Job,
  { seed, keep, signal }: { seed: number; keep: boolean; signal: AbortSignal },
): Promise<CampaignOutcome> {
  // In a process group of its own: Ctrl-C is for the one who decides, and what must be ended by force ends with all it
  // has started.
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
      const broke = `its process ended with ${code ?? killedBy} before it could say what came of it`;
      resolve(outcome ?? { fault: fault.name, title: fault.title, store, seed, broke });
    });
    child.send({ fault: fault.name, store, seed, extent, keep } satisfies CampaignOrder);
  });
}
