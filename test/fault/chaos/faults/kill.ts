/** `kill -9` of chronosd, the router or a Neo, at any moment. */
import type { Daemon } from '../../../support/cluster/daemon.ts';
import { killNeo, neoPid } from '../../../support/cluster/user.ts';
import { type Fault, type FaultContext, ONE_RETRY_MS, pick } from '../fault.ts';

async function killAndStart(daemon: Daemon): Promise<number> {
  await daemon.kill();
  const endedAt = Date.now();
  await daemon.start();
  return endedAt;
}

const VICTIMS = ['chronosd', 'router', 'neo'] as const;

export const kill: Fault = {
  name: 'kill',
  title: 'kill -9',
  stores: ['sqlite', 'postgres', 'citus'],
  short: { strikes: 6, strikingMs: 14_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random, round }: FaultContext) {
    const victim = VICTIMS[round % VICTIMS.length]!;
    if (victim === 'router') return { what: 'router', endedAt: await killAndStart(installation.router) };
    // A sleeping Neo cannot be killed; it must not be the only candidate either.
    const awake = installation.neos.filter((user) => user.daemon ?? neoPid(user) !== undefined);
    if (victim === 'neo' && awake.length > 0) {
      const user = pick(random, awake);
      if (user.daemon) return { what: 'neo', endedAt: await killAndStart(user.daemon) };
      killNeo(user);
      return { what: 'neo', endedAt: Date.now() };
    }
    return { what: 'chronosd', endedAt: await killAndStart(pick(random, installation.replicas)) };
  },
};
