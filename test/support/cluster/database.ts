/** The PostgreSQL of a cluster: one server, or a primary with its synchronous standby. */

import { reservePort } from '../ports.ts';
import { type PostgresServer, startPostgres } from '../postgres/server.ts';
import { promote, startStandby } from '../postgres/standby.ts';
import type { Links } from './links.ts';
import { pause } from './processes.ts';
import type { SmallDisk } from './small-disk.ts';

export type DatabasePlan = {
  links: Links;
  /** Keeps a synchronous standby that can take over. */
  standby: boolean;
  /** Its data are stored there instead of in a temporary folder. */
  disk: SmallDisk | undefined;
};

/** Small settings, so that it fits a small disk and soon fills it. */
const SMALL = { min_wal_size: '2MB', max_wal_size: '4MB', shared_buffers: '4MB', max_connections: '60' };

export class HouseDatabase {
  readonly #name: string;
  /** The addresses for chronosd: each server behind its link. */
  readonly uri: string;
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;
  /** The place of the lost primary. */
  #vacantPort: number | undefined;

  private constructor(primary: PostgresServer, standby: PostgresServer | undefined, name: string, uri: string) {
    this.#primary = primary;
    this.#standby = standby;
    this.#name = name;
    this.uri = uri;
  }

  static async open({ links, standby: wanted, disk }: DatabasePlan): Promise<HouseDatabase> {
    const place = disk ? { parent: disk.folder, initdb: ['--wal-segsize=1'] } : {};
    const primary = await startPostgres(disk ? SMALL : {}, place);
    try {
      const name = await primary.createDatabase();
      const standbyPort = wanted ? await reservePort() : undefined;
      const standby =
        standbyPort === undefined ? undefined : await startStandby(primary, { synchronous: true, port: standbyPort });
      const hosts: string[] = [];
      for (const { port } of [primary, standby ?? []].flat())
        hosts.push(`127.0.0.1:${await links.lead('database', port)}`);
      const uri = primary.uri(name).replace(/127\.0\.0\.1:\d+/, hosts.join(','));
      return new HouseDatabase(primary, standby, name, standby ? `${uri}?target_session_attrs=read-write` : uri);
    } catch (error) {
      await primary.remove();
      throw error;
    }
  }

  /** The address of the database without a link in between. */
  get directUri(): string {
    return this.#primary.uri(this.#name);
  }

  get running(): boolean {
    return this.#primary.running;
  }

  start(): Promise<void> {
    return this.#primary.start();
  }

  /** Kills PostgreSQL without a shutdown, and starts it again after a delay. */
  async interrupt(forMs: number): Promise<void> {
    await this.#primary.stop('immediate');
    await pause(forMs);
    await this.#primary.start();
  }

  /**
   * Kills the primary and removes its disk (`kill -9`); promotes the standby after a delay.
   *
   * @returns when the standby accepted writes; epoch milliseconds
   */
  async failOver(afterMs: number): Promise<number> {
    const lost = this.#primary;
    const promoted = this.#standby!;
    this.#standby = undefined;
    await lost.kill();
    await pause(afterMs);
    await promote(promoted);
    this.#primary = promoted;
    // A commit waits for a synchronous standby; the new primary has none yet.
    await promoted.run('ALTER SYSTEM RESET synchronous_standby_names');
    await promoted.run('SELECT pg_reload_conf()');
    const promotedAt = Date.now();
    await lost.remove();
    this.#vacantPort = lost.port;
    return promotedAt;
  }

  /** Starts a new standby in the place of the lost primary. */
  async addStandby(): Promise<void> {
    this.#standby = await startStandby(this.#primary, { synchronous: true, port: this.#vacantPort! });
  }

  async close(): Promise<void> {
    await this.#standby?.remove();
    await this.#primary.remove();
  }
}
