/** The requirements of a store on PostgreSQL before it opens. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { PrimaryPool } from '../../../src/chronos/store/postgres/pool.ts';
import { statement } from '../../../src/chronos/store/postgres/statement.ts';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { createDue, NOW } from '../../contract/store/fixtures.ts';
import { reservePort } from '../../support/ports.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { startStandby } from '../../support/postgres/standby.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

const open = (uri: string) => openPostgresStore({ uri, clock: systemClock, log: silentLogger, poolSize: 2 });

async function assertRefused(
  uri: string,
  { code, retryable, message }: { code: string; retryable: boolean; message: RegExp },
): Promise<void> {
  await assert.rejects(open(uri), (error) => {
    assert.ok(error instanceof ReveilleError, String(error));
    assert.deepEqual([error.code, error.retryable], [code, retryable], error.message);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /an-embedded-password|\n/);
    return true;
  });
}

/** A role without rights, in a database of its own. */
async function makeGuest(database: string, name: string): Promise<string> {
  await server.run(`CREATE ROLE ${name} LOGIN PASSWORD 'guest'; GRANT CONNECT ON DATABASE ${database} TO ${name}`);
  return server.uri(database, name, 'guest');
}

test('a server that is not there may come: retryable', async () => {
  const uri = `postgres://u:an-embedded-password@127.0.0.1:${await reservePort()}/db`;
  await assertRefused(uri, { code: 'unavailable', retryable: true, message: /cannot be reached \(.*ECONNREFUSED/ });
});

test('a wrong password and a missing database are for the operator to correct', async () => {
  await assertRefused(server.uri('postgres', 'reveille', 'wrong'), {
    code: 'unavailable',
    retryable: false,
    message: /password authentication failed.*check user and password/,
  });
  await assertRefused(server.uri('no_such_database'), {
    code: 'unavailable',
    retryable: false,
    message: /database "no_such_database" does not exist.*create the database/,
  });
});

test('a user who may not create tables learns what to grant', async () => {
  const database = await server.createDatabase();
  await assertRefused(await makeGuest(database, 'guest_without_create'), {
    code: 'unavailable',
    retryable: false,
    message: /may not create tables in .*permission denied for schema public.*grant it CREATE on the schema/,
  });
});

test('a user who may only use the tables can open the store once they exist', async () => {
  const database = await server.createDatabase();
  await (await open(server.uri(database))).close();
  const uri = await makeGuest(database, 'guest_of_tables');
  await assertRefused(uri, { code: 'unavailable', retryable: false, message: /permission denied for table/ });
  await server.run('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest_of_tables', database);
  const store = await open(uri);
  await createDue(store, NOW);
  await store.close();
});

test('a schema of its own in a database of another program is sufficient', async () => {
  const database = await server.createDatabase();
  await server.run('CREATE TABLE alarms (siren TEXT); CREATE SCHEMA chronos', database);
  await assertRefused(server.uri(database), {
    code: 'conflict',
    retryable: false,
    message: /contains tables of another program \(relation "alarms" already exists\)/,
  });
  const store = await open(`${server.uri(database)}?options=-c%20search_path%3Dchronos`);
  await createDue(store, NOW);
  await store.close();
  const { rows } = await server.run('SELECT (SELECT count(*) FROM chronos.alarms) AS n', database);
  assert.deepEqual(rows, [{ n: '1' }]);
});

test('a database that a newer version wrote is left unchanged', async () => {
  const database = await server.createDatabase();
  await (await open(server.uri(database))).close();
  await server.run(
    "INSERT INTO chronos_migrations SELECT max(version) + 1, 'from-the-future', 'f', 0 FROM chronos_migrations",
    database,
  );
  await assertRefused(server.uri(database), {
    code: 'conflict',
    retryable: false,
    message: /was written by a newer Reveille \(schema \d+, this one knows \d+\); start that version/,
  });
});

test('a database with another migration history is left unchanged', async () => {
  const database = await server.createDatabase();
  await (await open(server.uri(database))).close();
  await server.run("UPDATE chronos_migrations SET sha256 = 'x' WHERE version = 2", database);
  await assertRefused(server.uri(database), {
    code: 'conflict',
    retryable: false,
    message: /has applied migration 2 \(agent-auth\) with other contents/,
  });
});

test('text in an encoding other than UTF-8 is refused', async () => {
  for (const encoding of ['LATIN1', 'SQL_ASCII']) {
    const database = await server.createDatabase(`ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`);
    await assertRefused(server.uri(database), {
      code: 'unavailable',
      retryable: false,
      message: new RegExp(`stores text as ${encoding}; .*ENCODING 'UTF8'`),
    });
  }
});

test('a read-only standby is refused for as long as it is one, and so is a role that may only read', async (t) => {
  const standby = await startStandby(server);
  t.after(() => standby.remove());
  const message = /accepts no writes: it is a read-only standby, or its role may only read/;
  await assertRefused(standby.uri(), { code: 'unavailable', retryable: true, message });
  const both = `postgres://reveille:an-embedded-password@127.0.0.1:${standby.port},127.0.0.1:${await reservePort()}/postgres`;
  await assertRefused(both, {
    code: 'unavailable',
    retryable: true,
    message: /no server of CHRONOS_POSTGRES_URI accepts writes: .*read-only standby.*ECONNREFUSED/,
  });
  await server.run("CREATE ROLE reader LOGIN PASSWORD 'r'; ALTER ROLE reader SET default_transaction_read_only = on");
  await assertRefused(server.uri('postgres', 'reader', 'r'), { code: 'unavailable', retryable: true, message });
});

test('a server that would lose acknowledged writes is refused', async (t) => {
  const careless = await startPostgres({ fsync: 'off' });
  t.after(() => careless.remove());
  await assertRefused(careless.uri(), { code: 'unavailable', retryable: false, message: /runs with fsync off/ });
});

test("a role's defaults do not weaken the session, and stronger ones are kept", async () => {
  const database = await server.createDatabase();
  const settings: [set: string, ...wanted: string[]][] = [
    ['synchronous_commit', 'off', 'on'],
    ['synchronous_commit', 'local', 'on'],
    ['synchronous_commit', 'remote_write', 'on'],
    ['synchronous_commit', 'remote_apply', 'remote_apply'],
    ['default_transaction_isolation', 'serializable', 'read committed'],
    ['statement_timeout', '0', '5s'],
    ['idle_in_transaction_session_timeout', '0', '10s'],
  ];
  for (const [name, value, wanted] of settings) {
    await server.run(`ALTER ROLE reveille SET ${name} = '${value}'`);
    const pool = new PrimaryPool(parseAddress(server.uri(database)), {
      size: 1,
      clock: systemClock,
      log: silentLogger,
    });
    const [row] = await pool.query(statement('show', `SELECT current_setting('${name}')`), []);
    assert.deepEqual(row, [wanted], `${name} = ${value}`);
    await pool.close();
    await server.run(`ALTER ROLE reveille RESET ${name}`);
  }
});

test('the keys are compared byte by byte in a database that orders text by a language', async () => {
  const database = await server.createDatabase(
    "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'",
  );
  const store = await open(server.uri(database));
  const owners = ['B', 'a', 'C', '_', 'b', '-'];
  for (const owner of owners)
    await store.enrollKey({ owner, label: owner, publicKey: 'k', source: 'enrolled', enrolledAt: 1, revokedAt: null });
  const listed = (await store.listKeys({ limit: 10 })).map(({ owner }) => owner);
  assert.deepEqual(listed, owners.toSorted());
  await store.close();
});
