/** The machine on which the figures are measured. */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';

export type Machine = {
  cpu: string;
  cores: number;
  memoryGigabytes: number;
  os: string;
  /** Appends of 4 KiB, each followed by `fdatasync`, per second, in the folder of the databases. */
  syncsPerSecond: number;
};

const BLOCK = Buffer.alloc(4096, 1);
const SYNC_MS = 2_000;

/** Durable appends per second of one writer. */
export function syncsPerSecond(folder: string): number {
  const path = join(folder, 'sync-probe');
  const file = openSync(path, 'w');
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() - startedAt < SYNC_MS) {
    writeSync(file, BLOCK);
    fdatasyncSync(file);
    count++;
  }
  closeSync(file);
  rmSync(path);
  return (1000 * count) / (performance.now() - startedAt);
}

export function describeMachine(folder: string): Machine {
  const cpus = os.cpus();
  return {
    cpu: cpus[0]?.model.trim() ?? 'unknown',
    cores: cpus.length,
    memoryGigabytes: os.totalmem() / 1e9,
    // The rest of the release string names the builder of the kernel.
    os: `${os.type()} ${os.release().split('-')[0]}`,
    syncsPerSecond: syncsPerSecond(folder),
  };
}
