/** PostgreSQL is stopped with mode `immediate`, like a power failure, and started again. */
import { between, type Fault, ONE_RETRY_MS } from '../fault.ts';

export const postgres: Fault = {
  name: 'postgres',
  title: 'PostgreSQL stopped immediate',
  stores: ['postgres'],
  short: { strikes: 3, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    await installation.database.interrupt(between(random, 0, 3000));
    return { what: 'PostgreSQL', endedAt: Date.now() };
  },
};
