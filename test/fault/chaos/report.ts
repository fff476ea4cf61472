/** The outcome of one campaign: one fault, on one store. */
import type { Standstill } from './standstill.ts';
import type { CampaignStore } from './stores.ts';

export type StrikeReport = {
  what: string;
  /** From its end until nothing is overdue. */
  recoveryMs: number;
  /** From its beginning: how long no create and no fire succeeded. */
  standstill: Standstill;
};

export type Lateness = { count: number; p50: number; p99: number; max: number };

export type CampaignReport = {
  fault: string;
  title: string;
  store: CampaignStore;
  seed: number;
  /** Replicas of chronosd. */
  replicas: number;
  seconds: number;
  strikes: readonly StrikeReport[];
  /** Alarms that chronosd acknowledged, series included. */
  alarms: number;
  /** Calls whose answer was lost. */
  lostAnswers: number;
  /** Creates repeated under their key. */
  repeatedCreates: number;
  /** Wakes that reached the receiver. */
  deliveries: number;
  /** Repeated wakes of an accepted occurrence; answered, and not run again. */
  duplicates: number;
  attempts: number;
  /** Attempts with an unknown outcome. */
  unknownAttempts: number;
  lost: number;
  early: number;
  unfencedWrites: number;
  /** Alarms that still wait on the retry ladder at the end of the campaign. */
  waiting: number;
  /** The longest of all strikes. */
  recoveryMs: number;
  /** From the end of the last strike until everything due by then was accepted, retry ladder included. */
  settledMs: number;
  /** Of first attempts, for users that the fault itself does not affect. */
  lateness: Lateness;
  /** For each of the ten invariants the number of judged cases, and of violations. */
  judged: readonly { invariant: string; cases: number; unit: string; broken: number }[];
  /** Every sentence is a broken promise. */
  violations: readonly string[];
  /** Folder of the kept logs and data; only with violations. */
  folder?: string;
};

/** A campaign that could not run here. */
export type SkippedCampaign = { fault: string; title: string; store: CampaignStore; skipped: string };
/** A campaign that failed before there was anything to judge. */
export type BrokenCampaign = {
  fault: string;
  title: string;
  store: CampaignStore;
  seed: number;
  broke: string;
  /** Folder of its logs. */
  folder?: string;
};

export type CampaignOutcome = CampaignReport | SkippedCampaign | BrokenCampaign;

export function wasJudged(outcome: CampaignOutcome): outcome is CampaignReport {
  return 'violations' in outcome;
}

/** Percentiles by the nearest rank. */
export function latenessOf(samples: readonly number[]): Lateness {
  const sorted = [...samples].sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}
