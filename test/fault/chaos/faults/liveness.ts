/**
 * The row of a replica cannot be renewed, while its deliveries go on: the database refuses the proofs of one replica, or
 * of all of them, for some seconds. The one is given up, draws another row and goes on; all of them at once are not.
 */
import pg from 'pg';
import { pause } from '../../../support/cluster/processes.ts';
import { between, type Fault, ONE_RETRY_MS, pick } from '../fault.ts';

const refuse = (holder: string | undefined) => `
  CREATE OR REPLACE FUNCTION chaos_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN IF NEW.given_up_at IS NULL THEN RAISE 'refused by chaos'; END IF; RETURN NEW; END $$;
  CREATE OR REPLACE TRIGGER chaos_refuse BEFORE UPDATE ON replicas FOR EACH ROW
  ${holder === undefined ? '' : `WHEN (OLD.holder = ${holder})`} EXECUTE FUNCTION chaos_refuse()`;

export const liveness: Fault = {
  name: 'liveness',
  title: 'row of a replica cannot be renewed',
  stores: ['postgres'],
  config: () => ({ replicas: 3 }),
  short: { strikes: 4, strikingMs: 16_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random, round }) {
    const client = new pg.Client({ connectionString: installation.database.directUri });
    await client.connect();
    try {
      const { rows } = await client.query<{ holder: string }>('SELECT holder FROM replicas WHERE given_up_at IS NULL');
      const one = round % 2 === 0 && rows.length > 0 ? pick(random, rows).holder : undefined;
      await client.query(refuse(one));
      await pause(between(random, 2500, 5000));
      await client.query('DROP TRIGGER IF EXISTS chaos_refuse ON replicas');
      return { what: one === undefined ? 'all replicas' : 'one replica', endedAt: Date.now() };
    } finally {
      await client.end();
    }
  },
};
