/** chronosd and a router as processes, and a machine of this computer whose agent records what it gets. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { ADMIN_TOKEN, clientOf, fixtureMachine, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { firstLine, PROGRAM } from '../../support/cluster/processes.ts';
import { reservePort } from '../../support/ports.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const TOKEN = 'transport-token-of-this-test';

/** @param settings more settings of both */
export async function checkProcesses(t: TestContext, settings: Readonly<Record<string, string>> = {}) {
  const home = realpathSync(temporaryFolder(t));
  const work = join(home, 'work');
  mkdirSync(work);
  const [routerPort, chronosPort] = [await reservePort(), await reservePort()];
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, REVEILLE_HOME: join(home, '.reveille'), REVEILLE_LOG: 'error' },
    ...{ ROUTER_PORT: `${routerPort}`, ROUTER_PUBLIC_PORT: '0', ROUTER_ORPHAN_SECONDS: '30' },
    ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    ...{ CHRONOS_PORT: `${chronosPort}`, CHRONOS_TOKEN: TOKEN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
    ...{ CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals', CHRONOS_ADMIN_TOKEN: 'the-operator-of-this-test' },
    ...settings,
    ...{ CHRONOS_MIN_INTERVAL_SECONDS: '1', CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${routerPort}/internal/wake` },
  };
  const running = new Map<string, ChildProcess>();
  const start = async (name: 'router' | 'chronosd') => {
    const child = spawn(process.execPath, [PROGRAM, name, '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    running.set(name, child);
    await firstLine(child);
  };
  const kill = async (name: 'router' | 'chronosd') => {
    const child = running.get(name)!;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await start(name);
  };
  atEnd(t, async () => {
    // The router ends its machine.
    const ended = [...running.values()].map((child) => once(child, 'exit'));
    for (const child of running.values()) child.kill('SIGTERM');
    await Promise.all(ended);
  });
  await start('router');
  await start('chronosd');
  const router = clientOf(`http://127.0.0.1:${routerPort}`);
  const machine = fixtureMachine(work);
  await router.put('alice', { ...machine, spec: { ...machine.spec, cwd: work, sandbox: false, checks: 'commands' } });
  const principal = holdPrincipal();
  const identity = agentIdentity('alice', generateKey());
  const chronos = () =>
    createChronosClient({ url: `http://127.0.0.1:${chronosPort}`, token: TOKEN, identity, principal });
  const pidOf = (name: 'router' | 'chronosd') => running.get(name)!.pid!;
  return { home, work, kill, chronos, router, pidOf };
}
