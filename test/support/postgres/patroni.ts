/**
 * Three PostgreSQL servers under Patroni with one etcd, from the distribution's packages, each on its own machine (a
 * network namespace). Clients use a URI with three hosts, or HAProxy.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Engine } from '../cluster/engine.ts';
import { type Net, NetSpaces, noNetSpaces } from '../cluster/net-spaces.ts';
import { pause } from '../cluster/processes.ts';
import { reservePort } from '../ports.ts';
import { needs } from '../tools.ts';
import { findBinaries, makeFolder } from './binaries.ts';

const NODES = 3;
const DATABASE = 'reveille';
const PASSWORD = 'x';
const POSTGRES_PORT = 5432;
const REST_PORT = 8008;
/** Patroni's own setting: seconds without news of a leader until another may lead. This is its minimum. */
export const TTL_SECONDS = 20;
const START_LIMIT_MS = 90_000;

/** Why Patroni is not available here, and the remedy; or nothing. */
export function noPatroni(): string | undefined {
  const missing = needs(['patroni', 'iproute2'], false);
  if (missing !== false) return missing;
  const account = readFileSync('/etc/passwd', 'utf8').includes('\npostgres:');
  return account ? noNetSpaces() : 'there is no account "postgres"';
}

/** Every process below one, itself included. */
function familyOf(pid: number): number[] {
  try {
    const below = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean);
    return [pid, ...below.flatMap((child) => familyOf(Number(child)))];
  } catch {
    return [];
  }
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

export class PatroniCluster implements Engine {
  readonly takesTriggers = true;
  readonly #folder: string;
  readonly #spaces: NetSpaces;
  readonly #account: { uid: number; gid: number };
  readonly #patronis: (ChildProcess | undefined)[] = [];
  readonly #others: ChildProcess[] = [];
  uri = '';

  private constructor(folder: string, spaces: NetSpaces, account: { uid: number; gid: number }) {
    this.#folder = folder;
    this.#spaces = spaces;
    this.#account = account;
  }

  /** @param through whether chronosd gets HAProxy's address or those of all three */
  static async start(through: 'hosts' | 'haproxy'): Promise<PatroniCluster> {
    const { account } = await findBinaries();
    const folder = makeFolder('reveille-patroni-', account);
    const cluster = new PatroniCluster(folder, new NetSpaces(NODES), account!);
    try {
      await cluster.#open(through);
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  async #open(through: 'hosts' | 'haproxy'): Promise<void> {
    const home = this.#spaces.gateway('cluster');
    const [client, peer] = [`http://${home}:2379`, `http://${home}:2380`];
    this.#others.push(
      this.#run('etcd', 'etcd', [
        ...['--name', 'e', '--data-dir', join(this.#folder, 'etcd'), '--enable-v2=true'],
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `e=${peer}`],
      ]),
    );
    const bin = execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();
    for (let n = 0; n < NODES; n++) writeFileSync(join(this.#folder, `${n}.yml`), this.#configuration(n, home, bin));
    await this.#until('etcd answers', async () => (await fetch(`${client}/health`)).ok);
    this.#startNode(0);
    await this.#until('there is a leader', async () => (await this.leader()) === 0);
    for (let n = 1; n < NODES; n++) this.#startNode(n);
    await this.whole();
    await this.#query(await this.#leaderUri('postgres'), `CREATE DATABASE ${DATABASE}`);
    const hosts = Array.from({ length: NODES }, (_, n) => `${this.#spaces.address(n, 'clients')}:${POSTGRES_PORT}`);
    this.uri = `postgres://postgres:${PASSWORD}@${hosts.join(',')}/${DATABASE}?target_session_attrs=read-write`;
    if (through === 'haproxy') this.uri = await this.#startProxy();
  }

  #configuration(n: number, etcd: string, bin: string): string {
    const address = this.#spaces.address(n, 'cluster');
    return `
scope: reveille
name: node${n}
restapi: {listen: '0.0.0.0:${REST_PORT}', connect_address: '${address}:${REST_PORT}'}
etcd: {host: '${etcd}:2379'}
bootstrap:
  dcs:
    ttl: ${TTL_SECONDS}
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: true
    postgresql: {use_pg_rewind: true, parameters: {max_connections: 100, wal_log_hints: 'on', shared_buffers: 16MB}}
  initdb: [{encoding: UTF8}, data-checksums]
postgresql:
  listen: '0.0.0.0:${POSTGRES_PORT}'
  connect_address: '${address}:${POSTGRES_PORT}'
  data_dir: ${join(this.#folder, `data${n}`)}
  bin_dir: ${bin}
  pg_hba: ['host all all 0.0.0.0/0 trust', 'local all all trust', 'host replication all 0.0.0.0/0 trust']
  parameters: {unix_socket_directories: ''}
  authentication:
    superuser: {username: postgres, password: ${PASSWORD}}
    replication: {username: replicator, password: ${PASSWORD}}
    rewind: {username: rewind, password: ${PASSWORD}}
`;
  }

