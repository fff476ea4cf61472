import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { installPostgresAudit, installSqliteAudit, tamperingWithPostgres, tamperWithSqlite } from './audit/install.ts';
import { type DaysAlarms, liveThrough } from './eventful-day.ts';
import type { ClientLine, ReceiverLine } from './history.ts';
import { openJournal, recordClient, recordReceiver } from './journal.ts';
import { runVerdict } from './program.ts';

const PROGRAM = join(import.meta.dirname, 'main.ts');
const folder = mkdtempSync(join(tmpdir(), 'reveille-verdict-'));
after(() => rmSync(folder, { recursive: true }));

type Said = { code: number; out: string; err: string };

async function verdict(...options: string[]): Promise<Said> {
  const said: Said = { code: 0, out: '', err: '' };
  const say = (text: string) => {
    said.out += `${text}\n`;
  };
  const complain = (text: string) => {
    said.err += `${text}\n`;
  };
  said.code = await runVerdict(options, { say, complain });
  return said;
}

/** The same as a process. */
async function verdictProcess(...options: string[]): Promise<Said> {
  const child = spawn(process.execPath, [PROGRAM, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode!, out, err };
}

/** Logs and database of a day. */
type Remains = { database: string; options: string[]; alarms: DaysAlarms; run: (sql: string) => Promise<unknown> };

/** Runs the day with logs on disk. */
async function remainsOf(name: string, store: AlarmStore): Promise<Pick<Remains, 'options' | 'alarms'>> {
  const [clientFile, receiverFile] = [join(folder, `${name}.client.jsonl`), join(folder, `${name}.receiver.jsonl`)];
  const client = openJournal<ClientLine>(clientFile, { log: 'client', clockToleranceMs: 5 });
  const receiver = openJournal<ReceiverLine>(receiverFile, { log: 'receiver', clockToleranceMs: 5, runsTurns: true });
  const { alarms, endsAt } = await liveThrough(store, recordClient(client.write), recordReceiver(receiver.write));
  client.close();
  receiver.close();
  const options = ['--client', clientFile, '--receiver', receiverFile, '--read-at', formatInstant(endsAt)];
  return { options, alarms };
}

type Engine = { name: string; begin: () => Promise<void>; live: () => Promise<Remains>; end: () => Promise<void> };

let server: PostgresServer;
let days = 0;

const ENGINES: readonly Engine[] = [
  {
    name: 'SQLite',
    begin: async () => {},
    async live() {
      const database = join(folder, `${days++}.db`);
      const store = openSqliteStore({ path: database, clock: systemClock, log: silentLogger });
      installSqliteAudit(database);
      const remains = await remainsOf(`sqlite-${days}`, store);
      await store.close();
      return {
        database,
        ...remains,
        run: async (sql) => tamperWithSqlite(database, sql),
      };
    },
    end: async () => {},
  },
  {
    name: 'PostgreSQL',
    async begin() {
      server = await startPostgres({ fsync: 'on', max_connections: '20' });
    },
    async live() {
      const name = await server.createDatabase();
      const database = server.uri(name);
      const store = await openPostgresStore({
        uri: database,
        clock: systemClock,
        log: silentLogger,
        poolSize: 2,
        notifications: false,
      });
      await installPostgresAudit(database);
      await installPostgresAudit(database);
      const remains = await remainsOf(`postgres-${days++}`, store);
      await store.close();
      return { database, ...remains, run: (sql) => server.run(tamperingWithPostgres(sql), name) };
    },
    end: () => server.remove(),
  },
];

for (const { name, begin, live, end } of ENGINES) {
  describe(`on ${name}`, () => {
    let day: Remains;
    before(async () => {
      await begin();
      day = await live();
    });
    after(end);

    /** Numbers of the violated invariants and all messages, for the day's database after some SQL. */
    async function brokenBy(sql: string): Promise<{ numbers: number[]; said: string }> {
      const fresh = sql === '' ? day : await live();
      if (sql !== '') await fresh.run(planIn(sql, fresh.alarms));
      const { code, out, err } = await verdict(...fresh.options, '--database', fresh.database, '--json');
      const { kept, findings, violations } = JSON.parse(out || `{"violations":[${JSON.stringify(err)}],"findings":[]}`);
      assert.equal(code, kept ? 0 : 1, err);
      const numbers = findings.flatMap(({ number, violations: some }: { number: number; violations: string[] }) =>
        some.length > 0 ? number : [],
      );
      return { numbers, said: violations.join('\n') };
    }

    test('a store that kept its promises gets a clean verdict, every invariant with its N', async () => {
      const { code, out, err } = await verdict(...day.options, '--database', day.database);
      assert.equal(code, 0, out + err);
      assert.equal(out.match(/^ ?\d+ {2}.* {2}0 in [1-9][\d,]* [a-z' ]+$/gm)?.length, 10, out);
      assert.match(out, /\n +1 {2}attempts in flight at a cancel\n/);
      assert.match(out, /every promise was kept\n$/);
    });

    test('a deleted alarm is lost', async () => {
      const { numbers, said } = await brokenBy(`
        DELETE FROM occurrences WHERE alarm_id = '{later}'; DELETE FROM alarms WHERE id = '{later}'`);
      assert.deepEqual(numbers, [1], said);
      assert.match(said, /alarm \S+ \("much later"\) was acknowledged and is not in the database/);
    });

    test("a second delivered attempt is found as a stale holder's, by the ledger and by the audit", async () => {
      const { numbers, said } = await brokenBy(`
        INSERT INTO fire_attempts (owner, alarm_id, started_at, fire_id, attempt, scheduled_for, finished_at, outcome, missed_count)
        SELECT owner, alarm_id, started_at + 40000, fire_id, 2, scheduled_for, finished_at + 40000, 'delivered', 0
        FROM fire_attempts WHERE alarm_id = '{plain}'`);
      assert.deepEqual(numbers, [7], said);
      assert.match(said, /attempt 1 at \S+ was delivered at \S+, and attempt 2 \(delivered, /);
      assert.match(said, /attempt 2 at \S+ was recorded as delivered by a process without the claim/);
    });

    test('a claim that no process can have any more is a violation', async () => {
      const { numbers, said } = await brokenBy(`
        UPDATE occurrences SET claimed_at = claimed_at - 600000 WHERE claimed_at IS NOT NULL`);
      // The audit saw the change as well.
      assert.deepEqual(numbers, [7, 9], said);
      assert.match(said, /\S+ was claimed at \S+, and at \S+ it still was/);
    });

    test('the audit shows a fence that a stale holder overwrote', async () => {
      const { numbers, said } = await brokenBy(
        `UPDATE occurrences SET fence = fence + 1 WHERE alarm_id = '{retrying}'`,
      );
      assert.deepEqual(numbers, [7], said);
      assert.match(said, /the fence of \S+ went from 1 to 2 without a claim/);
    });

    /** Only PostgreSQL names the holder. */
    const heldBy = (holder: unknown) => (name === 'PostgreSQL' ? `, holder = ${holder}` : '');

    test("a stale holder's write in a store without fences is a violation", async () => {
      // The second holder is active when the first one returns and records the outcome of its own attempt.
      const { numbers, said } = await brokenBy(`
        UPDATE occurrences SET attempt = 2, fence = 2, claimed_at = due_at${heldBy(7)} WHERE alarm_id = '{retrying}';
        INSERT INTO fire_attempts (owner, alarm_id, started_at, fire_id, attempt, scheduled_for, finished_at, outcome, missed_count)
        SELECT owner, alarm_id, claimed_at + 1, fire_id, 1, scheduled_for, claimed_at + 2, 'failed', 0
        FROM occurrences WHERE alarm_id = '{retrying}';
        UPDATE occurrences SET claimed_at = NULL${heldBy('NULL')} WHERE alarm_id = '{retrying}'`);
      assert.deepEqual(numbers, [7], said);
      assert.match(said, /attempt 1 at \S+ is in the ledger more than once/);
      assert.match(said, /the claim of attempt 2 at \S+ was ended without a line in the ledger/);
      assert.match(said, /attempt 1 at \S+ was recorded as failed by a process without the claim/);
    });

    test('another database is refused in a sentence', async () => {
      let other = join(folder, 'other.db');
      if (name === 'PostgreSQL') other = server.uri('postgres');
      else {
        const db = new DatabaseSync(other);
        db.exec('CREATE TABLE alarms (bell TEXT)');
        db.close();
      }
      const { code, out, err } = await verdict(...day.options, '--database', other);
      assert.equal(code, 2, err);
      assert.match(
        err,
        / is not a chronos store: it lacks .*occurrences, fire_attempts; name the chronos\.db of a data folder/,
      );
      assert.equal(out, '');
    });
  });
}

/** Inserts the ids of the day's alarms into a statement. */
function planIn(sql: string, alarms: DaysAlarms): string {
  return sql.replaceAll(/\{(\w+)\}/g, (_, name: keyof DaysAlarms) => alarms[name]);
}

describe('invalid input', () => {
  let options: string[];
  before(async () => {
    const [client, receiver] = [join(folder, 'c.jsonl'), join(folder, 'r.jsonl')];
    openJournal(client, { log: 'client', clockToleranceMs: 5 }).close();
    openJournal(receiver, { log: 'receiver', clockToleranceMs: 5 }).close();
    const database = join(folder, 'empty.db');
    await openSqliteStore({ path: database, clock: systemClock, log: silentLogger }).close();
    options = ['--client', client, '--receiver', receiver, '--database', database];
  });

  const refused = async (given: string[], complaint: RegExp) => {
    const { code, out, err } = await verdict(...given);
    assert.deepEqual([code, out], [2, ''], err);
    assert.match(err, complaint);
    assert.doesNotMatch(err, /\n {4}at /, 'no stack');
  };
  /** The options with one of them replaced. */
  const but = (name: string, value: string) => options.with(options.indexOf(name) + 1, value);

  test('empty logs and an empty store have no violations, and report that there was nothing to judge', async () => {
    const { code, out } = await verdictProcess(...options);
    assert.equal(code, 0);
    assert.equal(out.match(/nothing to judge: no /g)?.length, 10, out);
    assert.match(out, /note: the database has no audit/);
  });

  test('missing, unknown and invalid options are named', async () => {
    await refused([], /^--client and --receiver and --database must be given\n\nusage: npm run verdict/);
    await refused([...options, '--loud'], /^Unknown option '--loud'/);
    await refused([...options, '--read-at', 'noon'], /^--read-at must be an RFC 3339 instant .* \(got noon\)/);
    await refused(
      [...options, '--max-failures', '0'],
      /^--max-failures must be a whole number of at least 1 \(got 0\)/,
    );
    const { code, out } = await verdictProcess('--help');
    assert.equal(code, 0);
    assert.match(out, /^usage: [\s\S]*\nexample: /);
  });

  test('logs with an incomplete last line are judged, invalid ones are not', async () => {
    const torn = join(folder, 'torn.jsonl');
    openJournal(torn, { log: 'client', clockToleranceMs: 5 }).close();
    appendFileSync(torn, '{"event"');
    const { code, out } = await verdict(...but('--client', torn));
    assert.equal(code, 0);
    assert.match(out, /note: the last line of \S+torn\.jsonl is incomplete and is ignored/);
    appendFileSync(torn, '\n');
    await refused(but('--client', torn), /torn\.jsonl line 2 is not JSON/);
    await refused(but('--receiver', join(folder, 'none')), /none cannot be read: there is no such file/);
  });

  test('unreadable databases are named', async () => {
    const file = join(folder, 'text.db');
    writeFileSync(file, 'not a database, but long enough to have a header of its own'.repeat(20));
    await refused(but('--database', file), /text\.db cannot be read as a chronos store \(file is not a database\)/);
    await refused(but('--database', folder), /is not a file; name the chronos\.db inside the data folder/);
    await refused(but('--database', join(folder, 'none.db')), /none\.db cannot be read: there is no such file/);
    await refused(
      but('--database', 'postgres://u:p@127.0.0.1:1/x'),
      /^the database cannot be read \(127\.0\.0\.1:1\/x: .*ECONNREFUSED/,
    );
    const older = join(folder, 'older.db');
    const db = new DatabaseSync(older);
    for (const table of ['alarms', 'progress', 'occurrences', 'fire_attempts']) db.exec(`CREATE TABLE ${table} (seq)`);
    db.close();
    await refused(but('--database', older), /older\.db cannot be read as a chronos store \(no such column: \w+\)/);
  });
});
