/** The durable state: the one database of a world, behind the store port. It survives every process. */
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

/** All stored data about alarms. */
export type Contents = { states: AlarmState[]; attempts: Attempt[] };

export type Durable = {
  /** The present store; another one after {@link reopen}. */
  readonly store: AlarmStore;
  /** Every change of the store, in order. */
  audit(): readonly AuditEntry[];
  /** The database's process has ended, and another one opens the database. */
  reopen(): Promise<void>;
  close(): Promise<void>;
};

/** A file system in memory, where there is one: a world's database needs no durable disk. */
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

/** Reads the alarms of some owners, and their pending occurrences. */
export async function readStates(store: AlarmStore, owners: readonly string[]): Promise<AlarmState[]> {
  return (await Promise.all(owners.map((owner) => store.list(owner, { limit: EVERYTHING })))).flat();
}

/** Reads all stored rows of some owners. */
export async function readContents(store: AlarmStore, owners: readonly string[]): Promise<Contents> {
  const states = await readStates(store, owners);
  const attempts = await Promise.all(
    states.map(({ alarm }) => store.attempts(alarm.owner, alarm.id, { limit: EVERYTHING })),
  );
  return { states, attempts: attempts.flat() };
}
