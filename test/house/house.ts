/** A whole house as real processes: chronosd and router as children, Neo as the machines that the router starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/identity/agent.ts';
import { generateKey } from '../../src/identity/keys.ts';
import { randomSecret } from '../../src/identity/secrets.ts';
import { openEnvelope } from '../../src/wire/envelope.ts';
import { type PostgresServer, startPostgres } from '../postgres/server.ts';
import { type NeoGet, readNeo } from './neo-reader.ts';
import { freePort, PROGRAM, pause, START_LIMIT_MS, until } from './processes.ts';

/** One process of the house. The replicas of chronosd are told apart by their number. */
export type DaemonName = `chronosd-${number}` | 'router';
export type Victim = 'chronosd' | 'router' | 'neo' | 'postgres';

/** A user of the house: who sets alarms, through whichever replica, and the Neo that is woken for them. */
export type HouseUser = { label: string; clients: readonly ChronosClient[]; neoToken: string; neoData: string };

export type HousePlan = {
  users: number;
  /** Where alarms are kept. With SQLite there is one chronosd. */
  store: 'sqlite' | 'postgres';
  /** How many chronosd there are. */
  replicas: number;
};

export class House {
  readonly folder = mkdtempSync(join(tmpdir(), 'reveille-house-'));
  readonly #secrets = {
    CHRONOS_TOKEN: randomSecret(),
    CHRONOS_AGENT_AUTH_SECRET: randomSecret(),
    CHRONOS_ADMIN_TOKEN: randomSecret(),
    CHRONOS_WAKE_TOKEN: randomSecret(),
    ROUTER_ADMIN_TOKEN: randomSecret(),
  };
  readonly #children = new Map<DaemonName, ChildProcess>();
  readonly #ports = new Map<DaemonName, number>();
  readonly users: HouseUser[] = [];
  readonly replicas: readonly DaemonName[];
  #postgres: PostgresServer | undefined;
  #postgresUri = '';

  private constructor(replicas: number) {
    this.replicas = Array.from({ length: replicas }, (_, index) => `chronosd-${index}` as const);
  }

  /** Starts the daemons and registers one sleeping Neo for each user. */
  static async open({ users, store, replicas }: HousePlan): Promise<House> {
    const house = new House(replicas);
    if (store === 'postgres') {
      house.#postgres = await startPostgres();
      house.#postgresUri = house.#postgres.uri(await house.#postgres.createDatabase());
    }
    const names = [...house.replicas, 'router'] as const;
    for (const name of names) house.#ports.set(name, await freePort());
    await Promise.all(names.map((name) => house.start(name)));
    for (let index = 0; index < users; index++) await house.#addUser(`user-${index}`);
    return house;
  }

  /** Takes PostgreSQL away without letting it tidy up, and brings it back after a while. */
  async interruptPostgres(forMs: number): Promise<void> {
    await this.#postgres!.stop('immediate');
    await pause(forMs);
    await this.#postgres!.start();
  }

  url(name: DaemonName): string {
    return `http://127.0.0.1:${this.#ports.get(name)}`;
  }

  /** Starts a daemon and waits until it is ready. */
  async start(name: DaemonName): Promise<void> {
    const log = createWriteStream(join(this.folder, `${name}.log`), { flags: 'a' });
    const [command] = name.split('-');
    const child = spawn(process.execPath, [PROGRAM, command!, '--json'], {
      env: {
        PATH: process.env.PATH,
        REVEILLE_HOME: this.folder,
        REVEILLE_LOG: 'info',
        CHRONOS_PORT: String(this.#ports.get(name)),
        CHRONOS_POSTGRES_URI: this.#postgresUri,
        CHRONOS_ROUTER_WAKE_URL: `${this.url('router')}/internal/wake`,
        ROUTER_PORT: String(this.#ports.get('router')),
        ROUTER_WAKE_TOKEN: this.#secrets.CHRONOS_WAKE_TOKEN,
        ...this.#secrets,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.pipe(log);
    this.#children.set(name, child);
    let gone = false;
    child.once('exit', () => {
      gone = true;
    });
    await until(
      `${name} is ready`,
      async () => {
        if (gone)
          throw new Error(
            `${name} ended while starting:\n${readFileSync(join(this.folder, `${name}.log`), 'utf8').slice(-2000)}`,
          );
        return await fetch(`${this.url(name)}/readyz`).then(
          (answer) => answer.ok,
          () => false,
        );
      },
      START_LIMIT_MS,
    );
  }

  /** `kill -9`; resolves when the process is gone. */
  async kill(name: DaemonName): Promise<void> {
    const child = this.#children.get(name)!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** The process of a user's Neo, or `undefined` while it sleeps. */
  neoPid(user: HouseUser): number | undefined {
    try {
      const [pidFile] = readdirSync(user.neoData).filter((name) => name.endsWith('.pid'));
      const pid = pidFile ? Number(readFileSync(join(user.neoData, pidFile), 'utf8').trim()) : Number.NaN;
      if (!Number.isInteger(pid) || pid <= 1) return undefined;
      // The pid may have passed to someone else: only a process that runs our Neo is ours to end.
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return command.includes(PROGRAM) && command.includes('neo') ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  /** `kill -9` of a user's Neo; false when it was asleep. */
  killNeo(user: HouseUser): boolean {
    const pid = this.neoPid(user);
    if (pid === undefined) return false;
    try {
      process.kill(pid, 'SIGKILL');
      return true;
    } catch {
      return false;
    }
  }

  async #addUser(label: string): Promise<void> {
    const neoToken = randomSecret();
    const neoData = join(this.folder, 'neo', label);
    mkdirSync(neoData, { recursive: true });
    const answer = await fetch(`${this.url('router')}/admin/machines/${label}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#secrets.ROUTER_ADMIN_TOKEN}` },
      body: JSON.stringify({
        provider: 'process',
        spec: { command: [process.execPath, PROGRAM, 'neo'], env: { NEO_DATA_DIR: neoData } },
        token: neoToken,
      }),
    });
    openEnvelope(await answer.text(), answer.status, 'the router');
    const identity = agentIdentity(label, generateKey());
    this.users.push({
      label,
      neoToken,
      neoData,
      clients: this.replicas.map((replica) =>
        createChronosClient({
          url: this.url(replica),
          token: this.#secrets.CHRONOS_TOKEN,
          identity,
          principal: holdPrincipal(),
          timeoutMs: 10_000,
        }),
      ),
    });
  }

  /** Reads what a user's Neo holds, with the router out of the way. */
  readNeo<T>(user: HouseUser, read: (get: NeoGet) => Promise<T>): Promise<T> {
    return readNeo({ home: this.folder, dataDir: user.neoData, token: user.neoToken }, read);
  }

  /** Ends everything by SIGTERM, as an operator would, and waits. */
  async stop(): Promise<void> {
    for (const [, child] of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
    // A router that was killed and never came back leaves its machines behind; they are ours.
    for (const user of this.users) this.killNeo(user);
  }

  async close(): Promise<void> {
    await this.stop();
    await this.#postgres?.remove();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
