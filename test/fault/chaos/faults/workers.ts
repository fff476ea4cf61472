/** A worker of Citus, or its coordinator, is killed with all its processes, and restarted. */
import { pause } from '../../../support/cluster/processes.ts';
import { CitusCluster } from '../../../support/postgres/citus.ts';
import { between, type Fault, ONE_RETRY_MS, pick } from '../fault.ts';

export const workers: Fault = {
  name: 'workers',
  title: 'Citus workers killed',
  stores: ['citus'],
  short: { strikes: 4, strikingMs: 40_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random, round }) {
    const cluster = installation.engine;
    if (!(cluster instanceof CitusCluster)) throw new Error('this installation has no Citus');
    const isCoordinator = round % 4 === 3;
    const victim = isCoordinator ? cluster.coordinator : pick(random, cluster.workers);
    if (!victim) throw new Error('a cluster given by URI cannot be struck; leave REVEILLE_TEST_CITUS_URI unset');
    await victim.kill();
    await pause(between(random, 0, 3000));
    await victim.start();
    return { what: isCoordinator ? 'coordinator' : 'worker', endedAt: Date.now() };
  },
};
