/** A chronosd is stopped (SIGSTOP) until others take it for gone, and then continues. */
import { pause } from '../../../support/cluster/processes.ts';
import { between, type Fault, ONE_RETRY_MS, pick } from '../fault.ts';

/** When replicas take another one for gone. */
const GONE_MS = 2000;

export const stop: Fault = {
  name: 'stop',
  title: 'SIGSTOP until it counts as gone',
  stores: ['sqlite', 'postgres'],
  config: (store) => ({ replicas: store === 'sqlite' ? 1 : 4 }),
  short: { strikes: 3, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    const replica = pick(random, installation.replicas);
    replica.suspend();
    await pause(between(random, 1.2, 3) * GONE_MS);
    replica.resume();
    return { what: replica.name, endedAt: Date.now() };
  },
};
