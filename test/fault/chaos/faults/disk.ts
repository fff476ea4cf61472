/** The disk of the data is completely full for some time. */
import { pause } from '../../../support/cluster/processes.ts';
import { noSmallDisk } from '../../../support/cluster/small-disk.ts';
import { between, type Fault, ONE_RETRY_MS } from '../fault.ts';

const MEGABYTES = { sqlite: 16, postgres: 96 };

export const disk: Fault = {
  name: 'disk',
  title: 'disk full',
  stores: ['sqlite', 'postgres'],
  missing: () => noSmallDisk() || undefined,
  config: (store) => ({
    replicas: store === 'sqlite' ? 1 : 2,
    diskMegabytes: store === 'sqlite' ? MEGABYTES.sqlite : MEGABYTES.postgres,
  }),
  short: { strikes: 2, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    installation.disk.fill();
    await pause(between(random, 2000, 4000));
    installation.disk.free();
    // PostgreSQL stops when it cannot write its log; the operator who frees the disk starts it again.
    const stopped = installation.plan.store === 'postgres' && !installation.database.running;
    if (stopped) await installation.database.start();
    return { what: stopped ? 'full, PostgreSQL stopped' : 'full', endedAt: Date.now() };
  },
};
