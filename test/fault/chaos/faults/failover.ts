/** The primary is lost with its disk, and its synchronous standby is promoted. */
import { between, type Fault, ONE_RETRY_MS } from '../fault.ts';

export const failover: Fault = {
  name: 'failover',
  title: 'primary killed, standby promoted',
  stores: ['postgres'],
  config: () => ({ replicas: 2, standby: true }),
  short: { strikes: 2, strikingMs: 12_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random }) {
    const endedAt = await installation.database.failOver(between(random, 0, 2000));
    await installation.database.addStandby();
    return { what: 'primary', endedAt };
  },
};
