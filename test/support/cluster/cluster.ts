/**
 * A whole installation as real processes: chronosd and router as children, on SQLite or PostgreSQL, and agents as
 * targets. Its links can fail, its disk can fill up, and its clock can jump.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { randomSecret } from '../../../src/kit/identity/secrets.ts';
import { openEnvelope } from '../../../src/wire/envelope.ts';
import type { ReceiverRecorder } from '../../fault/checker/journal.ts';
import { reservePort } from '../ports.ts';
import { Daemon } from './daemon.ts';
import { HouseDatabase } from './database.ts';
import type { Engine } from './engine.ts';
import { Links } from './links.ts';
import { type NeoGet, readNeo } from './neo-reader.ts';
import { PROGRAM } from './processes.ts';
import { SmallDisk } from './small-disk.ts';
import { Targets, USUAL } from './targets.ts';
import { type ClusterUser, killNeo, MACHINES, type MachineKind, type NeoUser } from './user.ts';
import { WallClock } from './wall-clock.ts';

export type StoreKind = 'sqlite' | 'postgres';

export type ClusterConfig = {
  /** Folder of its logs and data; made when missing, left when the cluster is closed. */
  folder: string;
  /** The store of the alarms. With SQLite there is one chronosd. */
  store: StoreKind;
  /** Number of chronosd replicas. */
  replicas: number;
  /** Number of users with each kind of machine. */
  users: Partial<Record<MachineKind, number>>;
  /** Puts a proxy on every link. */
  links?: boolean;
  /** PostgreSQL gets a synchronous standby, and chronosd gets both addresses. */
  standby?: boolean;
  /** The database is this one, which is more than one server; `store` is `postgres` then. */
  engine?: () => Promise<Engine>;
  /** The data are on a small disk of this size. */
  diskMegabytes?: number;
  /** Clocks can jump: with SQLite the machine's, with PostgreSQL that of each replica. */
  clocksJump?: boolean;
  /** Additional variables for chronosd and router. */
  settings?: Readonly<Record<string, string>>;
  /** Log file of the {@link Targets}. */
  receiver: ReceiverRecorder;
};

const SECRET_NAMES = [
  'CHRONOS_TOKEN',
  'CHRONOS_AGENT_AUTH_SECRET',
  'CHRONOS_ADMIN_TOKEN',
  'CHRONOS_WAKE_TOKEN',
  'ROUTER_ADMIN_TOKEN',
] as const;

export class Cluster {
  readonly plan: ClusterConfig;
  readonly links: Links;
  readonly replicas: Daemon[] = [];
  readonly users: ClusterUser[] = [];
  readonly #secrets = Object.fromEntries(SECRET_NAMES.map((name) => [name, randomSecret()])) as Record<
    (typeof SECRET_NAMES)[number],
    string
  >;
  #router: Daemon | undefined;
  #targets: Targets | undefined;
  #database: HouseDatabase | undefined;
  #engine: Engine | undefined;
  #disk: SmallDisk | undefined;
  readonly #clocks: WallClock[] = [];
  /** The client addresses of the replicas. */
  readonly #apiPorts: number[] = [];

  private constructor(plan: ClusterConfig) {
    mkdirSync(plan.folder, { recursive: true });
    this.plan = plan;
    this.links = new Links(plan.links ?? false);
  }

  /** Starts everything and registers the users' machines. */
  static async open(plan: ClusterConfig): Promise<Cluster> {
    const cluster = new Cluster(plan);
    try {
      await cluster.#open();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get router(): Daemon {
    return this.#router!;
  }

  get targets(): Targets {
    return this.#targets!;
  }

  /** PostgreSQL; throws when alarms are stored in a file. */
  get database(): HouseDatabase {
    if (!this.#database) throw new Error('this cluster has no PostgreSQL');
    return this.#database;
  }

  /** The database with more than one server, if this cluster has one. */
  get engine(): Engine | undefined {
    return this.#engine;
  }

  /** Direct access to the alarms: a file, or a database without a link in between. */
  async readFrom(): Promise<string> {
    if (this.plan.store === 'sqlite') return this.sqlitePath;
    return this.#engine ? this.#engine.readUri() : this.database.directUri;
  }

  get disk(): SmallDisk {
    if (!this.#disk) throw new Error('this cluster has no small disk');
    return this.#disk;
  }

  /** The clocks that can jump: the machine's, or one for each replica. */
  get clocks(): readonly WallClock[] {
    return this.#clocks;
  }

  /** The clock of the router, the agents and, with SQLite, chronosd; epoch milliseconds. */
  readonly now = (): number => this.#machineClock?.now() ?? Date.now();

  /** The machine's clock, where it can jump. */
  get #machineClock(): WallClock | undefined {
    return this.plan.store === 'sqlite' ? this.#clocks[0] : undefined;
  }

  /** The SQLite file of the only chronosd. */
  get sqlitePath(): string {
    return join(this.#chronosData, 'chronos.db');
  }

  get neos(): NeoUser[] {
    return this.users.filter((user): user is NeoUser => user.machine !== 'target');
  }

  /** Reads the data of a user's Neo, without the router. */
  readNeo<T>(user: NeoUser, read: (get: NeoGet) => Promise<T>): Promise<T> {
    return readNeo({ home: this.plan.folder, dataDir: user.dataDir, token: user.token }, read);
  }

  /** Ends all daemons by SIGTERM, as an operator would, and waits. Targets and PostgreSQL stay. */
  async stop(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.end()));
    await this.#router?.end();
    for (const user of this.neos) {
      if (user.daemon) await user.daemon.end();
      // A killed router without a successor leaves its machines running; they belong to this cluster.
      else killNeo(user);
    }
  }

  async close(): Promise<void> {
    await this.stop();
    await this.links.close();
    await this.#targets?.close();
    await this.#database?.close();
    await this.#engine?.close();
    this.#disk?.remove();
  }

  get #chronosData(): string {
    return join(this.#disk?.folder ?? this.plan.folder, 'chronos');
  }

  async #open(): Promise<void> {
    const { store, replicas, users, standby = false, diskMegabytes, clocksJump, receiver } = this.plan;
    if (diskMegabytes !== undefined) this.#disk = new SmallDisk(diskMegabytes);
    this.#engine = await this.plan.engine?.();
    if (store === 'postgres' && !this.#engine)
      this.#database = await HouseDatabase.open({ links: this.links, standby, disk: this.#disk });
    if (clocksJump)
      for (let n = 0; n < (store === 'sqlite' ? 1 : replicas); n++)
        this.#clocks.push(new WallClock(this.plan.folder, n));
    this.#targets = await Targets.open({
      log: receiver,
      now: this.now,
      latestWithin: (ms) => this.#machineClock?.latestWithin(ms) ?? Date.now(),
    });

