/** `reveille service` and `reveille upgrade` under a real systemd of a user: from the installation to nothing but the data. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { startUserManager, type UserManager, whyNot } from './user-manager.ts';

// A container of CI may have no control groups to give away.
const skip = whyNot() ?? false;

/** Words of a program that stands for another version: what it does otherwise, before it is this one. */
const VERSIONS = {
  '0.2.0': '',
  '0.3.0': `if (process.argv[2] === 'up') { console.error('error: a broken version'); process.exit(1); }`,
  '0.4.0': `if (process.argv[2] === 'doctor') { console.log('{"checks":[{"name":"books","status":"broken","detail":"they do not balance"}]}'); process.exit(1); }
if (process.argv[2] === 'up') {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(process.env.REVEILLE_HOME + '/chronometric/of-tomorrow.db');
  db.exec('CREATE TABLE IF NOT EXISTS marks (n)');
}`,
  '0.5.0': `if (process.argv[2] === 'up') {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(process.env.REVEILLE_HOME + '/chronos/chronos.db');
  db.exec("INSERT INTO schema_migrations VALUES (900, 'of-tomorrow', 'x', '2030-01-01T00:00:00Z'); UPDATE alarms SET label = 'lost'");
  db.close();
}`,
};

describe('reveille service under systemd', { skip }, () => {
  const owner = sharedOwner();
  after(() => owner.end());
  let system: UserManager;
  let folder: string;
  const must = async (...words: string[]) => {
    const { status, stdout, stderr } = await system.reveille(...words);
    assert.equal(status, 0, `reveille ${words.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  const json = async (...words: string[]) => JSON.parse(await must(...words, '--json'));
  const logs = () => must('service', 'logs');
  const neoOf = async () => (await system.run('pgrep', '-f', 'reveille.mjs neo$')).stdout.trim();
  const mainPid = async () => (await json('service', 'status')).pid as number;

  /** What `npm pack` would make of a version. */
  async function pack(version: keyof typeof VERSIONS): Promise<string> {
    const root = join(folder, `package-${version}`, 'package');
    mkdirSync(join(root, 'bin'), { recursive: true });
    const bin = { reveille: 'bin/reveille.mjs' };
    writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'reveille', version, type: 'module', bin }));
    const says = `if (process.argv[2] === '--version') { console.log('${version}'); process.exit(0); }`;
    writeFileSync(
      join(root, 'bin', 'reveille.mjs'),
      `${says}\n${VERSIONS[version]}\nawait import(${JSON.stringify(PROGRAM)});\n`,
    );
    const file = join(folder, `reveille-${version}.tgz`);
    await system.run('tar', '-czf', file, '-C', join(root, '..'), 'package');
    return file;
  }

  before(async () => {
    folder = temporaryFolder(owner);
    system = await startUserManager(owner, folder);
  });

  test('what stands in the way of an installation is one sentence, and nothing is left', async () => {
    const refuses = async (says: RegExp) => {
      const { status, stderr } = await system.reveille('service', 'install');
      assert.equal(status, 1);
      assert.match(stderr, says);
      assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
      assert.ok(!existsSync(join(system.person, '.config/systemd/user/reveille.service')));
      assert.ok(!existsSync(join(system.person, '.local/share/reveille')));
    };
    const taken = `require('net').createServer().listen(9096, '127.0.0.1', () => console.log('there'))`;
    const listener = system.run(process.execPath, '-e', taken);
    await refuses(/the service did not start, and was taken away again: chronosd cannot listen on 127\.0\.0\.1:9096/);
    await system.run('pkill', '-f', 'listen\\(9096');
    await listener;
    mkdirSync(join(system.home, 'chronos'), { recursive: true, mode: 0o700 });
    const path = join(system.home, 'notify');
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const db = new DatabaseSync(join(path, 'notify.db'));
    db.exec('CREATE TABLE schema_migrations (version); INSERT INTO schema_migrations VALUES (900)');
    db.close();
    await refuses(/the data in .* was written by a newer Reveille \(schema 900 of notify\.db/);
    await system.run('rm', '-r', path);
    const prefix = join(system.person, '.local/share/reveille');
    mkdirSync(join(prefix, '..'), { recursive: true });
    writeFileSync(prefix, 'a file in the way');
    const { stderr } = await system.reveille('service', 'install');
    assert.match(stderr, /cannot be written to .*name another data folder with XDG_DATA_HOME/);
    rmSync(prefix);
  });

  test('install starts it, and it rings without a terminal', async () => {
    const installed = await json('service', 'install');
    assert.equal(installed.service, 'reveille');
    assert.ok(installed.enabled && installed.checkout);
    const unit = join(system.person, '.config/systemd/user/reveille.service');
    const verdict = await system.run('systemd-analyze', '--user', 'verify', unit);
    assert.deepEqual([verdict.status, verdict.stderr], [0, '']);
    const status = await json('service', 'status');
    assert.equal(status.state, 'running');
    assert.ok(Date.parse(status.next_ring) > 0, 'the welcome alarm rings next');
    await eventually('the welcome alarm rings', async () => /rang {2}welcome/.test(await logs()));
    assert.match(
      await must('service', 'status'),
      /running as process \d+[\s\S]*starts {5}when you log in[\s\S]*version/,
    );
  });

  test('killed it is started again, and takes over the agent that is awake', async () => {
    const [pid, neo] = [await mainPid(), await neoOf()];
    assert.match(neo, /^\d+/);
    await system.run('kill', '-9', String(pid));
    const again = await eventually('it runs again', async () => {
      const status = await json('service', 'status').catch(() => undefined);
      return status?.pid && status.pid !== pid && status.since ? status.pid : undefined;
    });
    assert.notEqual(again, pid);
    assert.equal(await neoOf(), neo);
  });

  test('restart keeps the agent awake', async () => {
    const [pid, neo] = [await mainPid(), await neoOf()];
    const { pid: fresh } = await json('service', 'restart');
    assert.notEqual(fresh, pid);
    assert.equal(await neoOf(), neo);
    const machine = await json('machine', 'show');
    assert.match(JSON.stringify(machine), /"running":"(ready|awake|up)"/);
  });

  test('after a restart of everything what is overdue rings within 5 s, and says why it is late', async () => {
    await must('alarm', 'set', 'while nobody was there', '--in', '3s');
    await system.shutDown();
    assert.equal(await neoOf(), '');
    await delay(5000);
    await system.boot();
    const line = await eventually('it rings', async () => /.*rang .*while nobody was there.*/.exec(await logs())?.[0]);
    assert.match(line, /\d s( \d+ ms)? late: Reveille was not running/);
    const { since } = await json('service', 'status');
    const rangAt = await eventually('it is on record', async () => {
      const found = (await must('log', '--json')).split('\n').find((one) => one.includes('while nobody was there'));
      return found && (JSON.parse(found).at as string);
    });
    assert.ok(Date.parse(rangAt) - Date.parse(since) < 5000, `${rangAt} after ${since}`);
    const record = (await must('log', '--json')).split('\n').find((one) => one.includes('while nobody was there'));
    const { alarm_id: id } = JSON.parse(record!);
    const told = /late: Reveille was not running/;
    assert.match(await must('alarm', 'show', id), told);
    assert.match(await must('log'), told);
    const reply = await eventually('the agent has answered', async () => {
      const shown = await must('alarm', 'show', id);
      return /I am the offline model[\s\S]*/.exec(shown)?.[0];
    });
    assert.match(reply, told, 'the agent was told, too');
  });

  test('upgrade runs the new version, and goes back from one that is broken', async () => {
    await must('alarm', 'set', 'kept over upgrades', '--in', '1h');
    assert.deepEqual((await json('upgrade', await pack('0.2.0'))).to, '0.2.0');
    assert.equal((await json('service', 'status')).version, '0.2.0');
    const says = {
      '0.3.0':
        /version 0\.3\.0 was given up, and 0\.2\.0 runs again on the same data: it does not start: a broken version/,
      '0.4.0': /0\.2\.0 runs again on the same data: its doctor says that books is broken: they do not balance/,
      '0.5.0': /0\.2\.0 runs again on the data as it was before: it does not start: .*newer Reveille \(schema 900/,
    } as const;
    for (const version of ['0.3.0', '0.4.0', '0.5.0'] as const) {
      const { status, stderr } = await system.reveille('upgrade', await pack(version));
      assert.equal(status, 1);
      assert.match(stderr, says[version]);
      const { state, version: runs } = await json('service', 'status');
      assert.deepEqual([state, runs], ['running', '0.2.0']);
      assert.match(await must('alarm', 'list'), /kept over upgrades/);
    }
    const broken = join(folder, 'broken.tgz');
    writeFileSync(broken, 'no package');
    assert.match((await system.reveille('upgrade', broken)).stderr, /npm could not install/);
    assert.deepEqual(
      readdirSync(join(system.person, '.local/share/reveille/versions')).filter((name) => /^\.|0\.[345]/.test(name)),
      [],
    );
    assert.deepEqual(
      readdirSync(system.person).filter((name) => /upgrade/.test(name)),
      [],
    );
  });

  test('uninstall leaves nothing but the data, and says where that is', async () => {
    const said = await must('service', 'uninstall');
    assert.match(said, new RegExp(`The data is left in ${system.home}`));
    assert.ok(!existsSync(join(system.person, '.config/systemd/user/reveille.service')));
    assert.ok(!existsSync(join(system.person, '.local/share/reveille')));
    assert.deepEqual((await system.run('pgrep', '-f', 'reveille.mjs')).stdout, '');
    assert.ok(existsSync(join(system.home, 'chronos', 'chronos.db')));
    const { status, stderr } = await system.reveille('service', 'logs');
    assert.equal(status, 1);
    assert.match(stderr, /is no service in .*make it one with: reveille service install/);
  });
});
