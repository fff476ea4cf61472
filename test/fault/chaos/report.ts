/** What came of one campaign: one fault, on one store. */
import type { Standstill } from './standstill.ts';
import type { CampaignStore } from './stores.ts';

export type StrikeReport = {
  what: string;
  /** From its end until nothing was overdue. */
  recoveryMs: number;
  /** From its beginning: how long creates and fires stood still. */
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
  /** Wakes that reached the receiving end. */
  deliveries: number;
  /** Wakes of an occurrence that had been accepted before; answered, and not run again. */
  duplicates: number;
  attempts: number;
  /** Attempts of which nobody knows whether they arrived. */
  unknownAttempts: number;
  lost: number;
  early: number;
  unfencedWrites: number;
  /** Alarms that still waited on the retry ladder when the campaign ended. */
  waiting: number;
  /** The longest of all strikes. */
  recoveryMs: number;
  /** From the end of the last strike until everything that was due by then had been accepted, retry ladder included. */
  settledMs: number;
  /** Of first attempts for users whom the fault does not trouble itself. */
  lateness: Lateness;
  /** For each of the ten invariants how many cases were judged, and how many of them it was broken in. */
  judged: readonly { invariant: string; cases: number; unit: string; broken: number }[];
  /** Every sentence is a broken promise. */
  violations: readonly string[];
  /** Where logs and data were kept; only with violations. */
  folder?: string;
};

/** A campaign that could not be run here. */
export type SkippedCampaign = { fault: string; title: string; store: CampaignStore; skipped: string };
/** A campaign that broke down before there was anything to judge. */
export type BrokenCampaign = {
  fault: string;
  title: string;
  store: CampaignStore;
  seed: number;
  broke: string;
  /** Where its logs were kept. */
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
