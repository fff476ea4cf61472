/**
 * Shared parts of all workloads: a folder, child processes that end with the run and, on request, a database server and
 * a sink.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from '../test/support/certificates.ts';
import { type PostgresServer, startPostgres } from '../test/support/postgres/server.ts';
import { Child } from './children.ts';
import { RedisServer } from './redis.ts';
import { Sink, type SinkPorts } from './sink/sink.ts';

export const BENCH_FOLDER = import.meta.dirname;

export class Workbench {
  readonly folder: string;
  /** Folder for CPU profiles of chronosd; none by default. */
  readonly profiles: string | undefined;
  readonly #children = new Set<Child>();
  #postgres: PostgresServer | undefined;
  #sink: Sink | undefined;
  #redis: Promise<RedisServer> | undefined;
  /** Certificate that children trust besides the system's: the sink's. */
  #authority: string | undefined;
  #folders = 0;
  #closed: Promise<void> | undefined;

  private constructor(folder: string, profiles?: string) {
    this.folder = folder;
    this.profiles = profiles;
  }

  /** @param options with `servers`, PostgreSQL and the sink are started */
  static async open({ servers, profiles }: { servers: boolean; profiles?: string | undefined }): Promise<Workbench> {
    const postgres = servers ? await startPostgres() : undefined;
    const bench = new Workbench(mkdtempSync(join(tmpdir(), 'reveille-bench-')), profiles);
    if (!postgres) return bench;
    bench.#postgres = postgres;
    const child = bench.start('the sink', [
      join(BENCH_FOLDER, 'sink', 'server.ts'),
      ...(await bench.#makeCertificate()),
    ]);
    bench.#sink = new Sink(await child.says<SinkPorts>());
    return bench;
  }

  /** @returns the files of a certificate for loopback and of its key */
  async #makeCertificate(): Promise<string[]> {
    const authority = await makeAuthority(this.folder, 'authority');
    const { certificate, key } = await authority.issue();
    this.#authority = authority.file;
    return [certificate, key];
  }

  /**
   * The one Redis server of a run, started at its first use.
   *
   * @throws Unavailable if the machine has none
   */
  redis(): Promise<RedisServer> {
    this.#redis ??= RedisServer.open(this.makeFolder('redis'));
    return this.#redis;
  }

  /**
   * Its settings are PostgreSQL's defaults, so durable. All systems work on this one server, each in its own database.
   */
  get postgres(): PostgresServer {
    return this.#started(this.#postgres, 'PostgreSQL');
  }

  get sink(): Sink {
    return this.#started(this.#sink, 'the sink');
  }

  #started<T>(server: T | undefined, name: string): T {
    if (server === undefined) throw new Error(`${name} was not started: the workload is not registered as needing it`);
    return server;
  }

  /** Starts a Node process; its log is a file in the benchmark's folder. */
  start(name: string, command: readonly string[], env: Record<string, string> = {}): Child {
    const log = join(this.folder, `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.log`);
    const trusted = this.#authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: this.#authority };
    const child = new Child(name, { command, env: { ...trusted, ...env }, log });
    this.#children.add(child);
    void child.ended().then(() => this.#children.delete(child));
    return child;
  }

  /** A new, empty folder. */
  makeFolder(name: string): string {
    const folder = join(this.folder, `${name}-${++this.#folders}`);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** Ends all children and removes everything. A second call returns the same promise. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.stop()));
    await this.#postgres?.remove();
    const redis = await this.#redis?.catch(() => undefined);
    await redis?.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
