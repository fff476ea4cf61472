/**
 * Copies of the tables with another number of buckets, kept in sync with the originals while those are in use. A
 * trigger repeats every change in its own transaction. Unchanged rows are copied in batches.
 */
import type pg from 'pg';
import { isConflict } from '../postgres/postgres-error.ts';
import { bucketOf, OWNED_TABLES } from './buckets.ts';

/** The schema of the copies, and the schema of the originals after the swap until they are dropped. */
export const INCOMING = 'chronos_incoming';
export const OUTGOING = 'chronos_outgoing';

/** The views of the tables, for readers of the database. */
const VIEWS = ['alarms', 'occurrences', 'fire_attempts'];

/** Rows that one transaction copies and locks. */
const BATCH = 1000;
/** How often a batch that conflicts with other transactions is tried. */
const MOST_ATTEMPTS = 20;

type Shape = {
  name: string;
  /** The column that determines the bucket. */
  bucket: string;
  /** All columns except the bucket and computed ones. */
  columns: string[];
  /** The primary key without the bucket. */
  key: string[];
};

async function column(client: pg.Client, sql: string, values: unknown[] = []): Promise<string[]> {
  const { rows } = await client.query<string[]>({ text: sql, values, rowMode: 'array' });
  return rows.map(([value]) => value!);
}

async function readShape(client: pg.Client, name: string, count: number): Promise<Shape> {
  const columns = await column(
    client,
    `SELECT attname FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attname <> 'bucket'
     ORDER BY attnum`,
    [name],
  );
  const key = await column(
    client,
    `SELECT a.attname FROM pg_index AS i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
     JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
     WHERE i.indrelid = $1::regclass AND i.indisprimary AND a.attname <> 'bucket' ORDER BY k.place`,
    [name],
  );
  return { name, bucket: bucketOf(OWNED_TABLES[name as keyof typeof OWNED_TABLES], count), columns, key };
}

/** Creates an empty table like the original, with indexes of the same names. */
async function makeCopy(client: pg.Client, name: string, count: number): Promise<void> {
  await client.query(`CREATE TABLE ${INCOMING}.${name} (LIKE ${name} INCLUDING ALL EXCLUDING INDEXES)`);
  const [options] = await column(
    client,
    `SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = $1::regclass`,
    [name],
  );
  if (options) await client.query(`ALTER TABLE ${INCOMING}.${name} SET (${options})`);
  const keys = await column(
    client,
    `SELECT 'ADD CONSTRAINT ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
     WHERE conrelid = $1::regclass AND contype IN ('p', 'u')`,
    [name],
  );
  for (const key of keys) await client.query(`ALTER TABLE ${INCOMING}.${name} ${key}`);
  const indexes = await column(
    client,
    `SELECT replace(pg_get_indexdef(i.indexrelid), ' ON ' || quote_ident(n.nspname) || '.', ' ON ${INCOMING}.')
     FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE i.indrelid = $1::regclass AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid)`,
    [name],
  );
  for (const index of indexes) await client.query(index);
  const bucketDefault = count === 1 ? 'SET DEFAULT 0' : 'DROP DEFAULT';
  await client.query(`ALTER TABLE ${INCOMING}.${name} ALTER COLUMN bucket ${bucketDefault}`);
}

function triggerFor({ name, bucket, columns, key }: Shape): string {
  const of = (row: string) => bucket.replace('(md5(', `(md5(${row}.`);
  const same = key.map((each) => `${each} = OLD.${each}`).join(' AND ');
  return `
    CREATE FUNCTION ${INCOMING}.follow_${name}() RETURNS trigger LANGUAGE plpgsql AS $follow$
    BEGIN
      IF TG_OP <> 'INSERT' THEN
        DELETE FROM ${INCOMING}.${name} WHERE bucket = ${of('OLD')} AND ${same};
      END IF;
      IF TG_OP <> 'DELETE' THEN
        INSERT INTO ${INCOMING}.${name} (bucket, ${columns.join(', ')})
        VALUES (${of('NEW')}, ${columns.map((each) => `NEW.${each}`).join(', ')});
      END IF;
      RETURN NULL;
    END $follow$;
    CREATE TRIGGER chronos_follow AFTER INSERT OR UPDATE OR DELETE ON ${name}
    FOR EACH ROW EXECUTE FUNCTION ${INCOMING}.follow_${name}()`;
}

