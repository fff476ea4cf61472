/** An installation for tests: a home folder, chronosd and router in this process, and `reveille` as a child process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../chronos/client.ts';
import { parseChronosConfig } from '../../chronos/config.ts';
import { type RunningChronos, startChronos } from '../../chronos/daemon.ts';
import { systemClock, wait } from '../../kit/clock/clock.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { loadOrCreateKey } from '../../kit/identity/keys.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { parseRouterConfig } from '../../router/config.ts';
import { type RunningRouter, startRouter } from '../../router/daemon.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliProcess } from '../cli-process.ts';
import {
  type Home,
  homeAt,
  loadOrMakeLabel,
  loadOrMakeSecrets,
  type MadeSecrets,
  makeHome,
  writeRun,
} from '../home/home.ts';
import { PROGRAM } from '../home/package-root.ts';
import { runCli } from '../run.ts';

/** Whose end ends what was started: a test, or a {@link sharedOwner}. */
type Owner = { after(cleanup: () => unknown): void };

/** The owner of what the tests of a suite share; the suite's `after` ends it. */
export function sharedOwner(): Owner & { end(): Promise<void> } {
  const cleanups: (() => unknown)[] = [];
  return {
    after: (cleanup) => void cleanups.unshift(cleanup),
    async end() {
      for (const cleanup of cleanups) await cleanup();
    },
  };
}

export type Outcome = { status: number | null; stdout: string; stderr: string };

/** The zone that every child process lives in, whatever the computer's is. */
const ZONE = 'Europe/Berlin';

export type RunOptions = {
  env?: Readonly<Record<string, string>>;
  /** What the command reads from standard input; nothing without it. */
  input?: string | Buffer;
  cwd?: string;
};

function environmentOf(home: string, { env = {} }: RunOptions): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: home, TZ: ZONE, REVEILLE_HOME: home, ...env };
}

function childOf(home: string, words: readonly string[], options: RunOptions): ChildProcess {
  const { cwd } = options;
  return spawn(process.execPath, [PROGRAM, ...words], {
    env: environmentOf(home, options),
    ...(cwd === undefined ? {} : { cwd }),
    stdio: 'pipe',
  });
}

function collect(child: Pick<ChildProcess, 'stdout' | 'stderr'>): Outcome {
  const outcome: Outcome = { status: null, stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    outcome.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    outcome.stderr += text;
  });
  return outcome;
}

/**
 * Runs `reveille` with these words below a home folder, and resolves when it has ended: in this process, which costs a tenth of a process,
 * unless it is given an input or a folder. Daemons, and what ends by itself with `process.exit`, need {@link reveilleProcess}.
 */
export async function reveille(home: string, words: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  if (options.input !== undefined || options.cwd !== undefined) return reveilleProcess(home, words, options);
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const given = {
    env: environmentOf(home, options),
    ...{ stdin: stdin.end(), stdout, stderr },
    cwd: () => process.cwd(),
  } as unknown as CliProcess;
  const outcome = collect(given);
  outcome.status = await runCli(words, given);
  await Promise.all([stdout, stderr].map((stream) => finished(stream.end())));
  return outcome;
}

/** Runs `reveille` as a process with these words below a home folder, and resolves when it has ended. */
export async function reveilleProcess(
  home: string,
  words: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const child = childOf(home, words, options);
  const outcome = collect(child);
  // A command that fails early does not read what it is sent.
  child.stdin?.on('error', () => {}).end(options.input ?? '');
  await new Promise<void>((resolve) => child.once('close', () => resolve()));
  outcome.status = child.exitCode;
  return outcome;
}

/** A command that stays: its output so far, and how to end it. */
export type Staying = {
  outcome: Outcome;
  /** Resolves when `done` holds for the output; it is looked at whenever something arrives. */
  until(done: (outcome: Outcome) => boolean): Promise<void>;
  end(signal: 'SIGINT' | 'SIGTERM'): Promise<Outcome>;
  /** Resolves when it has ended by itself. */
  ended: Promise<void>;
};

