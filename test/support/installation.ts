import { createServer } from 'node:http';
import { join } from 'node:path';
import { openAgentHost } from '../../src/agents/host.ts';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { parseChronosConfig } from '../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../src/chronos/daemon.ts';
import {
  type Home,
  homeAt,
  loadOrMakeLabel,
  loadOrMakeSecrets,
  type MadeSecrets,
  makeHome,
  writeRun,
} from '../../src/cli/home/home.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { loadOrCreateKey } from '../../src/kit/identity/keys.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { parseRouterConfig } from '../../src/router/config.ts';
import { type RunningRouter, startRouter } from '../../src/router/daemon.ts';
import { formatInstant } from '../../src/wire/rfc3339.ts';
import { VERSION } from '../../src/wire/version.ts';
import { type Outcome, type RunOptions, reveille } from './command-line.ts';
import { reservePort } from './ports.ts';
import { atEnd, listening, type Owner, temporaryFolder } from './temporary.ts';

/** An agent's daemon that is always on; `status` is its answer to a turn. */
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

export type Installation = {
  home: Home;
  label: string;
  secrets: MadeSecrets;
  chronos: RunningChronos;
  router: RunningRouter;
  /** A client of this installation's agent, without a command line. */
  client: ChronosClient;
  /** Runs a command that must succeed and returns its standard output. */
  run(...args: string[]): Promise<string>;
  /** Starts chronosd again, on the same port and data, after it was closed. */
  restartChronos(): Promise<void>;
  /** Runs a command with any exit status, as {@link reveille} does. */
  attempt(args: readonly string[], options?: RunOptions): Promise<Outcome>;
};

/**
 * The state and daemons of `reveille up`, except Neo; in a new home, or in an existing one.
 *
 * @param environment of the router
 */
export async function startInstallation(
  owner: Owner,
  at?: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Installation> {
  const home = homeAt(at ?? join(temporaryFolder(owner), 'home'));
  makeHome(home);
  const secrets = loadOrMakeSecrets(home);
  const label = loadOrMakeLabel(home);
  const identity = agentIdentity(label, loadOrCreateKey(home.keyFile));
  const shared = { clock: systemClock, log: silentLogger };
  const settings = { ...secrets, ROUTER_WAKE_TOKEN: secrets.CHRONOS_WAKE_TOKEN };
  const router = await startRouter({
    openAgents: openAgentHost,
    ...shared,
    version: VERSION,
    environment,
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
  const chronos = await openChronos(await reservePort());
  let latest = chronos;
  atEnd(owner, async () => {
    await latest.close();
    await router.close();
  });
  writeRun(home, {
    pid: process.pid,
    chronos_url: chronos.url,
    router_url: router.url,
    public_url: router.public.url,
    started_at: formatInstant(systemClock.now()),
  });
  const attempt = (args: readonly string[], options?: RunOptions) => reveille(home.path, args, options);
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
    async run(...args) {
      const { status, stdout, stderr } = await attempt(args);
      if (status !== 0) throw new Error(`reveille ${args.join(' ')} ended with ${status}: ${stderr}`);
      return stdout;
    },
  };
}
