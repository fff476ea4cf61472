/**
 * One campaign: an installation on one store, a load on it, one fault that strikes repeatedly, and a verdict over the
 * logs and the database.
 *
 * Every phase has a time limit, and every phase ends early on request. Unfinished work is judged as it is.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AlarmView } from '../../../src/wire/alarm.ts';
import { Cluster, type ClusterConfig } from '../../support/cluster/cluster.ts';
import { pause } from '../../support/cluster/processes.ts';
import type { ClusterUser } from '../../support/cluster/user.ts';
import { randomFrom } from '../../support/random/random.ts';
import { installPostgresAudit, installSqliteAudit } from '../checker/audit/install.ts';
import { DEFAULT_POLICY } from '../checker/history.ts';
import { openJournal, recordClient, recordReceiver } from '../checker/journal.ts';
import { ClientLog } from './client-log.ts';
import { evaluate, type StrikeRecord } from './evaluation.ts';
import { between, type Extent, type Fault } from './fault.ts';
import { Load } from './load.ts';
import { journalNeo } from './neo-journal.ts';
import type { BrokenCampaign, CampaignOutcome } from './report.ts';
import { type CampaignStore, installationConfig, missingFor } from './stores.ts';

export type CampaignPlan = {
  fault: Fault;
  store: CampaignStore;
  seed: number;
  extent: Extent;
  /** Ends the campaign early; the work done by then is judged. */
  signal?: AbortSignal;
  /** Keeps logs and data even without violations. */
  keep?: boolean;
  onStrike?: (count: number, what: string) => void;
};

const USERS = { sleeping: 1, resident: 1, target: 6 } as const;
const SERIES = ['@every 1s', '@every 3s', '* * * * *'] as const;
const PER_SECOND = 20;
/** Between two strikes. */
const CALM_MS = { shortest: 500, longest: 1500 };
/** A shorter delay counts as waiting in the queue. */
const OVERDUE_MS = 500;
/** Time after which a load without answers is abandoned. */
const UNANSWERED_MS = 10_000;

const SETTINGS = { CHRONOS_MIN_INTERVAL_SECONDS: '1', ROUTER_WAKE_TIMEOUT_MS: '15000' };

/** All clocks are this machine's, except the one that a fault moves: by an hour, forward or back. */
const CLOCK_TOLERANCE_MS = 100;
const CLOCK_JUMPS_MS = 2 * 3_600_000;

/** Runs one campaign. Never rejects: a failure of the campaign is an outcome. */
export async function runCampaign(plan: CampaignPlan): Promise<CampaignOutcome> {
  const { fault, store, seed } = plan;
  const { name, title } = fault;
  const skipped = missingFor(store) ?? fault.missing?.();
  if (skipped !== undefined) return { fault: name, title, store, skipped };
  const folder = mkdtempSync(join(tmpdir(), `reveille-chaos-${name}-${store}-`));
  const outcome = await runPhases(plan, folder).catch((error: Error): BrokenCampaign => {
    writeFileSync(join(folder, 'broke.txt'), `${error.stack}\n${error.cause ?? ''}\n`);
    const broke = error instanceof AggregateError ? `${error.message}: ${error.errors.join('; ')}` : error.message;
    return { fault: name, title, store, seed, broke, folder };
  });
  if ('violations' in outcome && outcome.violations.length === 0 && !plan.keep) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    return outcome;
  }
  if ('violations' in outcome) writeFileSync(join(folder, 'verdict.txt'), `${outcome.violations.join('\n')}\n`);
  return { ...outcome, folder };
}

