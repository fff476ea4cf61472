/** After a campaign: reads and judges the three logs, and computes the figures. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../../support/cluster/cluster.ts';
import { isAcceptance } from '../checker/evidence.ts';
import type { DatabaseLog, Policy, ReceiverLog } from '../checker/history.ts';
import { judge } from '../checker/judge.ts';
import type { ReadMoment } from '../checker/read-database.ts';
import { readDatabase } from '../checker/read-database.ts';
import { readClientLogs, readReceiverLogs } from '../checker/read-log.ts';
import type { Fault, Strike } from './fault.ts';
import type { Load } from './load.ts';
import { MACHINE_CLOCK, recoveryMs, type StoreClock, type Wait, waitsOf } from './recovery.ts';
import { type CampaignReport, latenessOf } from './report.ts';
import { standstillOf } from './standstill.ts';
import type { CampaignStore } from './stores.ts';

/** Both times by the machine's clock. */
export type StrikeRecord = Strike & { beganAt: number };

export type CampaignRecords = {
  fault: Fault;
  store: CampaignStore;
  installation: Cluster;
  seed: number;
  folder: string;
  files: { client: string; receiver: string };
  moment: Required<ReadMoment>;
  policy: Policy;
  load: Load;
  lostAnswers: number;
  strikes: readonly StrikeRecord[];
  seconds: number;
  /** Broken promises found earlier. */
  besides: readonly string[];
};

/** Invariants, by their numbers. */
const KEPT = 1;
const PUNCTUAL = 2;
const FENCED = 7;

/** Repeated wakes of accepted occurrences. */
function countDuplicates({ wakes }: ReceiverLog): number {
  const accepted = new Set<string>();
  let duplicates = 0;
  for (const { fireId, status } of wakes) {
    if (accepted.has(fireId)) duplicates++;
    else if (isAcceptance(status)) accepted.add(fireId);
  }
  return duplicates;
}

/** From a moment until everything due by then was accepted; the machine's clock. */
function settledMs({ wakes }: ReceiverLog, waits: readonly Wait[], since: number, clock: StoreClock): number {
  const owed = new Set(waits.filter(({ attempt, from }) => attempt === 1 && from <= since).map(({ fireId }) => fireId));
  const accepted = wakes.filter(({ fireId, status }) => owed.has(fireId) && isAcceptance(status));
  const first = [...Map.groupBy(accepted, ({ fireId }) => fireId).values()].map((all) =>
    Math.min(...all.map(({ answeredAt }) => clock.whenShown(answeredAt!))),
  );
  return Math.max(since, ...first) - since;
}

/** Occurrences that still wait for a delayed attempt of the retry ladder. */
function countWaiting({ alarms, occurrences, readAt }: DatabaseLog): number {
  const active = new Set(
    alarms.filter(({ status, kind }) => status === 'active' && kind === 'once').map(({ id }) => id),
  );
  return occurrences.filter(({ alarmId, dueAt }) => active.has(alarmId) && dueAt !== null && dueAt > readAt).length;
}

/** Lateness of first attempts, for users that the fault itself does not affect. */
function latenessIn(waits: readonly Wait[], { affects: troubles }: Fault, { users }: Cluster) {
  const affected = new Set(users.filter((user) => troubles?.(user)).map(({ label }) => label));
  const first = waits.filter(({ attempt, owner }) => attempt === 1 && !affected.has(owner));
  return latenessOf(first.map(({ from, until }) => Math.max(0, until - from)));
}

export async function evaluate(records: CampaignRecords): Promise<CampaignReport> {
  const {
    fault,
    store,
    installation,
    seed,
    folder,
    files,
    moment,
    policy,
    load,
    lostAnswers,
    strikes,
    seconds,
    besides,
  } = records;
  const { replicas } = installation.plan;
  const clock = store === 'sqlite' ? (installation.clocks[0] ?? MACHINE_CLOCK) : MACHINE_CLOCK;
  const { log: client } = readClientLogs([files.client]);
  const { log: receiver } = readReceiverLogs([files.receiver]);
  const database = await readDatabase(await installation.readFrom(), moment);
  writeFileSync(join(folder, 'database.json'), JSON.stringify(database));
  const verdict = judge({ client, receiver, database, policy });
  const brokenIn = (number: number) => verdict.findings.find((finding) => finding.number === number)!.violations.length;
  const waits = waitsOf(database, clock);
  const struck = strikes.map(({ what, beganAt, endedAt }, index) => ({
    what,
    recoveryMs: Math.round(recoveryMs(waits, endedAt, strikes[index + 1]?.beganAt)),
    standstill: standstillOf(client, receiver, beganAt, strikes[index + 1]?.beganAt ?? moment.wholeSince),
  }));
  return {
    fault: fault.name,
    title: fault.title,
    store,
    seed,
    replicas,
    seconds,
    strikes: struck,
    alarms: load.acknowledged,
    lostAnswers,
    repeatedCreates: load.repeated,
    deliveries: receiver.wakes.length,
    duplicates: countDuplicates(receiver),
    attempts: database.attempts.length,
    unknownAttempts: database.attempts.filter(({ outcome }) => outcome === 'unknown').length,
    lost: brokenIn(KEPT),
    early: brokenIn(PUNCTUAL) + installation.targets.early.length,
    unfencedWrites: brokenIn(FENCED),
    waiting: countWaiting(database),
    recoveryMs: Math.max(0, ...struck.map((strike) => strike.recoveryMs)),
    settledMs: strikes.length > 0 ? Math.round(settledMs(receiver, waits, strikes.at(-1)!.endedAt, clock)) : 0,
    lateness: latenessIn(waits, fault, installation),
    judged: verdict.findings.map(({ title, judged, unit, violations }) => ({
      invariant: title,
      cases: judged,
      unit,
      broken: violations.length,
    })),
    violations: [...verdict.violations, ...besides],
  };
}
