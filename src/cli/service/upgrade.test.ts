/** An interrupted upgrade, at each of its phases, and the next start of the service. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ownFile } from '../../kit/sqlite/file-owner.ts';
import { currentVersion, serviceLocation, switchTo } from './folders.ts';
import { npmSentence } from './upgrade.ts';
import { type Note, readNote, writeNote } from './upgrade-note.ts';

const BEGUN = Date.parse('2026-06-15T08:00:00Z');
const at = (seconds: number) => new Date(BEGUN + seconds * 1000);

/** A service with two versions, and a home whose database has the schema 1; its copy is as an upgrade makes it. */
function workbench(t: TestContext) {
  const person = temporaryFolder(t);
  const home = join(person, '.reveille');
  const copy = `${home}.before-upgrade`;
  const place = serviceLocation({ HOME: person }, home, 'linux');
  const [from, to] = ['0.1.0', '0.2.0'].map((version) => join(place.versions, version)) as [string, string];
  for (const folder of [from, to]) mkdirSync(folder, { recursive: true });
  const data = (folder: string, schema: number) => {
    mkdirSync(join(folder, 'chronos'), { recursive: true });
    const db = new DatabaseSync(join(folder, 'chronos', 'chronos.db'));
    db.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (version); INSERT INTO schema_migrations VALUES (${schema})`);
    db.close();
  };
  data(home, 1);
  const schemaOf = (folder: string) => {
    const db = new DatabaseSync(join(folder, 'chronos', 'chronos.db'), { readOnly: true });
    const [{ version }] = db.prepare('SELECT max(version) AS version FROM schema_migrations').all() as [
      { version: number },
    ];
    db.close();
    return version;
  };
  const note = (phase: Note['phase']): Note => ({
    ...{ phase, from, to, known: [], begun_at: at(0).toISOString() },
    ...(phase !== 'copying' && { tried_at: at(5).toISOString() }),
    copies: [{ folder: home, copy }],
    schemas: { 'chronos/chronos.db': 1 },
  });
  return {
    ...{ person, home, copy, place, from, to, data },
    schema: () => schemaOf(home),
    /** Up to this phase, with that version as the running one. */
    cutOff(phase: Note['phase'], runs: string) {
      data(copy, 1);
      switchTo(place, runs);
      writeNote(place, note(phase));
    },
    /** The steps of the service before it starts. */
    async settle() {
      const { status, stderr } = await reveille(home, ['service', 'settle'], { env: { HOME: person } });
      assert.equal(status, 0, stderr);
      return stderr;
    },
    assertGone() {
      const left = [...readdirSync(person), ...readdirSync(place.own)].filter((name) =>
        /upgrade$|json|earlier/.test(name),
      );
      assert.deepEqual(left, []);
    },
  };
}

test('interrupted during the copy: the earlier version starts on its data', async (t) => {
  const { cutOff, settle, place, from, to, schema, assertGone } = workbench(t);
  cutOff('copying', from);
  assert.match(await settle(), /The upgrade to 0\.2\.0 was interrupted and is cancelled/);
  assert.deepEqual([currentVersion(place), schema(), existsSync(to)], [from, 1, false]);
  assertGone();
});

test('interrupted before the new version has migrated anything: the earlier one starts, on all acknowledged data', async (t) => {
  const { cutOff, settle, place, from, to, home, assertGone } = workbench(t);
  cutOff('trying', to);
  writeFileSync(join(home, 'since'), '');
  await settle();
  assert.equal(currentVersion(place), from);
  assert.ok(existsSync(join(home, 'since')));
  assertGone();
});

test('interrupted while the new version migrates: the earlier one starts, on the earlier data', async (t) => {
  const { cutOff, settle, place, from, to, home, data, schema, assertGone } = workbench(t);
  cutOff('trying', to);
  data(home, 2);
  await settle();
  assert.deepEqual([currentVersion(place), schema()], [from, 1]);
  assertGone();
});

test('interrupted while it goes back: the data is restored completely from its copy', async (t) => {
  const { cutOff, settle, place, from, to, home, data, schema, assertGone } = workbench(t);
  cutOff('trying', to);
  data(home, 2);
  renameSync(home, `${home}.failed-upgrade`);
  await settle();
  assert.deepEqual([currentVersion(place), schema()], [from, 1]);
  assertGone();
});

test('data that a new version has acknowledged after its migration is never undone without a request', async (t) => {
  const { cutOff, settle, place, to, home, data, schema } = workbench(t);
  cutOff('trying', to);
  data(home, 2);
  writeFileSync(join(home, 'run.json'), JSON.stringify({ pid: 1, started_at: at(10).toISOString() }));
  await settle();
  assert.deepEqual([currentVersion(place), schema()], [to, 2]);
  assert.ok(readNote(place), 'the next upgrade checks it');
});

test('nor is data of a version that has ended normally since', async (t) => {
  const { cutOff, settle, place, to, home, data, schema } = workbench(t);
  cutOff('trying', to);
  data(home, 2);
  writeFileSync(join(home, 'chronos', 'alive'), '');
  utimesSync(join(home, 'chronos', 'alive'), at(90), at(90));
  await settle();
  assert.deepEqual([currentVersion(place), schema()], [to, 2]);
});

test('interrupted while it removes the copies: half a copy is not restored', async (t) => {
  const { cutOff, settle, place, to, home, data, schema, assertGone } = workbench(t);
  cutOff('over', to);
  data(home, 2);
  assert.equal(await settle(), '');
  assert.deepEqual([currentVersion(place), schema()], [to, 2]);
  assertGone();
});

test('a running upgrade is left alone', async (t) => {
  const { cutOff, settle, place, to } = workbench(t);
  cutOff('trying', to);
  t.after(ownFile(join(place.own, 'upgrade')));
  const before = readFileSync(join(place.own, 'upgrade.json'), 'utf8');
  assert.equal(await settle(), '');
  assert.equal(readFileSync(join(place.own, 'upgrade.json'), 'utf8'), before);
});

test("npm's output becomes one sentence with a remedy", () => {
  const said = (...lines: string[]) =>
    npmSentence('reveille@1.2.3', lines.map((line) => `npm error ${line}`).join('\n'));
  const reason = 'request to https://registry.example/reveille failed, reason: getaddrinfo ENOTFOUND registry.example';
  assert.match(
    said('code ENOTFOUND', 'syscall getaddrinfo', 'errno ENOTFOUND', reason),
    /^the registry https:\/\/registry\.example cannot be reached \(ENOTFOUND\), so reveille@1\.2\.3 was not fetched; /,
  );
  assert.match(
    said('code EINTEGRITY', 'sha512-a integrity checksum failed'),
    /failed its integrity check and was discarded/,
  );
  assert.match(
    said('code ETARGET', 'notarget No matching version'),
    /^the registry has no reveille@1\.2\.3; .*npm view reveille versions$/,
  );
  assert.equal(
    said('code ENOSPC', 'syscall write', 'nospc disk full'),
    'npm could not install reveille@1.2.3: nospc disk full',
  );
});