export function stayingReveille(
  owner: Owner,
  home: string,
  words: readonly string[],
  options: Omit<RunOptions, 'input'> = {},
): Staying {
  const child = childOf(home, words, options);
  const outcome = collect(child);
  const ended = new Promise<void>((resolve) =>
    child.once('close', () => {
      outcome.status = child.exitCode;
      resolve();
    }),
  );
  owner.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    outcome,
    ended,
    until: (done) =>
      new Promise((resolve, reject) => {
        const look = () => done(outcome) && resolve();
        child.stdout?.on('data', look);
        child.stderr?.on('data', look);
        child.once('close', () => reject(new Error(`it ended too early: ${JSON.stringify(outcome)}`)));
        look();
      }),
    async end(signal) {
      child.kill(signal);
      await ended;
      return outcome;
    },
  };
}

const FOLDER = join(tmpdir(), 'reveille-cli-');

/** A folder that is gone when the test is over. */
export function temporaryFolder(owner: Owner): string {
  const folder = mkdtempSync(FOLDER);
  owner.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** An HTTP server on a free port. */
export async function listening(owner: Owner, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.after(() => closeServer(server));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An agent's daemon that is always on; `status` is how it answers a turn. */
export async function startAgent(owner: Owner): Promise<{ url: string; status: number; turns: string[] }> {
  const agent = { url: '', status: 202, turns: [] as string[] };
  const server = createServer((request, response) => {
    if (request.url === '/healthz') return void response.end('fine');
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      agent.turns.push(body);
      response.writeHead(agent.status, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
    });
  });
  agent.url = await listening(owner, server);
  return agent;
}

/** Resolves as soon as `holds` does; it is asked again and again. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await wait(systemClock, 20);
}

export type Installation = {
  home: Home;
  label: string;
  secrets: MadeSecrets;
  chronos: RunningChronos;
  router: RunningRouter;
  /** Speaks as this installation's agent, without a command line. */
  client: ChronosClient;
  /** Runs a command that must succeed and gives its standard output. */
  run(...words: string[]): Promise<string>;
  /** Starts chronosd again, on the same port and data, after it was closed. */
  restartChronos(): Promise<void>;
  /** Runs a command, whatever becomes of it, as {@link reveille} does. */
  attempt(words: readonly string[], options?: RunOptions): Promise<Outcome>;
};

/** What `reveille up` would leave and start, but for Neo. */
export async function startInstallation(owner: Owner): Promise<Installation> {
  const folder = mkdtempSync(FOLDER);
  const home = homeAt(join(folder, 'home'));
  makeHome(home);
  const secrets = loadOrMakeSecrets(home);
  const label = loadOrMakeLabel(home);
  const identity = agentIdentity(label, loadOrCreateKey(home.keyFile));
  const shared = { clock: systemClock, log: silentLogger };
  const settings = { ...secrets, ROUTER_WAKE_TOKEN: secrets.CHRONOS_WAKE_TOKEN };
  const router = await startRouter({
    ...shared,
    version: VERSION,
    environment: {},
    config: parseRouterConfig({ ...settings, ROUTER_PORT: '0', ROUTER_DATA_DIR: join(home.path, 'router') }),
  });
  const openChronos = (port: number) =>
    startChronos({
      ...shared,
      config: parseChronosConfig({
        ...settings,
        CHRONOS_PORT: String(port),
        CHRONOS_DATA_DIR: join(home.path, 'chronos'),
        CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake`,
      }),
    });
  const chronos = await openChronos(0);
  let latest = chronos;
  owner.after(async () => {
    await latest.close();
    await router.close();
    rmSync(folder, { recursive: true, force: true });
  });
  writeRun(home, {
    pid: process.pid,
    chronos_url: chronos.url,
    router_url: router.url,
    started_at: formatInstant(systemClock.now()),
  });
  const attempt = (words: readonly string[], options?: RunOptions) => reveille(home.path, words, options);
  return {
    home,
    label,
    secrets,
    chronos,
    router,
    client: createChronosClient({
      url: chronos.url,
      token: secrets.CHRONOS_TOKEN,
      identity,
      principal: holdPrincipal(),
    }),
    attempt,
    async restartChronos() {
      latest = await openChronos(chronos.port);
    },
    async run(...words) {
      const { status, stdout, stderr } = await attempt(words);
      if (status !== 0) throw new Error(`reveille ${words.join(' ')} ended with ${status}: ${stderr}`);
      return stdout;
    },
  };
}
