/** What all workloads share: a folder, a database server, a sink, and children that do not outlive the run. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PostgresServer, startPostgres } from '../test/postgres/server.ts';
import { Child } from './children.ts';
import { Sink } from './sink/sink.ts';

export const BENCH_FOLDER = import.meta.dirname;

export class Workbench {
  readonly folder: string;
  /** Its settings are PostgreSQL's defaults, so durable; everybody works on this one server, each in a database of their own. */
  readonly postgres: PostgresServer;
  readonly sink: Sink;
  /** Where chronosd is to leave CPU profiles; nowhere unless asked for. */
  readonly profiles: string | undefined;
  readonly #children: Set<Child>;
  #folders = 0;
  #closed: Promise<void> | undefined;

  private constructor(folder: string, postgres: PostgresServer, sink: Sink, sinkChild: Child, profiles?: string) {
    this.folder = folder;
    this.postgres = postgres;
    this.sink = sink;
    this.profiles = profiles;
    this.#children = new Set([sinkChild]);
  }

  static async open(options: { profiles?: string | undefined }): Promise<Workbench> {
    const postgres = await startPostgres();
    const folder = mkdtempSync(join(tmpdir(), 'reveille-bench-'));
    const child = new Child('the sink', {
      command: [join(BENCH_FOLDER, 'sink', 'server.ts')],
      log: join(folder, 'sink.log'),
    });
    const sink = new Sink(await child.says<{ fires: number; control: number }>());
    return new Workbench(folder, postgres, sink, child, options.profiles);
  }

  /** Starts a Node process; its log is a file in the bench's folder. */
  start(name: string, command: readonly string[], env: Record<string, string> = {}): Child {
    const log = join(this.folder, `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.log`);
    const child = new Child(name, { command, env, log });
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

  /** Ends all children and removes everything. A second call gives the same promise. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.stop()));
    await this.postgres.remove();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
