/** What survives every process: the one database of a world, behind the store port. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AlarmState, Attempt } from '../../../src/chronos/alarm/alarm.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import type { Clock } from '../../../src/kit/clock/clock.ts';
import type { Logger } from '../../../src/kit/log/log.ts';
import { makeModelStore } from '../../contract/store/model-store.ts';
import { installSqliteAudit } from '../checker/audit/install.ts';
import type { AuditEntry } from '../checker/history.ts';
import { readSqlite } from '../checker/read-sqlite.ts';
import { auditModel } from './audit.ts';
import type { Engine } from './scenario.ts';

/** Everything that is kept about alarms. */
export type Contents = { states: AlarmState[]; attempts: Attempt[] };

export type Durable = {
  /** The present store; another one after {@link reopen}. */
  readonly store: AlarmStore;
  /** Every change that was made to it, in order. */
  audit(): readonly AuditEntry[];
  /** The process that owned the database is gone, another one opens it. */
  reopen(): Promise<void>;
  close(): Promise<void>;
};

/** Memory that looks like a disk, where there is such a thing: a world's database is not worth a disk's time. */
const MEMORY_DISK = '/dev/shm';

const EVERYTHING = 1_000_000;

export type DurableOptions = {
  engine: Engine;
  owners: readonly string[];
  /** The database's time, for its audit. */
  now: () => number;
  clock: Clock;
  log: Logger;
};

export async function openDurable({ engine, owners, now, clock, log }: DurableOptions): Promise<Durable> {
  if (engine === 'model') {
    const audited = auditModel(makeModelStore(), { owners, now });
    return { ...audited, reopen: async () => {}, close: async () => {} };
  }
  const folder = mkdtempSync(join(existsSync(MEMORY_DISK) ? MEMORY_DISK : tmpdir(), 'reveille-simulation-'));
  const path = join(folder, 'chronos.db');
  const open = () => openSqliteStore({ path, clock, log });
  let store = open();
  installSqliteAudit(path);
  return {
    get store() {
      return store;
    },
    audit: () => readSqlite(path).audit!,
    async reopen() {
      await store.close();
      store = open();
    },
    async close() {
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Reads the alarms of some owners, and what they owe. */
export async function readStates(store: AlarmStore, owners: readonly string[]): Promise<AlarmState[]> {
  return (await Promise.all(owners.map((owner) => store.list(owner, { limit: EVERYTHING })))).flat();
}

/** Reads all that a store keeps of some owners. */
export async function readContents(store: AlarmStore, owners: readonly string[]): Promise<Contents> {
  const states = await readStates(store, owners);
  const attempts = await Promise.all(
    states.map(({ alarm }) => store.attempts(alarm.owner, alarm.id, { limit: EVERYTHING })),
  );
  return { states, attempts: attempts.flat() };
}
