/** PostgreSQL stores in separate databases, on one server that the test file starts. */

import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import type { StoreUnderTest } from './store-under-test.ts';

/** Text is ordered by the rules of a language by default, as on most servers. */
const CLAUSES = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";

function open(uri: string): Promise<AlarmStore> {
  return openPostgresStore({ uri, clock: systemClock, log: silentLogger, poolSize: 4, onRemoteDue: () => {} });
}

export type PostgresUnderTest = {
  openUnderTest(): Promise<StoreUnderTest>;
  close(): Promise<void>;
};

/** Starts the server and prepares an empty store that every test gets a copy of. */
export async function startPostgresUnderTest(): Promise<PostgresUnderTest> {
  const server: PostgresServer = await startPostgres();
  const template = await server.createDatabase(CLAUSES);
  await (await open(server.uri(template))).close();
  // Emptied databases are reused: a copy costs half a second of CPU, and there are a hundred tests.
  const emptied: string[] = [];
  const { rows } = await server.run("SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'public'", template);
  const tables = (rows as { relname: string }[]).map(({ relname }) => relname);
  const filled = await Promise.all(
    tables.map(async (table) => (await server.run(`SELECT 1 FROM ${table} LIMIT 1`, template)).rows.length > 0),
  );
  const empty = tables.filter((_, index) => !filled[index]).map((table) => `DELETE FROM ${table}`);

  return {
    async openUnderTest() {
      const database = emptied.pop() ?? (await server.createDatabase(`TEMPLATE ${template}`));
      const instances: AlarmStore[] = [];
      const another = async () => {
        const store = await open(server.uri(database));
        instances.push(store);
        return store;
      };
      const closeAll = () => Promise.all(instances.splice(0).map((store) => store.close()));
      return {
        store: await another(),
        async reopen() {
          await closeAll();
          return another();
        },
        async die() {
          const now = 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)';
          await server.run(`UPDATE replicas SET given_up_at = ${now}`, database);
          return another();
        },
        openSecond: another,
        async close() {
          await closeAll();
          await server.run(empty.join('; '), database);
          emptied.push(database);
        },
      };
    },
    close: () => server.remove(),
  };
}
