/** What can be measured: something that takes jobs with a due instant and POSTs each to the sink. */
import type { Series } from '../series.ts';
import type { DataPlace } from './chronosd.ts';

export type System = {
  /** As it stands in the JSON. */
  name: string;
  /** As it stands in the tables. */
  title: string;
  /** How it is configured, and why so. */
  settings: string;
  store: 'sqlite' | 'postgres' | 'redis';
  /** A scheduler that others make, in one of its settings. */
  peer?: 'default' | 'best';
  /** How many jobs a second can be loaded, at the very least. */
  loadRate: number;

  /**
   * A fresh installation with an empty store, nothing of it running. Rejects with {@link Unavailable} when it cannot be
   * had.
   */
  install(): Promise<Installation>;
};

export type Installation = {
  /** The address of its database, where its store is PostgreSQL. */
  uri?: string;
  /** Puts jobs into the store, in bulk. Nothing may be running on it where the store is SQLite. */
  load(series: readonly Series[]): Promise<void>;
  /**
   * Starts one process; resolves when it would fire what is due.
   *
   * @param target where it POSTs; the sink's `url` unless told
   */
  start(target?: string): Promise<Running>;
  /** Stops what is running and removes the store. */
  remove(): Promise<void>;
};

/** Reveille's own, on either store. */
export type ReveilleSystem = Omit<System, 'install'> & { install(): Promise<ReveilleInstallation> };

export type ReveilleInstallation = Installation & {
  place: DataPlace;
  /**
   * Adds alarms that will not be due for a day, numbered `from` to `until - 1`; an installation is grown step by step.
   */
  addPending(from: number, until: number, onProgress: (added: number) => void): Promise<void>;
  /** What the store takes up on the disk, its log left aside; nothing may be running on it. */
  bytes(): Promise<number>;
};

export type Running = {
  pid: number;
  /** Whether it has not ended by itself. */
  alive(): boolean;
  stop(): Promise<void>;
};

/** The system cannot be measured here; the message says why. */
export class Unavailable extends Error {}