    const routerPort = await reservePort();
    this.#router = this.#makeDaemon('router', ['router'], routerPort, {
      ...this.#onMachineClock(),
      ROUTER_PORT: String(routerPort),
      ROUTER_PUBLIC_PORT: '0',
      ROUTER_WAKE_TOKEN: this.#secrets.CHRONOS_WAKE_TOKEN,
      ROUTER_ADMIN_TOKEN: this.#secrets.ROUTER_ADMIN_TOKEN,
    });
    const wakePort = await this.links.lead('wake', routerPort);
    for (let n = 0; n < replicas; n++) {
      const port = await reservePort();
      this.#apiPorts.push(await this.links.lead('api', port));
      this.replicas.push(
        this.#makeDaemon(`chronosd-${n}`, ['chronosd'], port, {
          ...this.#clocks[n]?.environment(),
          ...this.#secrets,
          CHRONOS_PORT: String(port),
          CHRONOS_DATA_DIR: this.#chronosData,
          CHRONOS_POSTGRES_URI: this.#engine?.uri ?? this.#database?.uri ?? '',
          CHRONOS_ENROLLMENT: 'tofu',
          CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${wakePort}/internal/wake`,
        }),
      );
    }
    await Promise.all([this.#router, ...this.replicas].map((daemon) => daemon.start()));
    const targetPort = await this.links.lead('delivery', this.#targets.port);
    for (const machine of MACHINES) {
      for (let n = 0; n < (users[machine] ?? 0); n++) await this.#addUser(`${machine}-${n}`, machine, targetPort);
    }
  }

  #onMachineClock(): Record<string, string> {
    return this.#machineClock?.environment() ?? {};
  }

  #makeDaemon(name: string, command: string[], port: number, env: Record<string, string>): Daemon {
    return new Daemon({
      name,
      command,
      url: `http://127.0.0.1:${port}`,
      logFile: join(this.plan.folder, `${name}.log`),
      env: { REVEILLE_HOME: this.plan.folder, REVEILLE_LOG: 'info', ...this.plan.settings, ...env },
    });
  }

  async #addUser(label: string, machine: MachineKind, targetPort: number): Promise<void> {
    const identity = agentIdentity(label, generateKey());
    const clients = this.#apiPorts.map((port) =>
      createChronosClient({
        url: `http://127.0.0.1:${port}`,
        token: this.#secrets.CHRONOS_TOKEN,
        identity,
        principal: holdPrincipal(),
        timeoutMs: CLIENT_TIMEOUT_MS,
      }),
    );
    if (machine === 'target') {
      this.targets.set(label, USUAL);
      await this.#register(label, { provider: 'http', spec: { url: `http://127.0.0.1:${targetPort}/${label}` } });
      this.users.push({ label, machine, clients });
      return;
    }
    const token = randomSecret();
    const dataDir = join(this.plan.folder, 'neo', label);
    mkdirSync(dataDir, { recursive: true });
    const user: NeoUser = { label, machine, clients, token, dataDir };
    if (machine === 'sleeping') {
      const spec = { command: [process.execPath, PROGRAM, 'neo'], env: { NEO_DATA_DIR: dataDir } };
      await this.#register(label, { provider: 'process', spec, token });
    } else {
      const port = await reservePort();
      user.daemon = this.#makeDaemon(`neo-${label}`, ['neo'], port, {
        ...this.#onMachineClock(),
        NEO_PORT: String(port),
        NEO_DATA_DIR: dataDir,
        NEO_DAEMON_TOKEN: token,
      });
      await user.daemon.start();
      const url = `http://127.0.0.1:${await this.links.lead('delivery', port)}`;
      await this.#register(label, { provider: 'http', spec: { url }, token });
    }
    this.users.push(user);
  }

  async #register(label: string, machine: object): Promise<void> {
    const answer = await fetch(`${this.router.url}/admin/machines/${label}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#secrets.ROUTER_ADMIN_TOKEN}` },
      body: JSON.stringify(machine),
    });
    openEnvelope(await answer.text(), answer.status, 'the router');
  }
}

/** A link without answers must not block clients that set alarms: they send the request again, under the same key. */
const CLIENT_TIMEOUT_MS = 4_000;