/** Removes copies and triggers, also those of an earlier attempt. */
export async function dropCopies(client: pg.Client): Promise<void> {
  // Dropping the functions drops their triggers.
  await client.query(`DROP SCHEMA IF EXISTS ${INCOMING} CASCADE; DROP SCHEMA IF EXISTS ${OUTGOING} CASCADE`);
}

/** Creates empty copies that follow the originals from now on. Call it in a transaction of its own. */
export async function createCopies(client: pg.Client, count: number): Promise<void> {
  await client.query(`CREATE SCHEMA ${INCOMING}`);
  for (const name of Object.keys(OWNED_TABLES)) {
    await makeCopy(client, name, count);
    await client.query(triggerFor(await readShape(client, name, count)));
  }
}

/** Retries a statement that PostgreSQL aborted because of a deadlock: claims lock rows in due order. */
async function retryOnConflict<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (thrown) {
      if (!isConflict(thrown) || attempt === MOST_ATTEMPTS) throw thrown;
    }
  }
}

/**
 * Copies the existing rows of a table. Each batch is locked against changes until its copy is committed. So a later
 * change finds the copy, and an earlier change has already written its row.
 *
 * @param report called after each batch with its number of rows
 */
export async function copyRows(
  client: pg.Client,
  name: string,
  count: number,
  report: (rows: number) => void,
): Promise<void> {
  const { bucket, columns, key } = await readShape(client, name, count);
  // The order in which transactions over several buckets change rows: most of them never conflict with a copy.
  const order = ['bucket', ...key];
  const keyColumns = order.join(', ');
  let last: unknown[] | undefined;
  for (;;) {
    const afterLast = last ? `WHERE (${keyColumns}) > (${order.map((_, index) => `$${index + 1}`).join(', ')})` : '';
    const text = `
      WITH page AS (SELECT * FROM ${name} ${afterLast} ORDER BY ${keyColumns} LIMIT ${BATCH} FOR SHARE), copied AS (
        INSERT INTO ${INCOMING}.${name} (bucket, ${columns.join(', ')})
        SELECT ${bucket}, ${columns.join(', ')} FROM page ON CONFLICT (${keyColumns}) DO NOTHING
      )
      SELECT ${keyColumns}, count(*) OVER () FROM page ORDER BY ${order.map((each) => `${each} DESC`).join(', ')} LIMIT 1`;
    const rows = await retryOnConflict(async () => {
      const answer = await client.query<unknown[]>({ text, values: last ?? [], rowMode: 'array' });
      return answer.rows;
    });
    const found = rows[0];
    if (!found) return;
    report(Number(found.at(-1)));
    last = found.slice(0, -1);
  }
}

/** Replaces the originals with the copies. Call it in a transaction that has locked all tables. */
export async function swapTables(client: pg.Client): Promise<void> {
  const [schema] = await column(client, 'SELECT quote_ident(current_schema())');
  await client.query(`CREATE SCHEMA ${OUTGOING}`);
  // A view belongs to its tables, whatever their names.
  const views = await column(
    client,
    `SELECT quote_ident(viewname) || ' AS ' || definition FROM pg_views
     WHERE schemaname = current_schema() AND viewname = ANY ($1::text[])`,
    [VIEWS],
  );
  await client.query(`DROP VIEW IF EXISTS ${VIEWS.join(', ')}`);
  for (const name of Object.keys(OWNED_TABLES)) {
    await client.query(`DROP TRIGGER chronos_follow ON ${name}`);
    await client.query(`ALTER TABLE ${name} SET SCHEMA ${OUTGOING}`);
    await client.query(`ALTER TABLE ${INCOMING}.${name} SET SCHEMA ${schema}`);
  }
  for (const view of views) await client.query(`CREATE VIEW ${view}`);
}
