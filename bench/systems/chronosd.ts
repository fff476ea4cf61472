/** chronosd as its own process, started as an operator starts it. */
import { join } from 'node:path';
import { randomSecret } from '../../src/kit/identity/secrets.ts';
import type { Child } from '../children.ts';
import type { Workbench } from '../workbench.ts';
import type { DataLocation, Running } from './system.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'reveille.mjs');

/** The same in every process, so that the token of one chronosd is valid at the next. */
const SECRETS = {
  CHRONOS_TOKEN: randomSecret(),
  CHRONOS_AGENT_AUTH_SECRET: randomSecret(),
  CHRONOS_ADMIN_TOKEN: randomSecret(),
  CHRONOS_WAKE_TOKEN: randomSecret(),
};

export const { CHRONOS_TOKEN, CHRONOS_ADMIN_TOKEN } = SECRETS;

export type RunningChronosd = Running & { child: Child; url: string };

/** The environment of a chronosd with all defaults, except required values and `settings`. */
export function chronosdEnvironment(
  bench: Workbench,
  location: DataLocation,
  settings: Record<string, string> = {},
): Record<string, string> {
  return {
    REVEILLE_HOME: bench.folder,
    CHRONOS_PORT: '0',
    CHRONOS_ROUTER_WAKE_URL: bench.sink.url,
    ...('folder' in location
      ? { CHRONOS_DATA_DIR: location.folder }
      : { CHRONOS_POSTGRES_URI: location.uri, CHRONOS_ENROLLMENT: 'tofu' }),
    ...SECRETS,
    ...settings,
  };
}

/** The command line of one of Reveille's commands. */
export function reveille(...args: string[]): string[] {
  return [PROGRAM, ...args];
}

const READY_LIMIT_MS = 20_000;

/** A chronosd on PostgreSQL accepts requests before it is connected to the database. */
async function untilReady(url: string): Promise<void> {
  const limit = Date.now() + READY_LIMIT_MS;
  for (;;) {
    const answer = await fetch(`${url}/readyz`);
    if (answer.ok) return;
    if (Date.now() > limit) throw new Error(`chronosd is not ready: ${await answer.text()}`);
    await answer.body?.cancel();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts chronosd; resolves when it accepts requests and dispatches. */
export async function startChronosd(
  bench: Workbench,
  location: DataLocation,
  settings: Record<string, string> = {},
): Promise<RunningChronosd> {
  const profiling = bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`];
  const command = [...profiling, ...reveille('chronosd', '--json')];
  const child = bench.start('chronosd', command, chronosdEnvironment(bench, location, settings));
  const { url } = await child.says<{ url: string }>();
  await untilReady(url);
  return { child, url, pid: child.pid, alive: () => child.running, stop: () => child.stop() };
}