async function runPhases(plan: CampaignPlan, folder: string): Promise<CampaignOutcome> {
  const { fault, store, seed, extent, signal } = plan;
  const began = performance.now();
  const special = fault.config?.(store) ?? {};
  const clockToleranceMs = special.clocksJump && store === 'sqlite' ? CLOCK_JUMPS_MS : CLOCK_TOLERANCE_MS;
  const clientFile = join(folder, 'client.jsonl');
  const receiverFile = join(folder, 'receiver.jsonl');
  const client = openJournal(clientFile, { log: 'client', clockToleranceMs });
  const receiver = openJournal(receiverFile, { log: 'receiver', clockToleranceMs, runsTurns: true });
  const receiverLog = recordReceiver(receiver.write);
  const housePlan: ClusterConfig = {
    folder: join(folder, 'house'),
    ...installationConfig(store),
    users: USERS,
    receiver: receiverLog,
    ...special,
    settings: { ...SETTINGS, ...special.settings },
  };
  const installation = await Cluster.open(housePlan);
  const log = new ClientLog(recordClient(client.write), Date.now);
  const load = new Load({
    users: installation.users,
    log,
    random: randomFrom(seed + 1),
    perSecond: PER_SECOND,
    series: SERIES,
    ...(fault.extras && { extras: fault.extras }),
  });
  try {
    if (store === 'sqlite') installSqliteAudit(installation.sqlitePath);
    else if (installation.engine?.takesTriggers !== false) await installPostgresAudit(await installation.readFrom());
    await load.start();
    const strikes = await strikeAgainAndAgain(plan, installation, randomFrom(seed));
    if (strikes.length === 0) throw new Error('the time was up before the first strike');
    fault.finish?.(installation);
    const wholeSince = installation.now();
    await load.stop(UNANSWERED_MS);
    await untilNoneActive(installation, () => true, extent.drainMs, signal);

    const readAt = installation.now();
    await installation.stop();
    const neoViolations: string[] = [];
    for (const user of installation.neos) neoViolations.push(...(await journalNeo(installation, user, receiverLog)));
    client.close();
    receiver.close();
    return await evaluate({
      fault,
      store,
      installation,
      seed,
      folder,
      files: { client: clientFile, receiver: receiverFile },
      moment: { readAt, wholeSince },
      policy: DEFAULT_POLICY,
      load,
      lostAnswers: log.lost,
      strikes,
      seconds: (performance.now() - began) / 1000,
      besides: [...installation.targets.early, ...neoViolations],
    });
  } finally {
    load.abandon();
    await installation.close();
  }
}

async function strikeAgainAndAgain(
  { fault, extent, signal, onStrike }: CampaignPlan,
  installation: Cluster,
  random: () => number,
): Promise<StrikeRecord[]> {
  const strikes: StrikeRecord[] = [];
  const end = Date.now() + extent.strikingMs;
  for (let round = 0; round < extent.strikes && Date.now() < end && !signal?.aborted; round++) {
    await pause(between(random, CALM_MS.shortest, CALM_MS.longest));
    const beganAt = Date.now();
    const strike = await fault.strike({ installation, random, round });
    strikes.push({ ...strike, beganAt });
    onStrike?.(strikes.length, strike.what);
    await untilNoneActive(installation, isOverdue, extent.recoveringMs, signal);
  }
  return strikes;
}

/** Whether an alarm is later than queueing explains. */
const isOverdue = ({ next_fire_at }: AlarmView, now: number) => now - Date.parse(next_fire_at ?? '') > OVERDUE_MS;

/**
 * Waits until no user has an active alarm of a kind, or until the limit. An alarm may wait on the retry ladder, for
 * minutes after several faults in a row. The verdict decides whether that is correct.
 */
async function untilNoneActive(
  installation: Cluster,
  kind: (alarm: AlarmView, now: number) => boolean,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const end = Date.now() + limitMs;
  const hasNone = async ({ clients }: ClusterUser) => {
    for (const client of clients) {
      const page = await client.listAlarms({ status: 'active', limit: 500 }).catch(() => undefined);
      if (page) return !page.alarms.some((alarm) => kind(alarm, installation.now()));
    }
    return false;
  };
  while (Date.now() < end && !signal?.aborted) {
    if ((await Promise.all(installation.users.map(hasNone))).every(Boolean)) return;
    await pause(250);
  }
}
