/** The stores of campaigns: SQLite, one PostgreSQL server, and two PostgreSQL clusters (Patroni, Citus). */
import { reshard } from '../../../src/chronos/store/sharding/reshard.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { ClusterConfig } from '../../support/cluster/cluster.ts';
import { CitusCluster, noCitus } from '../../support/postgres/citus.ts';
import { noPatroni, PatroniCluster } from '../../support/postgres/patroni.ts';

export const CAMPAIGN_STORES = ['sqlite', 'postgres', 'patroni', 'citus'] as const;
export type CampaignStore = (typeof CAMPAIGN_STORES)[number];

/** The stores that every machine has. */
export const USUAL_STORES: readonly CampaignStore[] = ['sqlite', 'postgres'];

/** A few buckets per worker. */
const CITUS_BUCKETS = 16;

/** Why the store is impossible here, with the remedy; otherwise nothing. */
export function missingFor(store: CampaignStore): string | undefined {
  if (store === 'patroni') return noPatroni();
  return store === 'citus' ? noCitus() : undefined;
}

async function startCitus(): Promise<CitusCluster> {
  const cluster = await CitusCluster.start();
  try {
    await reshard({ uri: cluster.uri, buckets: CITUS_BUCKETS, citus: true, clock: systemClock, log: silentLogger });
    return cluster;
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

/** The settings of an installation on it. */
export function installationConfig(store: CampaignStore): Pick<ClusterConfig, 'store' | 'replicas' | 'engine'> {
  if (store === 'sqlite') return { store, replicas: 1 };
  if (store === 'patroni') return { store: 'postgres', replicas: 2, engine: () => PatroniCluster.start('hosts') };
  if (store === 'citus') return { store: 'postgres', replicas: 2, engine: startCitus };
  return { store, replicas: 3 };
}
