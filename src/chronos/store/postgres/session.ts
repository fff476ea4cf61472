/** Session settings of every connection, and checks of the server's guarantees. */
import type pg from 'pg';
import { ReveilleError } from '../../../wire/errors.ts';

/** The server's time limit for one statement, lock waits included. */
export const STATEMENT_TIMEOUT_MS = 5_000;

/**
 * Settings of the session; settings that the engine lacks are skipped.
 *
 * - A transaction whose client has stopped in the middle (SIGSTOP, a dead machine) must not hold its rows for ever.
 * - The statements rely on READ COMMITTED: a statement that waited for a row sees the row's newest version.
 * - The tables are always read through an index. A cached plan from the time when they were empty must not scan them
 * when they have grown.
 * - Citus sends a statement to one server only when it knows the bucket, so there each statement is planned with its
 * values.
 */
const SETTINGS: Record<string, string> = {
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  idle_in_transaction_session_timeout: '10000',
  default_transaction_isolation: 'read committed',
  synchronous_commit: 'on',
  enable_seqscan: 'off',
  enable_mergejoin: 'off',
  random_page_cost: '1.1',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
};

/**
 * `synchronous_commit`: whatever the default of the role or database is, a commit waits until it is on this server's
 * disk and on the disks of synchronous standbys. `remote_apply` guarantees more and stays; `remote_write`, `local` and
 * `off` guarantee less and are raised.
 */
const PREPARE = `
  SELECT set_config(known.name,
    CASE WHEN known.name = 'synchronous_commit' AND known.setting = 'remote_apply' THEN 'remote_apply'
      WHEN known.name = 'plan_cache_mode' AND EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')
      THEN 'force_custom_plan'
      ELSE wanted.value END,
    false)
  FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
  JOIN pg_settings AS known ON known.name = wanted.name`;

const INSPECT = `
  SELECT current_setting('server_encoding'), current_setting('transaction_read_only'),
    current_setting('synchronous_commit', true), current_setting('fsync', true)`;

const DURABLE: (string | null)[] = ['on', 'remote_apply', null];

function unfit(message: string, retryable = false): ReveilleError {
  return new ReveilleError('unavailable', message, { retryable });
}

/**
 * Prepares a new connection.
 *
 * @param name the server's, for messages
 * @throws ReveilleError `unavailable` when the server is a read-only standby (retryable: it may be promoted), stores
 *   text in another encoding than UTF-8, or could lose acknowledged data
 */
export async function prepareSession(client: pg.ClientBase, name: string): Promise<void> {
  const [, inspection] = await Promise.all([
    client.query(PREPARE, [Object.keys(SETTINGS), Object.values(SETTINGS)]),
    client.query<(string | null)[]>({ text: INSPECT, rowMode: 'array' }),
  ]);
  const [encoding, readOnly, synchronousCommit, fsync] = inspection.rows[0]!;
  if (encoding !== 'UTF8')
    throw unfit(
      `the database ${name} stores text as ${encoding}; alarms need UTF-8: create it with ENCODING 'UTF8' TEMPLATE template0`,
    );
  if (readOnly !== 'off')
    throw unfit(`${name} accepts no writes: it is a read-only standby, or its role may only read`, true);
  if (!DURABLE.includes(synchronousCommit ?? null))
    throw unfit(`${name} has synchronous_commit ${synchronousCommit}; on is required`);
  if (fsync === 'off')
    throw unfit(`${name} runs with fsync off and would lose acknowledged alarms in a power cut; turn it on`);
}
