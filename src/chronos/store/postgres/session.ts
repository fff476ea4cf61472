/** What every connection is told before it is used, and what it must be able to promise. */
import type pg from 'pg';
import { ReveilleError } from '../../../wire/errors.ts';

/** How long the server may work on one statement, locks included, before it gives up. */
export const STATEMENT_TIMEOUT_MS = 5_000;

/**
 * Settings of the session. Those that the engine at hand does not have are left out.
 *
 * - A transaction whose client has stopped in the middle (SIGSTOP, a dead machine) must not hold its rows for ever.
 * - The statements rest on READ COMMITTED: what waited for a row sees the row's newest version.
 * - The tables are always reached through an index. A plan made while they were empty, and kept, must not read them
 *   from end to end when they have grown.
 * - Citus can only send a statement to one server when it knows the bucket, so there each is planned with its values.
 */
const SETTINGS: Record<string, string> = {
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  idle_in_transaction_session_timeout: '10000',
  default_transaction_isolation: 'read committed',
  synchronous_commit: 'on',
  enable_seqscan: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
};

/**
 * `synchronous_commit`: whatever a role's or a database's default is, this session waits until a commit is on this
 * server's disk and, where there are synchronous standbys, on theirs. `remote_apply` promises more and is left as it
 * is; `remote_write`, `local` and `off` promise less and are raised.
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

const LOOK = `
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
 * @throws ReveilleError `unavailable` when the server is a read-only standby (retryable: it may be promoted), keeps its
 *   text in another encoding than UTF-8, or would not keep what it acknowledges
 */
export async function prepareSession(client: pg.ClientBase, name: string): Promise<void> {
  const [, looked] = await Promise.all([
    client.query(PREPARE, [Object.keys(SETTINGS), Object.values(SETTINGS)]),
    client.query<(string | null)[]>({ text: LOOK, rowMode: 'array' }),
  ]);
  const [encoding, readOnly, synchronousCommit, fsync] = looked.rows[0]!;
  if (encoding !== 'UTF8')
    throw unfit(
      `the database ${name} keeps text as ${encoding}; alarms hold any language: create it with ENCODING 'UTF8' TEMPLATE template0`,
    );
  if (readOnly !== 'off')
    throw unfit(`${name} takes no writes: it is a read-only standby, or its role may only read`, true);
  if (!DURABLE.includes(synchronousCommit ?? null))
    throw unfit(`${name} keeps synchronous_commit at ${synchronousCommit} where on is needed`);
  if (fsync === 'off')
    throw unfit(`${name} runs with fsync off and would lose acknowledged alarms in a power cut; turn it on`);
}
