/** Reads a PostgreSQL store. */
import pg from 'pg';
import type { Attempt } from '../../../src/chronos/alarm/alarm.ts';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { AuditEntry } from './history.ts';
import { notAStore, QUERIES, type Snapshot, type TableQuery, unreadable } from './snapshot.ts';

const TABLES = ['alarms', 'occurrences', 'fire_attempts'];
const CONNECT_LIMIT_MS = 10_000;

/** Byte columns; all contain UTF-8 text. */
function plain(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString('utf8') : value]),
  );
}

async function rowsOf<T>(client: pg.Client, { table, columns }: TableQuery): Promise<T[]> {
  const { rows } = await client.query(`SELECT ${columns} FROM ${table}`);
  return rows.map(plain) as T[];
}

/**
 * An occurrence may move to another row: the old row loses it, and the new one gets it, in one transaction. That is one
 * change.
 */
function movesJoined(entries: readonly AuditEntry[]): AuditEntry[] {
  const joined: AuditEntry[] = [];
  const lost = new Map<string, number>();
  for (const entry of entries) {
    if (entry.table === 'occurrences') {
      const { fireId } = (entry.after ?? entry.before)!;
      const name = `${entry.transaction} ${fireId}`;
      const at = lost.get(name);
      const earlier = at === undefined ? undefined : joined[at];
      lost.delete(name);
      if (entry.after === null) lost.set(name, joined.length);
      else if (entry.before === null && at !== undefined && earlier?.table === 'occurrences') {
        joined[at] = { ...earlier, after: entry.after };
        continue;
      }
    }
    joined.push(entry);
  }
  return joined;
}

async function auditOf(client: pg.Client): Promise<AuditEntry[]> {
  const { rows } = await client.query(
    'SELECT seq, transaction, "at", "table", before, after FROM checker_audit ORDER BY seq',
  );
  return movesJoined(rows as AuditEntry[]);
}

/** Reads one snapshot. */
async function readAll(client: pg.Client, name: string): Promise<Snapshot> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  const { rows } = await client.query<{ now: number; known: string[] }>(
    `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
       ARRAY(SELECT t FROM unnest($1::text[]) AS t WHERE to_regclass(t) IS NOT NULL) AS known`,
    [[...TABLES, 'checker_audit']],
  );
  const { now, known } = rows[0]!;
  const missing = TABLES.filter((table) => !known.includes(table));
  if (missing.length > 0) throw notAStore(name, missing);
  const snapshot: Snapshot = {
    now,
    alarms: await rowsOf(client, QUERIES.alarms),
    occurrences: await rowsOf(client, QUERIES.occurrences),
    attempts: (await rowsOf<Attempt>(client, QUERIES.attempts)).sort((one, other) => one.startedAt - other.startedAt),
    audit: known.includes('checker_audit') ? await auditOf(client) : null,
  };
  await client.query('COMMIT');
  return snapshot;
}

/** Large numbers arrive as text by default; times and counters all fit a double. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (id, format) => (id === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(id, format)) as never,
};

function serversOf(uri: string) {
  try {
    return parseAddress(uri);
  } catch (cause) {
    throw unreadable('--database', 'is not a valid address; write postgres://user:password@host:5432/database', cause);
  }
}

/** Reads from the first server of the address that is not a standby: a standby may lag behind. */
export async function readPostgres(uri: string): Promise<Snapshot> {
  const refusals: string[] = [];
  for (const { name, connection } of serversOf(uri)) {
    const client = new pg.Client({ ...connection, types, connectionTimeoutMillis: CONNECT_LIMIT_MS });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
      if (rows[0]!.standby) refusals.push(`${name} is a standby`);
      else return await readAll(client, name);
    } catch (cause) {
      if (cause instanceof ReveilleError) throw cause;
      refusals.push(`${name}: ${cause instanceof Error ? cause.message || cause.name : String(cause)}`);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  throw unreadable('the database', `cannot be read (${refusals.join('; ')}); start it, or correct --database`);
}
