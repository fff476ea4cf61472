/** Everything that `reveille up` runs: router and chronosd in this process, Neo as a machine that sleeps until it is woken. */
import { parseChronosConfig } from '../chronos/config.ts';
import { type RunningChronos, startChronos } from '../chronos/daemon.ts';
import type { FireReport } from '../chronos/dispatch/dispatcher.ts';
import type { AgentIdentity } from '../identity/agent.ts';
import { agentIdentity } from '../identity/agent.ts';
import { loadOrCreateKey } from '../identity/keys.ts';
import { parseRouterConfig } from '../router/config.ts';
import { type RunningRouter, startRouter } from '../router/daemon.ts';
import type { WakeNotice } from '../router/wake.ts';
import { formatInstant } from '../wire/instant.ts';
import { VERSION } from '../wire/version.ts';
import type { CliContext } from './context.ts';
import { loadOrMakeLabel, loadOrMakeSecrets, makeHome, removeRun, writeRun } from './home.ts';
import { PROGRAM } from './package-root.ts';
import { createRouterClient } from './router-access.ts';

/** Neo goes back to sleep after this long without a turn. */
const NEO_IDLE_SECONDS = 300;

/** Variables that Neo reads; those that are set here are handed on by name, so that their values are written nowhere. */
const NEO_VARIABLES = /^NEO_(?:MODEL|CHEAP_MODEL|MODEL_BASE_URL|MODEL_API_KEY|EMBED_MODEL|MANIFEST|DATA_DIR)$/;

export type LocalStack = {
  chronos: RunningChronos;
  router: RunningRouter;
  identity: AgentIdentity;
  /** Bearer of chronosd. */
  chronosToken: string;
  /** Bearer of the local Neo. */
  neoToken: string;
  close(): Promise<void>;
};

export type LocalStackEvents = {
  onFire: (report: FireReport) => void;
  onWake: (report: WakeNotice) => void;
};

/**
 * Starts the stack. Secrets and identity are made on the first start and kept.
 *
 * @throws ReveilleError when a port is taken, the data is in use by another process, or a setting is wrong
 */
export async function startLocalStack(context: CliContext, events: LocalStackEvents): Promise<LocalStack> {
  const { home, clock } = context;
  makeHome(home);
  const secrets = loadOrMakeSecrets(home);
  const identity = agentIdentity(loadOrMakeLabel(home), loadOrCreateKey(home.keyFile));
  const settings = { ...secrets, ...context.settings };
  const environment = { ...context.environment, REVEILLE_HOME: home.path };

  const router = await startRouter({
    config: parseRouterConfig({ ...settings, ROUTER_WAKE_TOKEN: settings.CHRONOS_WAKE_TOKEN }),
    environment,
    version: VERSION,
    clock,
    log: await context.log('router', 'warn'),
    onWake: events.onWake,
  });
  let chronos: RunningChronos;
  try {
    chronos = await startChronos({
      config: parseChronosConfig({ ...settings, CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake` }),
      clock,
      log: await context.log('chronosd', 'warn'),
      onFire: events.onFire,
    });
  } catch (error) {
    await router.close();
    throw error;
  }
  const close = async () => {
    removeRun(home);
    // chronosd first: while it lets its deliveries finish, they still need the router.
    await chronos.close();
    await router.close();
  };
  try {
    await createRouterClient({ url: router.url, token: settings.ROUTER_ADMIN_TOKEN }).put(identity.owner, {
      provider: 'process',
      spec: { command: [process.execPath, PROGRAM, 'neo'], env: neoEnvironment(context) },
      idle_seconds: NEO_IDLE_SECONDS,
      token: secrets.NEO_DAEMON_TOKEN,
    });
    writeRun(home, {
      pid: process.pid,
      chronos_url: chronos.url,
      router_url: router.url,
      started_at: formatInstant(clock.now()),
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    chronos,
    router,
    identity,
    chronosToken: settings.CHRONOS_TOKEN,
    neoToken: secrets.NEO_DAEMON_TOKEN,
    close,
  };
}

function neoEnvironment({ environment }: CliContext): Record<string, string> {
  const names = Object.keys(environment).filter((name) => NEO_VARIABLES.test(name) && environment[name]);
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]));
}
