/** Installs the audit triggers in a store. Run it once, after the schema was created and before the first alarm. */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

const scriptOf = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/** The file may be in use by its chronosd, which notices the change by itself. */
export function installSqliteAudit(path: string): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  try {
    db.exec(`BEGIN IMMEDIATE; ${scriptOf('./sqlite.sql')} COMMIT`);
  } finally {
    db.close();
  }
}

/** Manipulates a SQLite store as an attacker would, in statements that fit PostgreSQL's tables too. */
export function tamperWithSqlite(path: string, sql: string): void {
  const db = new DatabaseSync(path, { timeout: 5_000, enableForeignKeyConstraints: false });
  try {
    db.exec(scriptOf('./sqlite-tampering.sql'));
    db.exec(sql);
  } finally {
    db.close();
  }
}

/** What {@link tamperWithSqlite} sends to PostgreSQL. */
export const tamperingWithPostgres = (sql: string) => `${scriptOf('./postgres-tampering.sql')} ${sql}`;

/** Replicas may be running. A second call leaves existing triggers in place. */
export async function installPostgresAudit(uri: string): Promise<void> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query("SELECT to_regclass('checker_audit') IS NOT NULL AS known");
    if (rows[0].known) return;
    await client.query(`BEGIN; ${scriptOf('./postgres.sql')} COMMIT`);
  } finally {
    await client.end();
  }
}
