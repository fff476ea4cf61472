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
  house: (store) => ({
    replicas: store === 'sqlite' ? 1 : 2,
    diskMegabytes: store === 'sqlite' ? MEGABYTES.sqlite : MEGABYTES.postgres,
  }),
  short: { strikes: 2, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ house, random }) {
    house.disk.fill();
    await pause(between(random, 2000, 4000));
    house.disk.free();
    // PostgreSQL stops when it cannot write its log; the operator who frees the disk starts it again.
    const fell = house.plan.store === 'postgres' && !house.database.running;
    if (fell) await house.database.start();
    return { what: fell ? 'full, PostgreSQL stopped' : 'full', overAt: Date.now() };
  },
};
