/**
 * A test's own PostgreSQL server: on a free port of 127.0.0.1, its data in a temporary folder. Both are removed with
 * the test process after any kind of end.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { eventually } from '../eventually.ts';
import { reservePort } from '../ports.ts';
import { type Binaries, findBinaries, makeFolder, SHARED } from './binaries.ts';

const USER = 'reveille';
const PASSWORD = 'an-embedded-password';

/** How a server is stopped: `fast` like an operator, `immediate` like a power failure. */
export type StopMode = 'fast' | 'immediate';
const SIGNAL: Record<StopMode, NodeJS.Signals> = { fast: 'SIGINT', immediate: 'SIGQUIT' };

/**
 * Waits until its input ends, which happens when the test process has ended; then stops the server and removes its
 * folder.
 */
const GUARDIAN = `
  cat > /dev/null
  pid=$(head -n 1 "$0/data/postmaster.pid" 2> /dev/null)
  if [ -n "$pid" ]; then
    kill -QUIT "$pid" 2> /dev/null
    while kill -0 "$pid" 2> /dev/null; do sleep 0.05; done
  fi
  rm -rf "$0"`;

function guard(folder: string): ChildProcess {
  const guardian = spawn('/bin/sh', ['-c', GUARDIAN, folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guardian.unref();
  (guardian.stdin as unknown as { unref(): void }).unref();
  return guardian;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Whether a process has released its resources, with or without being reaped by its parent. */
function hasEnded(pid: number): boolean {
  try {
    // The state follows the name, which may have any content and ends with the last parenthesis.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.startsWith('Z');
  } catch {
    return true;
  }
}

/** Names and values of settings as lines of postgresql.conf. */
export function configurationLines(settings: Record<string, string>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join('');
}

export class PostgresServer {
  readonly port: number;
  /** The folder of `data`, the cluster. */
  readonly folder: string;
  readonly #binaries: Binaries;
  readonly #guardian: ChildProcess;
  #process: ChildProcess | undefined;
  #said = '';
  #databases = 0;

  /** Uses a folder with a cluster in it; {@link startPostgres} and `addStandby` make one. */
  constructor(folder: string, port: number, binaries: Binaries) {
    this.folder = folder;
    this.port = port;
    this.#binaries = binaries;
    this.#guardian = guard(folder);
  }

  get running(): boolean {
    const server = this.#process;
    return server !== undefined && server.exitCode === null && server.signalCode === null;
  }

  get dataFolder(): string {
    return join(this.folder, 'data');
  }

  /** The address of one of its databases, for the superuser unless another user is named. */
  uri(database = 'postgres', user = USER, password = PASSWORD): string {
    return `postgres://${user}:${password}@127.0.0.1:${this.port}/${database}`;
  }

  /** Adds lines to its configuration; they apply from the next start. */
  configure(settings: Record<string, string>): void {
    appendFileSync(join(this.dataFolder, 'postgresql.conf'), configurationLines(settings));
  }

  /** Resolves when connections are accepted. */
  async start(): Promise<void> {
    const server = spawn(this.#binaries.postgres, ['-D', this.dataFolder], {
      ...this.#binaries.account,
      cwd: this.folder,
      env: { ...process.env, LC_MESSAGES: 'C' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = server;
    this.#said = '';
    await new Promise<void>((resolve, reject) => {
      server.stderr.setEncoding('utf8').on('data', (text: string) => {
        this.#said = (this.#said + text).slice(-20_000);
        if (/ready to accept (read-only )?connections/.test(this.#said)) resolve();
      });
      server.once('error', reject);
      server.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${this.#said}`)));
    });
  }

  /** Resolves when the server and all of its processes have ended. */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    const server = this.#process;
    if (!server) return;
    this.#process = undefined;
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(SIGNAL[mode]);
    await ended;
  }

  /**
   * Kills the server and all of its child processes with `kill -9`, like the loss of its machine; resolves when all
   * have ended.
   */
  async kill(): Promise<void> {
    const server = this.#process;
    if (!server || !this.running) return;
    this.#process = undefined;
    const ended = once(server, 'exit');
    // While it is stopped, it starts no other process.
    server.kill('SIGSTOP');
    const listed = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim().split(/\s+/);
    const children = listed.map(Number).filter((pid) => pid > 1);
    server.kill('SIGKILL');
    for (const child of children) killIfThere(child);
    await ended;
    // A process that still has its shared memory would prevent the start of the next server.
    await eventually('the processes of PostgreSQL have ended', () => children.every(hasEnded));
  }

  /** Stops it permanently and removes its data. */
  async remove(): Promise<void> {
    await this.stop('immediate');
    rmSync(this.folder, { recursive: true, force: true });
    this.#guardian.stdin?.end();
  }

  /** The end of the server's log. */
  get said(): string {
    return this.#said;
  }

  /** Runs a statement on a connection of its own. */
  async run(sql: string, database = 'postgres'): Promise<pg.QueryResult> {
    const client = new pg.Client({ connectionString: this.uri(database) });
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  /**
   * Makes a new database.
   *
   * @param clauses of `CREATE DATABASE` after the name
   * @returns its name
   */
  async createDatabase(clauses = ''): Promise<string> {
    this.#databases++;
    const name = `test_${process.pid}_${this.#databases}`;
    await this.run(`CREATE DATABASE ${name} ${clauses}`);
    return name;
  }

  async dropDatabase(name: string): Promise<void> {
    await this.run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  }
}

export type PostgresOptions = {
  /** The parent of its folder; by default beside the shared cluster of a run, or in the temporary folder. */
  parent?: string;
  /** Additional arguments of `initdb`. */
  initdb?: readonly string[];
  /** Programs other than npm's. */
  programs?: Pick<Binaries, 'initdb' | 'postgres'>;
};

/** A copy that keeps the owners of files; the target is complete or absent. */
async function copyCluster(from: string, to: string): Promise<void> {
  const begun = `${to}.${process.pid}`;
  await promisify(execFile)('cp', ['-Rp', from, begun]);
  renameSync(begun, to);
}

async function makeCluster(
  { initdb, account }: Binaries,
  folder: string,
  dataFolder: string,
  more: readonly string[],
  shared: string | undefined,
): Promise<void> {
  if (shared !== undefined && existsSync(shared)) return copyCluster(shared, dataFolder);
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, PASSWORD, { mode: 0o600 });
  if (account) chownSync(passwordFile, account.uid, account.gid);
  await promisify(execFile)(
    initdb,
    [
      `--pgdata=${dataFolder}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=password',
      '--encoding=UTF8',
      '--no-locale',
      '--no-sync',
      '--no-instructions',
      ...more,
    ],
    { ...account, cwd: folder },
  );
  // Another suite may have been first; its copy stays.
  if (shared !== undefined) await copyCluster(dataFolder, shared).catch(() => undefined);
}

/** Makes and starts a server. It listens on 127.0.0.1 only and keeps acknowledged data, as a real one does. */
export async function startPostgres(
  settings: Record<string, string> = {},
  { parent, initdb = [], programs }: PostgresOptions = {},
): Promise<PostgresServer> {
  const binaries = { ...(await findBinaries()), ...programs };
  const folder = makeFolder('reveille-postgres-', binaries.account, parent);
  const port = await reservePort();
  const server = new PostgresServer(folder, port, binaries);
  const isUsual = initdb.length === 0 && programs === undefined;
  await makeCluster(binaries, folder, server.dataFolder, initdb, isUsual ? SHARED : undefined);
  server.configure({
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    ...settings,
  });
  await server.start();
  return server;
}
