/** A tenth of the users have agents that hang, or answer 500. The alarms of the other users must not be affected. */
import type { Cluster } from '../../../support/cluster/cluster.ts';
import { pause } from '../../../support/cluster/processes.ts';
import { USUAL } from '../../../support/cluster/targets.ts';
import type { ClusterUser } from '../../../support/cluster/user.ts';
import { between, type Fault, ONE_RETRY_MS } from '../fault.ts';

const USERS = 20;
const HANGS = 'target-0';
const FAILS = 'target-1';
const DURATION_MS = 8_000;

const affectedUsers = ({ label }: ClusterUser) => label === HANGS || label === FAILS;

function repair({ targets }: Cluster): void {
  for (const label of [HANGS, FAILS]) targets.set(label, USUAL);
}

export const targets: Fault = {
  name: 'targets',
  title: 'a tenth of the targets hang or fail',
  stores: ['sqlite', 'postgres'],
  config: () => ({ users: { target: USERS }, settings: { ROUTER_WAKE_TIMEOUT_MS: '5000' } }),
  affects: affectedUsers,
  // Half of their alarms may fail only once, and end as failed. The others are delivered when their agent has
  // recovered.
  extras: (user, random) => (affectedUsers(user) && random() < 0.5 ? { max_failures: 1 } : {}),
  short: { strikes: 1, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    installation.targets.set(HANGS, { kind: 'hang' });
    installation.targets.set(FAILS, { kind: 'fail' });
    await pause(between(random, 0.8, 1.2) * DURATION_MS);
    repair(installation);
    return { what: `${HANGS} hung, ${FAILS} failed`, endedAt: Date.now() };
  },
};
