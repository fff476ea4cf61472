/** `kill -9` of chronosd, the router or a Neo, at any moment. */
import type { Daemon } from '../../../support/cluster/daemon.ts';
import { killNeo, neoPid } from '../../../support/cluster/user.ts';
import { type Fault, ONE_RETRY_MS, pick, type Scene } from '../fault.ts';

async function killAndStart(daemon: Daemon): Promise<number> {
  await daemon.kill();
  const overAt = Date.now();
  await daemon.start();
  return overAt;
}

const VICTIMS = ['chronosd', 'router', 'neo'] as const;

export const kill: Fault = {
  name: 'kill',
  title: 'kill -9',
  stores: ['sqlite', 'postgres', 'citus'],
  short: { strikes: 6, strikingMs: 14_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ house, random, round }: Scene) {
    const victim = VICTIMS[round % VICTIMS.length]!;
    if (victim === 'router') return { what: 'router', overAt: await killAndStart(house.router) };
    // A sleeping Neo cannot be killed; it must not be the only candidate either.
    const awake = house.neos.filter((user) => user.daemon ?? neoPid(user) !== undefined);
    if (victim === 'neo' && awake.length > 0) {
      const user = pick(random, awake);
      if (user.daemon) return { what: 'neo', overAt: await killAndStart(user.daemon) };
      killNeo(user);
      return { what: 'neo', overAt: Date.now() };
    }
    return { what: 'chronosd', overAt: await killAndStart(pick(random, house.replicas)) };
  },
};
