/** All results of one or several runs, in the form of `bench/results.json`. */
import type { Machine } from './machine.ts';
import type { Plan, WorkloadName } from './plan.ts';
import type { BootRow } from './workloads/boot.ts';
import type { BurstResult } from './workloads/burst.ts';
import type { ChronometricResult } from './workloads/chronometric.ts';
import type { ConditionsResult } from './workloads/conditions.ts';
import type { ConsolesResult } from './workloads/consoles.ts';
import type { CreatesRow } from './workloads/creates.ts';
import type { LastingResult } from './workloads/endurance.ts';
import type { Footprint } from './workloads/footprint.ts';
import type { GrowthRow } from './workloads/growth.ts';
import type { LatenessRow } from './workloads/lateness.ts';
import type { MemoryRow } from './workloads/memory.ts';
import type { ProxyResult } from './workloads/proxy.ts';
import type { QueueRow } from './workloads/queue.ts';
import type { ReceiptsRow } from './workloads/receipts.ts';
import type { ReplicasRow } from './workloads/replicas.ts';
import type { ToolsRow } from './workloads/tools.ts';

export type Results = {
  lateness?: LatenessRow[];
  burst?: BurstResult;
  creates?: CreatesRow[];
  growth?: GrowthRow[];
  replicas?: ReplicasRow[];
  queue?: QueueRow[];
  endurance?: LastingResult;
  resident?: LastingResult;
  footprint?: Footprint;
  tools?: ToolsRow[];
  boot?: BootRow[];
  memory?: MemoryRow[];
  receipts?: ReceiptsRow[];
  proxy?: ProxyResult;
  chronometric?: ChronometricResult;
  consoles?: ConsolesResult;
  conditions?: ConditionsResult;
};

/** When, with which code and on which processor a workload was measured. */
export type Measured = {
  /** RFC 3339. */
  at: string;
  /** Commit of the checkout, with `+` after it when files were changed; `unknown` without Git. */
  commit: string;
  cpu: string;
};

export type Report = {
  schema: 1;
  machine: Machine;
  /** Name to version, of every program involved. */
  versions: Record<string, string>;
  /** PostgreSQL settings that affect the results, by name; empty when nothing was measured on it. */
  postgres: Record<string, string>;
  /** Configuration of each system. */
  systems: { name: string; title: string; settings: string }[];
  /** Systems that could not be measured, with the reason. */
  unavailable: { title: string; reason: string }[];
  plan: Plan;
  /** Per workload, since workloads can be repeated one by one. */
  measured: Partial<Record<WorkloadName, Measured>>;
  results: Results;
};
