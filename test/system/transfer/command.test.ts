/** `reveille migrate` on the command line. */

import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { homeAt, makeHome } from '../../../src/cli/home/home.ts';
import { createDue, NOW } from '../../contract/store/fixtures.ts';
import { reveille } from '../../support/command-line.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { fill, fillMany } from './contents.ts';
import { openPostgres, openSqlite, using } from './workbench.ts';

const PASSWORD = 'an-embedded-password';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

type Owner = Parameters<typeof temporaryFolder>[0];

/** An installation with alarms in SQLite, and an empty database. */
async function installation(t: Owner, count = 5) {
  const home = homeAt(temporaryFolder(t));
  makeHome(home);
  const path = join(home.path, 'chronos', 'chronos.db');
  await using(openSqlite(path), (store) => (count === 0 ? fill(store) : fillMany(store, count)));
  const database = await server.createDatabase();
  const uri = server.uri(database);
  const run = (...args: string[]) => reveille(home.path, ['migrate', ...args]);
  return { home, path, uri, name: uri.split('@')[1]!, database, run };
}

/** Every file of the home folder, as text. */
function filesOf(folder: string): string {
  const files = globSync('**/*', { cwd: folder }).filter((file) => statSync(join(folder, file)).isFile());
  return files.map((file) => readFileSync(join(folder, file), 'latin1')).join('\n');
}

test('the move is reported in aligned lines, and ends with the setting to change; the password is nowhere', async (t) => {
  const { home, path, uri, name, run } = await installation(t, 0);
  const { status, stdout, stderr } = await run('--to', uri);
  assert.deepEqual([status, stderr], [0, '']);
  const lines = stdout.split('\n');
  assert.equal(lines[0], `Moved to ${name}`);
  assert.match(lines[2]!, /^ {2}TABLE {11}ROWS {2}CONTENT {2}SHA-256$/);
  for (const table of ['alarms', 'occurrences', 'fire_attempts', 'agent_keys', 'owners'])
    assert.ok(
      lines.some((line) => new RegExp(`^  ${table} +\\d+ {2}equal {4}[0-9a-f]{16}…$`).test(line)),
      `${table} in:\n${stdout}`,
    );
  assert.match(stdout, /\n {2}\d+ rows in .+, [\d,]+ rows\/s\n/);
  assert.ok(
    stdout.includes(`\n  CHRONOS_POSTGRES_URI: "postgres://reveille:<password>@${name}"\n`),
    `a line to copy in:\n${stdout}`,
  );
  assert.ok(stdout.includes(home.configFile) && stdout.includes(`does not start on ${path} any more`));
  assert.ok(lines.every((line) => line.length <= 200 && line.trimEnd() === line));
  assert.doesNotMatch(stdout + filesOf(home.path), new RegExp(PASSWORD));

  // The line, with the password inserted, is the setting of chronosd.
  const line = lines.find((each) => each.startsWith('  CHRONOS_POSTGRES_URI'))!;
  writeFileSync(home.configFile, `${line.trim().replace('<password>', PASSWORD)}\nCHRONOS_DEV: 1\n`);
  const again = await run();
  assert.deepEqual([again.status, again.stderr], [0, '']);
  assert.match(again.stdout, /^Moved to .* already, at .*; nothing was changed\.\n/);
  assert.match(again.stdout, /config\.yaml names the database already\. Start chronosd again\.\n/);
});

test('with --json there is one line, with whole checksums', async (t) => {
  const { home, path, uri, name, run } = await installation(t);
  const { status, stdout, stderr } = await run('--to', uri, '--json');
  assert.deepEqual([status, stderr], [0, '']);
  const record = JSON.parse(stdout);
  assert.deepEqual(Object.keys(record), [
    'outcome',
    'from',
    'to',
    'moved_at',
    'tables',
    'copied_rows',
    'copy_ms',
    'rows_per_second',
    'config_file',
    'config_line',
  ]);
  assert.deepEqual([record.outcome, record.from, record.to], ['moved', path, name]);
  assert.deepEqual(record.config_file, home.configFile);
  assert.equal(record.config_line, `CHRONOS_POSTGRES_URI: "postgres://reveille:<password>@${name}"`);
  assert.deepEqual(record.tables[0].table, 'alarms');
  assert.deepEqual([record.tables[0].equal, record.tables[0].rows], [true, 5]);
  assert.match(record.tables[0].sha256, /^[0-9a-f]{64}$/);
  assert.doesNotMatch(stdout, new RegExp(PASSWORD));
});

