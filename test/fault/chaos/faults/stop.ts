/** A chronosd is stopped (SIGSTOP) until its leases have expired, and then continues. */
import { pause } from '../../../support/cluster/processes.ts';
import { between, type Fault, ONE_RETRY_MS, pick } from '../fault.ts';

/** Shorter than usual, so that many leases end within a campaign. */
const LEASE_SECONDS = 3;

export const stop: Fault = {
  name: 'stop',
  title: 'SIGSTOP past the lease',
  stores: ['sqlite', 'postgres'],
  config: (store) => ({
    replicas: store === 'sqlite' ? 1 : 4,
    settings: { CHRONOS_CLAIM_LEASE_SECONDS: String(LEASE_SECONDS) },
  }),
  short: { strikes: 3, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    const replica = pick(random, installation.replicas);
    replica.suspend();
    await pause(between(random, 1.2, 2.5) * LEASE_SECONDS * 1000);
    replica.resume();
    return { what: replica.name, endedAt: Date.now() };
  },
};
