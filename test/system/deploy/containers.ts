/**
 * The services of deploy/compose.yaml without a container engine: each in namespaces made by bubblewrap, from the
 * installed package. Each has the user, read-only root, capabilities, environment and volume of the file. Differences:
 * they share this machine's network and files (read-only), and use free ports.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { eventually } from '../../support/eventually.ts';
import type { InstalledPackage } from '../../support/package.ts';
import { reservePort } from '../../support/ports.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';

export const DEPLOY = join(import.meta.dirname, '..', '..', '..', 'deploy');

export type Service = {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  user?: string;
  read_only?: boolean;
  cap_drop?: string[];
  volumes?: string[];
  networks?: string[];
  ports?: string[];
  profiles?: string[];
};
export type Compose = { services: Record<string, Service>; networks: Record<string, { internal?: boolean }> };

/**
 * The compose file with its variables substituted as Compose does it: `${NAME}`, `${NAME:-default}`, `${NAME:?why}`,
 * and variables without a value.
 */
export function readCompose(variables: Readonly<Record<string, string>>, ports: ReadonlyMap<number, number>): Compose {
  const filled = (text: string) =>
    text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind: string | undefined, rest: string) => {
      const value = variables[name];
      if (value !== undefined) return value;
      if (kind === '-') return rest;
      throw new Error(`${name} is not set: ${rest}`);
    });
  let text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');
  for (const [port, instead] of ports) text = text.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), String(instead));
  const compose = parse(text, (_, value: unknown) => (typeof value === 'string' ? filled(value) : value), {
    merge: true,
  }) as Compose;
  for (const { environment = {} } of Object.values(compose.services)) {
    for (const [name, value] of Object.entries(environment)) {
      if (value !== null) continue;
      if (variables[name] === undefined) delete environment[name];
      else environment[name] = variables[name];
    }
  }
  return compose;
}

/** The image's part of a system: programs and libraries, trusted certificates, user names. */
const SYSTEM = ['/usr', '/bin', '/lib', '/lib64', '/etc/ssl', '/etc/passwd', '/etc/group', '/etc/nsswitch.conf'];
/** Variables of the image; a test compares them with the Dockerfile. */
export const IMAGE = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/data',
  REVEILLE_HOME: '/data',
  NODE_ENV: 'production',
};
const PROGRAM = '/opt/installed/node_modules/reveille/bin/reveille.mjs';

export type CommandOutput = { code: number; stdout: string; stderr: string };

/** Services that are started, killed and restarted, and commands that run inside them. */
export class Containers {
  readonly #compose: Compose;
  readonly #installed: InstalledPackage;
  readonly #volumes: string;
  readonly #hosts: string;
  readonly #running = new Map<string, ChildProcess>();

  private constructor(owner: Owner, compose: Compose, installed: InstalledPackage) {
    this.#compose = compose;
    this.#installed = installed;
    this.#volumes = temporaryFolder(owner);
    this.#hosts = join(this.#volumes, 'hosts');
    writeFileSync(this.#hosts, `127.0.0.1 localhost ${Object.keys(compose.services).join(' ')}\n`);
    atEnd(owner, async () => {
      for (const service of this.#running.keys()) await this.kill(service);
    });
  }

  /** @param database the port of a PostgreSQL server in place of the service `db` */
  static async of(
    owner: Owner,
    variables: Readonly<Record<string, string>>,
    { installed, database }: { installed: InstalledPackage; database: number },
  ): Promise<Containers> {
    const ports = new Map<number, number>([[5432, database]]);
    for (const port of [8080, 8081, 8087, 8088, 9096]) ports.set(port, await reservePort());
    return new Containers(owner, readCompose(variables, ports), installed);
  }

  /** The variables of a service; a change applies from its next start on. */
  environment(service: string): Record<string, string> {
    return this.#compose.services[service]!.environment!;
  }

  #command(service: string, args: readonly string[]): string[] {
    const { user, volumes = [], read_only: isReadOnly } = this.#compose.services[service]!;
    if (isReadOnly !== true || user === undefined) throw new Error(`${service} must have a user and a read-only root`);
    const [uid, gid] = user.split(':');
    const [volume] = volumes[0]!.split(':');
    mkdirSync(join(this.#volumes, volume!), { recursive: true });
    const variables = { ...IMAGE, ...this.environment(service) };
    return [
      ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--die-with-parent', '--cap-drop', 'ALL', '--clearenv'],
      ...['--uid', uid!, '--gid', gid!, '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
      ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
      ...['--ro-bind', this.#hosts, '/etc/hosts', '--ro-bind', process.execPath, '/opt/node'],
      ...['--ro-bind', this.#installed.folder, '/opt/installed', '--ro-bind', DEPLOY, '/opt/deploy'],
      ...['--bind', join(this.#volumes, volume!), '/data', '--chdir', '/data', '--remount-ro', '/'],
      ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, String(value)]),
      ...['--', '/opt/node', ...args],
    ];
  }

  /** Starts a service, and waits until its health check succeeds. */
  async start(service: string): Promise<void> {
    const args = [PROGRAM, ...this.#compose.services[service]!.command!];
    const child = spawn('bwrap', this.#command(service, args), { stdio: ['ignore', 'pipe', 'pipe'] });
    let last = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => (last = `${last}${data}`.slice(-4000)));
    this.#running.set(service, child);
    // The check is a process of its own: the engine runs it every few seconds, a test every few milliseconds.
    await eventually(`${service} answers`, async () => {
      if (child.exitCode !== null) throw new Error(`${service} ended: ${last}`);
      return (await this.#health(service)) === true;
    });
    const { code, stderr } = await this.#inside(service, ['/opt/deploy/healthcheck.mjs']);
    if (code !== 0) throw new Error(`the health check of ${service}: ${stderr}`);
  }

  /** Whether a service is healthy; `undefined` when it does not answer. */
  #health(service: string): Promise<boolean | undefined> {
    return fetch(this.environment(service).HEALTH_URL!).then(
      ({ ok }) => ok,
      () => undefined,
    );
  }

  /** `kill -9` of a service and of all its processes. */
  async kill(service: string): Promise<void> {
    const child = this.#running.get(service);
    this.#running.delete(service);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    // The inner processes die after the outer one, and must not answer for its successor.
    await eventually(`nothing of ${service} is left`, async () => (await this.#health(service)) === undefined);
  }

  #inside(service: string, args: readonly string[]): Promise<CommandOutput> {
    return new Promise((resolve) => {
      execFile('bwrap', this.#command(service, args), (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code) || 1, stdout, stderr }),
      );
    });
  }

  /** `docker compose exec SERVICE reveille …`: the JSON that it printed. */
  async run(service: string, ...args: string[]): Promise<unknown> {
    const output = await this.#inside(service, [PROGRAM, ...args, '--json']);
    if (output.code !== 0) throw new Error(`${service}: reveille ${args.join(' ')}: ${output.stderr}${output.stdout}`);
    return JSON.parse(output.stdout);
  }
}
