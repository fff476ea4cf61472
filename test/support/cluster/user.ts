/** A user of the cluster: sets alarms through any replica, and has a daemon that is woken for them. */
import { readdirSync, readFileSync } from 'node:fs';
import type { ChronosClient } from '../../../src/chronos/client.ts';
import type { Daemon } from './daemon.ts';
import { PROGRAM } from './processes.ts';

/** A Neo that the router starts when it is needed, one that runs all the time, or one of the {@link Targets}. */
export const MACHINES = ['sleeping', 'resident', 'target'] as const;
export type MachineKind = (typeof MACHINES)[number];

export type ClusterUser = {
  label: string;
  machine: MachineKind;
  /** One for each replica of chronosd. */
  clients: readonly ChronosClient[];
};

/** A user whose agent is a Neo. */
export type NeoUser = ClusterUser & {
  machine: 'sleeping' | 'resident';
  token: string;
  dataDir: string;
  daemon?: Daemon;
};

/** The process of a Neo that the router has started, or `undefined` while it sleeps. */
export function neoPid({ dataDir }: NeoUser): number | undefined {
  try {
    const [pidFile] = readdirSync(dataDir).filter((name) => name.endsWith('.pid'));
    const pid = pidFile ? Number(readFileSync(`${dataDir}/${pidFile}`, 'utf8').trim()) : Number.NaN;
    if (!Number.isInteger(pid) || pid <= 1) return undefined;
    // The pid may have been reused: this ends only a process that runs the Neo of the test.
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return command.includes(PROGRAM) && command.includes('neo') ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** `kill -9` of a Neo that the router has started; false when it was asleep. */
export function killNeo(user: NeoUser): boolean {
  const pid = neoPid(user);
  if (pid === undefined) return false;
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
