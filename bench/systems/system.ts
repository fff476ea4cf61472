/** A system under test: it accepts jobs with a due time and POSTs each to the sink. */
import type { Series } from '../series.ts';

/** The data: a folder for SQLite, the address of a database for PostgreSQL. */
export type DataLocation = { folder: string } | { uri: string };

export type System = {
  /** Name in the JSON. */
  name: string;
  /** Name in the tables. */
  title: string;
  /** Its configuration, with the reasons. */
  settings: string;
  store: 'sqlite' | 'postgres' | 'redis';
  /** A scheduler of another project, in one of its settings. */
  peer?: 'default' | 'best';
  /** Guaranteed loading rate, jobs per second. */
  loadRate: number;

  /**
   * A fresh installation with an empty store and no running process. Rejects with {@link Unavailable} when it cannot be
   * created.
   */
  install(): Promise<Installation>;
};

export type Installation = {
  /** The address of its database, where its store is PostgreSQL. */
  uri?: string;
  /** Bulk-loads jobs into the store. With SQLite, no process may run on it. */
  load(series: readonly Series[]): Promise<void>;
  /**
   * Starts one process; resolves when it is able to fire due jobs.
   *
   * @param target where it POSTs; the sink's `url` by default
   */
  start(target?: string): Promise<Running>;
  /** Stops running processes and removes the store. */
  remove(): Promise<void>;
};

/** A system of Reveille, on either store. */
export type ReveilleSystem = Omit<System, 'install'> & { install(): Promise<ReveilleInstallation> };

export type ReveilleInstallation = Installation & {
  location: DataLocation;
  /** Adds alarms that are not due for a day, numbered `from` to `until - 1`; an installation grows step by step. */
  addPending(from: number, until: number, onProgress: (added: number) => void): Promise<void>;
  /** Size of the store on disk, without its log; no process may run on it. */
  bytes(): Promise<number>;
};

export type Running = {
  pid: number;
  /** Whether the process still runs. */
  alive(): boolean;
  stop(): Promise<void>;
};

/** The system cannot be measured here; the message says why. */
export class Unavailable extends Error {}