test('a dry run reports the content and the planned steps, also while chronosd runs, and changes nothing', async (t) => {
  const { path, uri, name, database, run } = await installation(t);
  const store = openSqlite(path);
  const before = readFileSync(path);
  const bare = await run('--to', uri, '--dry-run');
  assert.deepEqual([bare.status, bare.stderr], [0, '']);
  assert.match(bare.stdout, /^Would move to .*, which has no tables yet\. Nothing was changed\.\n/);
  assert.match(bare.stdout, /\n {2}TABLE {11}ROWS\n {2}alarms {13}5\n {2}occurrences {8}5\n/);
  assert.match(bare.stdout, new RegExp(`\nStop process ${process.pid} first: it has the file open\\.\n$`));
  await store.close();
  assert.deepEqual(readFileSync(path), before);
  const { rows } = await server.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database);
  assert.deepEqual(rows, [{ count: '0' }]);

  await using(await openPostgres(uri), async () => undefined);
  assert.match(
    (await run('--to', uri, '--dry-run')).stdout,
    /^Would move to .*, which is empty\. Nothing was changed\./,
  );
  const { stdout } = await run('--to', uri, '--dry-run', '--json');
  assert.deepEqual(JSON.parse(stdout), {
    dry_run: true,
    from: path,
    to: name,
    plan: 'begin',
    tables: [
      { table: 'alarms', rows: 5 },
      { table: 'occurrences', rows: 5 },
      { table: 'fire_attempts', rows: 0 },
      { table: 'fire_receipts', rows: 0 },
      { table: 'events', rows: 0 },
      { table: 'agent_keys', rows: 0 },
      { table: 'calendar_feeds', rows: 0 },
      { table: 'owners', rows: 5 },
    ],
    rows_there: 0,
    new_database: false,
    in_use_by: null,
  });
  await run('--to', uri);
  assert.match((await run('--to', uri, '--dry-run')).stdout, /^Moved to .* already; would do nothing\. Nothing was/);
});

test('a refusal ends with a status and one sentence', async (t) => {
  const { path, uri, run } = await installation(t);
  const cases: [words: string[], status: number, said: RegExp][] = [
    [[], 2, /--to is missing; name the database: --to postgres:\/\/user:password@host:5432\/database/],
    [['--to', 'mysql://u:a-canary@h/d'], 2, /--to must begin with postgres:\/\/ or postgresql:\/\//],
    [['--to', uri, '--discard'], 2, /--discard needs --abandon/],
    [['--abandon', '--dry-run'], 2, /--dry-run is for a move/],
    [['--to', 'postgres://u:a-canary@:x:/d'], 1, /CHRONOS_POSTGRES_URI .*; write postgres:\/\/user:password@host/],
    [['--to', uri, '--from', `${path}.no`], 1, /\.no contains no alarms; name the chronos\.db/],
    [['--to', uri, '--from', `${path}.no`, '--dry-run'], 1, /\.no contains no alarms/],
    [['--to', server.uri('none', 'reveille', 'a-canary')], 1, /password authentication failed for user/],
  ];
  for (const [args, status, message] of cases) {
    const outcome = await run(...args);
    assert.deepEqual([args, outcome.status, outcome.stdout], [args, status, '']);
    assert.match(outcome.stderr, message);
    assert.match(outcome.stderr, /^error: [^\n]+\n$/);
    assert.doesNotMatch(outcome.stderr, /a-canary/);
  }
  const json = await run('--to', uri, '--from', `${path}.no`, '--json');
  assert.equal(JSON.parse(json.stderr).error.code, 'not_found');
});

test('a copy that differs is shown table by table, and the command fails', async (t) => {
  const { uri, database, run } = await installation(t);
  await using(await openPostgres(uri), async () => undefined);
  // For example, another program's trigger.
  await server.run(
    `CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.label = upper(NEW.label); RETURN NEW; END $$;
     CREATE TRIGGER meddle BEFORE INSERT ON definitions FOR EACH ROW EXECUTE FUNCTION meddle()`,
    database,
  );
  const { status, stdout, stderr } = await run('--to', uri);
  assert.equal(status, 1);
  assert.match(stdout, /\n {2}alarms +5 {2}DIFFERS {2}[0-9a-f]{16}… ≠ [0-9a-f]{16}…\n/);
  assert.match(stdout, /\n {2}occurrences +5 {2}equal {4}[0-9a-f]{16}…\n/);
  assert.match(
    stderr,
    /^error: the copy in .* differs from .* \(alarms, first at \["owner-0","[^"]+"\]\), so neither is opened\. .*--abandon" and start again\n$/,
  );
  const json = await run('--to', uri, '--json');
  assert.equal(json.status, 1);
  const record = JSON.parse(json.stdout);
  assert.deepEqual([record.outcome, record.tables[0].equal, record.moved_at], ['differs', false, null]);
  assert.equal(JSON.parse(json.stderr).error.code, 'conflict');
});

test('an abort reports which database fires the alarms from now on', async (t) => {
  const { path, uri, run } = await installation(t);
  const nothing = await run('--abandon');
  assert.equal(nothing.status, 0);
  assert.equal(nothing.stdout, `${path} is not being moved; nothing was changed.\n`);
  await run('--to', uri);
  const { status, stdout } = await run('--abandon', '--to', uri);
  assert.equal(status, 0);
  assert.match(
    stdout,
    /^Moved back from .*\nchronosd fires the alarms from .*chronos\.db again; CHRONOS_POSTGRES_URI must/,
  );
  await using(openSqlite(path), (store) => createDue(store, NOW));
  await run('--to', uri);
  await server.stop('fast');
  const refused = await run('--abandon', '--to', uri);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /cannot be reached/);
  const json = JSON.parse((await run('--abandon', '--to', uri, '--discard', '--json')).stdout);
  assert.deepEqual([json.outcome, json.was, json.database_closed], ['abandoned', 'moved', false]);
  await server.start();
});
