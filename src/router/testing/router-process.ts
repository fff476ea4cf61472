/** A router in its own process, for tests that kill it. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventuallyBy } from '../../../test/support/eventually.ts';
import { COMPILED, LEAN } from '../../../test/support/quick-start.ts';
import { atEnd } from '../../../test/support/temporary.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from './bench.ts';

const ROUTER_FIXTURE = fileURLToPath(new URL('./router.fixture.ts', import.meta.url));

export type RouterProcess = ReturnType<typeof clientOf> & {
  child: ChildProcess;
  url: string;
  /** Its log output so far. */
  log: () => string;
  /** `kill -9`, and waits until it has ended. */
  kill: () => Promise<void>;
};

/** @param settings variables that differ from those of every test */
export async function startRouterProcess(
  t: TestContext,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<RouterProcess> {
  const child = spawn(process.execPath, [...LEAN, ROUTER_FIXTURE], {
    env: {
      PATH: process.env.PATH,
      ...COMPILED,
      ROUTER_PORT: '0',
      ROUTER_PUBLIC_PORT: '0',
      ROUTER_DATA_DIR: dataDir,
      ROUTER_WAKE_TOKEN: WAKE_TOKEN,
      ROUTER_ADMIN_TOKEN: ADMIN_TOKEN,
      // Most tests clean up by themselves after a kill.
      ROUTER_ORPHAN_SECONDS: '0',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let logged = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    logged += chunk;
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  atEnd(t, async () => {
    child.kill('SIGTERM');
    await gone;
  });
  const url = await eventuallyBy(child, 'the router prints its address', () => /http:\S+/.exec(output)?.[0], {
    output: () => logged,
  });
  const kill = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  return { ...clientOf(url), url, child, log: () => logged, kill };
}
