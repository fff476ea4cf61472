/** Ends the processes of machines whose router has died and was not replaced. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { Agent } from '../../kit/http/dispatchers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import { FileInUse, likelyOwner, ownFile } from '../../kit/sqlite/file-owner.ts';
import { Registry } from '../machines/registry.ts';
import { DaemonConnections } from '../providers/daemon-connections.ts';
import { createHealthProbe, type HealthProbe } from '../providers/health.ts';
import { ProcessGroup } from '../providers/process-group.ts';
import { ProcessRecords } from '../providers/process-records.ts';
import { findByVariable, isRunning, runningLeader } from '../providers/process-table.ts';

type SettleOptions = {
  dataDir: string;
  /** How long another router may take to start, in milliseconds. */
  graceMs: number;
  clock: Clock;
  log: Logger;
  /** A machine in the middle of a turn is checked again after this; by default 10 seconds. */
  busyMs?: number;
  /** A machine that reports busy for longer than this is ended anyway; by default an hour. */
  longestBusyMs?: number;
};

type Orphan = {
  userId: string;
  pid: number;
  birth: string;
  url: string;
  healthPath: string | undefined;
  /** Whether the specification allows a foreign listener, so that the owner of the port says nothing. */
  foreignListener: boolean;
};

const ROUTER_POLL_MS = 1000;
const LONGEST_BUSY_MS = 3_600_000;
/** Between SIGTERM and SIGKILL. */
const TERM_MS = 10_000;

/** Whether a router locks the file; then the machines are its own. */
function isOwned(path: string): boolean {
  // The pid of the dead router may belong to another program by now, and a new router may not have stored its own yet.
  try {
    ownFile(path)();
    return false;
  } catch (thrown) {
    if (thrown instanceof FileInUse) return true;
    throw thrown;
  }
}

async function orphansOf(dataDir: string, clock: Clock): Promise<Orphan[]> {
  const registry = new Registry(dataDir, clock);
  try {
    const records = new ProcessRecords(registry.file, registry.commits).all();
    const marked = records.length === 0 ? new Map() : findByVariable(SPAWN_ID_VARIABLE);
    return records.flatMap(({ userId, spawnId, born, port }) => {
      const leader = runningLeader(born, marked.get(spawnId) ?? []);
      const machine = registry.get(userId);
      const spec = machine?.provider === 'process' ? machine.spec : undefined;
      const { health_path: healthPath, foreign_listener: foreignListener = false } = spec ?? {};
      return leader ? [{ userId, ...leader, url: `http://127.0.0.1:${port}`, healthPath, foreignListener }] : [];
    });
  } finally {
    await registry.close();
  }
}

async function isBusy({ url, healthPath, pid, foreignListener }: Orphan, probe: HealthProbe): Promise<boolean> {
  const connections = foreignListener ? undefined : new DaemonConnections({ leader: pid, connections: 1 });
  try {
    const health = await probe.check({ url, connections }, healthPath);
    return health.healthy && (health.busy || health.queued > 0);
  } finally {
    connections?.close();
  }
}

/** Resolves with whether a router started in time. */
async function routerComes(path: string, { graceMs, clock }: SettleOptions): Promise<boolean> {
  const until = clock.monotonic() + graceMs;
  for (;;) {
    if (!existsSync(path) || (likelyOwner(path) !== undefined && isOwned(path))) return true;
    const leftMs = until - clock.monotonic();
    if (leftMs <= 0) return isOwned(path);
    await wait(clock, Math.min(leftMs, ROUTER_POLL_MS));
  }
}

/**
 * Waits for a router to adopt the machines of a dead one, and ends them when none does. A machine in the middle of a
 * turn is ended after the turn, or after an hour.
 *
 * @returns the number of ended machines
 * @throws ReveilleError when the router's records cannot be read
 */
export async function settleOrphans(options: SettleOptions): Promise<number> {
  const { dataDir, clock, log, busyMs = 10_000, longestBusyMs = LONGEST_BUSY_MS } = options;
  const path = join(dataDir, 'router.db');
  if (await routerComes(path, options)) return 0;
  let orphans = await orphansOf(dataDir, clock);
  const agent = new Agent({ connections: 1 });
  const probe = createHealthProbe(agent, clock, 1000);
  const busyUntil = clock.monotonic() + longestBusyMs;
  let ended = 0;
  try {
    while (orphans.length > 0) {
      const busy: Orphan[] = [];
      for (const orphan of orphans) {
        if (isOwned(path)) return ended;
        if (!isRunning(orphan.pid, orphan.birth)) continue;
        if (clock.monotonic() < busyUntil && (await isBusy(orphan, probe))) {
          busy.push(orphan);
          continue;
        }
        log.info({ user_id: orphan.userId, pid: orphan.pid }, 'ending a machine whose router has died');
        await ProcessGroup.adopted(orphan, clock).end(TERM_MS);
        ended++;
      }
      orphans = busy;
      if (busy.length > 0) await wait(clock, busyMs);
    }
    return ended;
  } finally {
    await agent.destroy();
  }
}
