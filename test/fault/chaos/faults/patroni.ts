/**
 * Patroni's primary is killed with its machine, is frozen, is cut off from the cluster alone (clients still reach it),
 * or from everything. It returns when another one leads.
 */
import { pause } from '../../../support/cluster/processes.ts';
import { PatroniCluster } from '../../../support/postgres/patroni.ts';
import { between, type Fault, type FaultContext, type Strike } from '../fault.ts';

/** Acts on a primary; returns the function that reverts it. */
const WAYS: { what: string; harm: (cluster: PatroniCluster, leader: number) => Promise<() => void> | (() => void) }[] =
  [
    {
      what: 'primary killed',
      async harm(cluster, leader) {
        await cluster.kill(leader);
        return () => cluster.revive(leader);
      },
    },
    { what: 'primary frozen', harm: (cluster, leader) => cluster.freeze(leader) },
    { what: 'primary cut off from the cluster', harm: (cluster, leader) => cluster.cut(leader, ['cluster']) },
    { what: 'primary cut off', harm: (cluster, leader) => cluster.cut(leader, ['cluster', 'clients']) },
  ];

/** Another leader exists within Patroni's ttl plus the time that the machine needs. */
const PATIENCE_MS = 90_000;

async function strike({ installation, random, round }: FaultContext): Promise<Strike> {
  const cluster = installation.engine;
  if (!(cluster instanceof PatroniCluster)) throw new Error('this installation has no Patroni');
  const leader = await cluster.leader();
  if (leader === undefined) throw new Error('there was no leader before the strike');
  const { what, harm } = WAYS[round % WAYS.length]!;
  const undo = await harm(cluster, leader);
  const end = Date.now() + PATIENCE_MS;
  let newLeader: number | undefined;
  while (newLeader === undefined || newLeader === leader) {
    if (Date.now() > end) throw new Error(`no standby took over: ${what}`);
    await pause(100);
    newLeader = await cluster.leaderBut(leader);
  }
  const endedAt = Date.now();
  await pause(between(random, 0, 3000));
  undo();
  await cluster.whole();
  return { what, endedAt };
}

function primaries(through: 'hosts' | 'haproxy', title: string): Fault {
  return {
    name: `primaries-${through}`,
    title,
    stores: ['patroni'],
    config: () => ({ engine: () => PatroniCluster.start(through) }),
    short: { strikes: WAYS.length, strikingMs: 150_000, recoveringMs: 0, drainMs: 60_000 },
    strike,
  };
}

export const primariesOfHosts = primaries('hosts', 'Patroni, a URI of three hosts');
export const primariesOfProxy = primaries('haproxy', 'Patroni behind HAProxy');