  async #startProxy(): Promise<string> {
    const port = await reservePort();
    const servers = Array.from({ length: NODES }, (_, n) => {
      const address = this.#spaces.address(n, 'clients');
      return `  server node${n} ${address}:${POSTGRES_PORT} check port ${REST_PORT}`;
    });
    const file = join(this.#folder, 'haproxy.cfg');
    writeFileSync(
      file,
      `global\n  maxconn 500\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 30m\n  timeout server 30m\n  timeout check 1s
listen postgres\n  bind 127.0.0.1:${port}\n  option httpchk GET /primary\n  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions\n${servers.join('\n')}\n`,
    );
    this.#others.push(this.#run('haproxy', 'haproxy', ['-db', '-f', file]));
    return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${DATABASE}`;
  }

  #run(name: string, program: string, args: string[], space?: string): ChildProcess {
    const log = openSync(join(this.#folder, `${name}.log`), 'a');
    const { uid, gid } = this.#account;
    const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', program, ...args];
    const whole = space === undefined ? as : ['ip', 'netns', 'exec', space, ...as];
    return spawn(whole[0]!, whole.slice(1), {
      cwd: this.#folder,
      stdio: ['ignore', log, log],
      env: { PATH: process.env.PATH, HOME: this.#folder, LC_ALL: 'C.UTF-8' },
    });
  }

  #startNode(n: number): void {
    this.#patronis[n] = this.#run(`node${n}`, 'patroni', [join(this.#folder, `${n}.yml`)], this.#spaces.name(n));
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + START_LIMIT_MS;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > end) throw new Error(`timeout with Patroni while waiting: ${what}`);
      await pause(100);
    }
  }

  async #says(n: number, path: string): Promise<{ status: number; body: { role?: string; sync_standby?: boolean } }> {
    const url = `http://${this.#spaces.address(n, 'clients')}:${REST_PORT}${path}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(1000) });
    return { status: answer.status, body: (await answer.json()) as { role?: string } };
  }

  /** The leading node, according to the reachable nodes. */
  leader(): Promise<number | undefined> {
    return this.leaderBut(undefined);
  }

  /** A node that leads and is not this one. */
  async leaderBut(other: number | undefined): Promise<number | undefined> {
    for (let n = 0; n < NODES; n++) {
      if (n === other) continue;
      const reported = await this.#says(n, '/primary').catch(() => undefined);
      if (reported?.status === 200) return n;
    }
    return undefined;
  }

  /** Resolves when there is a leader, two followers, and one of them is a synchronous one. */
  whole(): Promise<void> {
    return this.#until('all nodes are healthy', async () => {
      if ((await this.leader()) === undefined) return false;
      const all = await Promise.all(Array.from({ length: NODES }, (_, n) => this.#says(n, '/health')));
      const inStep = await Promise.all(Array.from({ length: NODES }, (_, n) => this.#says(n, '/synchronous')));
      return all.every(({ status }) => status === 200) && inStep.some(({ status }) => status === 200);
    });
  }

  async #leaderUri(database: string): Promise<string> {
    const n = await this.leader();
    if (n === undefined) throw new Error('there is no leader');
    return `postgres://postgres:${PASSWORD}@${this.#spaces.address(n, 'clients')}:${POSTGRES_PORT}/${database}`;
  }

  async readUri(): Promise<string> {
    await this.#until('somebody leads', async () => (await this.leader()) !== undefined);
    return this.#leaderUri(DATABASE);
  }

  async #query(uri: string, sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: uri });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  }

  /** Patroni and PostgreSQL of a node. */
  #processesOf(n: number): number[] {
    const patroni = this.#patronis[n]?.pid;
    let postmaster: number | undefined;
    try {
      postmaster = Number(readFileSync(join(this.#folder, `data${n}`, 'postmaster.pid'), 'utf8').split('\n')[0]);
    } catch {
      // It does not run.
    }
    return [...new Set([patroni, postmaster].filter((pid) => pid !== undefined).flatMap(familyOf))];
  }

  /** Kills every process of a node with `kill -9`; resolves when they have ended. {@link revive} starts it again. */
  async kill(n: number): Promise<void> {
    const patroni = this.#patronis[n];
    const ended =
      patroni && patroni.exitCode === null && patroni.signalCode === null ? once(patroni, 'exit') : undefined;
    signal(this.#processesOf(n), 'SIGKILL');
    await ended;
  }

  revive(n: number): void {
    this.#startNode(n);
  }

  /** Stops every process of a node (SIGSTOP); returns a function that continues them. */
  freeze(n: number): () => void {
    const pids = this.#processesOf(n);
    signal(pids, 'SIGSTOP');
    return () => signal(pids, 'SIGCONT');
  }

  /** Disconnects a node; returns a function that connects it again. */
  cut(n: number, nets: readonly Net[]): () => void {
    this.#spaces.plug(n, nets, false);
    return () => this.#spaces.plug(n, nets, true);
  }

  async close(): Promise<void> {
    for (let n = 0; n < NODES; n++) {
      signal(this.#processesOf(n), 'SIGCONT');
      await this.kill(n);
    }
    for (const child of this.#others) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
    this.#spaces.close();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
