/**
 * One campaign in its own process, so that no campaign delays another. The first message contains its task; the answer
 * is the outcome. It ends early, in order, on SIGTERM and when its parent process has ended.
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
