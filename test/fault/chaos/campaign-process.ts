/**
 * One campaign in a process of its own, so that none holds up another. Told what to do by the first message; answers
 * with the outcome. Ends early, in order, on SIGTERM and when whoever started it is gone.
 */
import { runCampaign } from './campaign.ts';
import type { Extent } from './fault.ts';
import { FAULTS } from './faults/all.ts';
import type { CampaignStore } from './stores.ts';

export type CampaignOrder = { fault: string; store: CampaignStore; seed: number; extent: Extent; keep: boolean };

const ending = new AbortController();
process.on('SIGTERM', () => ending.abort());
process.on('disconnect', () => ending.abort());
process.once('message', async ({ fault: name, ...order }: CampaignOrder) => {
  const fault = FAULTS.find((each) => each.name === name)!;
  const outcome = await runCampaign({ ...order, fault, signal: ending.signal });
  if (process.connected) process.send!(outcome, () => process.disconnect());
});
