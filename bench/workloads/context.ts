/** The arguments of a workload. */
import type { Plan } from '../plan.ts';
import type { Progress } from '../progress.ts';
import type { ReveilleSystem, System } from '../systems/system.ts';
import type { Workbench } from '../workbench.ts';

export type Context = {
  bench: Workbench;
  plan: Plan;
  progress: Progress;
  /** Reveille on each available store. */
  reveille: readonly ReveilleSystem[];
  /** Peers in their best setting, and in their default one. */
  peers: readonly System[];
  peersByDefault: readonly System[];
};

export const figure = (value: number) => value.toLocaleString('en-US');
