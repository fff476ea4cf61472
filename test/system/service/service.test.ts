/**
 * `reveille service` and `reveille upgrade` under a real systemd of a user: from the installation until only the data
 * remains.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { REGISTRY_PORT, SYSTEM_BUS, startUserManager, type UserManager, WAKE_ALARM, whyNot } from './user-manager.ts';

// A CI container may have no control groups to delegate.
const skip = whyNot() ?? false;

const REGISTRY = join(import.meta.dirname, '..', '..', 'support', 'stand-ins', 'registry.ts');

/** Code of a program that represents another version: its differences, run before it becomes this version. */
const VERSIONS = {
  '0.1.5': '',
  '0.2.0': '',
  '0.4.0': `if (process.argv[2] === 'doctor') { console.log('{"checks":[{"name":"books","status":"broken","detail":"they do not balance"}]}'); process.exit(1); }
if (process.argv[2] === 'up') {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(process.env.REVEILLE_HOME + '/chronometric/of-tomorrow.db');
  db.exec('CREATE TABLE IF NOT EXISTS marks (n)');
}`,
  '0.5.0': `if (process.argv[2] === 'up') {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(process.env.REVEILLE_HOME + '/chronos/chronos.db');
  db.exec("INSERT OR IGNORE INTO schema_migrations VALUES (900, 'of-tomorrow', 'x', '2030-01-01T00:00:00Z'); UPDATE definitions SET label = 'lost'");
  db.close();
}`,
  '0.6.0': `if (process.argv[2] === 'up') {
  const [{ DatabaseSync }, { writeFileSync }] = await Promise.all([import('node:sqlite'), import('node:fs')]);
  const db = new DatabaseSync(process.env.REVEILLE_HOME + '/chronos/chronos.db');
  db.exec("INSERT OR IGNORE INTO schema_migrations VALUES (900, 'of-tomorrow', 'x', '2030-01-01T00:00:00Z'); UPDATE definitions SET label = 'lost'");
  writeFileSync(process.env.HOME + '/migrating', '');
  setInterval(() => {}, 1000);
  await new Promise(() => {});
}`,
  '0.7.0': `if (process.argv[2] === 'doctor') {
  const { existsSync, writeFileSync } = await import('node:fs');
  if (existsSync(process.env.HOME + '/slow')) {
    writeFileSync(process.env.HOME + '/doctoring', '');
    setInterval(() => {}, 1000);
    await new Promise(() => {});
  }
}`,
};

describe('reveille service under systemd', { skip }, () => {
  const owner = sharedOwner();
  after(() => owner.end());
  let system: UserManager;
  let folder: string;
  let registry: string;
  const must = async (...args: string[]) => {
    const { status, stdout, stderr } = await system.reveille(...args);
    assert.equal(status, 0, `reveille ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await must(...args, '--json'));
  /** The state in systemd; a command of Reveille costs ten times as much. */
  const logs = async () =>
    (await system.run('journalctl', ...'--user-unit reveille.service -o cat -q'.split(' '))).stdout;
  const mainPid = async () =>
    Number((await system.run('systemctl', ...'--user show reveille --property MainPID --value'.split(' '))).stdout);
  const neoOf = async () => (await system.run('pgrep', '-f', 'reveille.mjs neo$')).stdout.trim();
  /** Waits until a process other than these is the service, and accepts requests. */
  const restarted = (...others: number[]) =>
    eventually('it runs again', async () => {
      const run = join(system.home, 'run.json');
      const { pid } = existsSync(run) ? JSON.parse(readFileSync(run, 'utf8')) : { pid: 0 };
      return pid > 0 && pid === (await mainPid()) && !others.includes(pid) && (pid as number);
    });
  const leftOvers = () => [
    ...readdirSync(join(system.person, '.local/share/reveille/versions')).filter((name) => /^\.|0\.[3-6]/.test(name)),
    ...readdirSync(join(system.person, '.local/share/reveille/service')).filter(
      (name) => /json|earlier/.test(name) && name !== 'wake.json',
    ),
    ...readdirSync(system.person).filter((name) => /upgrade$/.test(name)),
  ];

  /** The result of `npm pack` for a version. */
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
    const file = join(registry, `reveille-${version}.tgz`);
    await system.run('tar', '-czf', file, '-C', join(root, '..'), 'package');
    return file;
  }

  before(async () => {
    folder = temporaryFolder(owner);
    registry = join(folder, 'registry');
    mkdirSync(registry);
    system = await startUserManager(owner, folder);
  });

  test('an obstacle to the installation is one sentence, and nothing remains', async () => {
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
    await refuses(/the service did not start and was removed again: chronosd cannot listen on 127\.0\.0\.1:9096/);
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

  test('install starts it, and it fires without a terminal', async () => {
    const installed = await json('service', 'install');
    assert.equal(installed.service, 'reveille');
    assert.ok(installed.enabled && installed.checkout);
    const unit = join(system.person, '.config/systemd/user/reveille.service');
    const verdict = await system.run('systemd-analyze', '--user', 'verify', unit);
    assert.deepEqual([verdict.status, verdict.stderr], [0, '']);
    const status = await json('service', 'status');
    assert.equal(status.state, 'running');
    assert.ok(Date.parse(status.next_fire_at) > 0, 'the welcome alarm fires next');
    assert.equal(status.next_ring, status.next_fire_at);
    await eventually('the welcome alarm rings', async () => /fired {2}welcome/.test(await logs()));
    assert.match(
      await must('service', 'status'),
      /running as process \d+[\s\S]*starts {5}when you log in[\s\S]*version/,
    );
  });

  test('after a kill it is restarted, and adopts the agent that is awake', async () => {
    const [pid, neo] = [await mainPid(), await neoOf()];
    assert.match(neo, /^\d+/);
    await system.run('kill', '-9', String(pid));
    await restarted(pid);
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

  test('after a restart of the computer an overdue alarm fires at once, and gives the reason of its lateness', async () => {
    await must('alarm', 'set', 'while nobody was there', '--in', '3s');
    await system.shutDown();
    assert.equal(await neoOf(), '');
    await delay(5000);
    await system.boot();
    const line = await eventually('it fires', async () => /.*fired .*while nobody was there.*/.exec(await logs())?.[0]);
    assert.match(line, /\d s( \d+ ms)? late: Reveille was not running/);
    const { since } = await json('service', 'status');
    const firedAt = await eventually('it is recorded', async () => {
      const found = (await must('log', '--json')).split('\n').find((one) => one.includes('while nobody was there'));
      return found && (JSON.parse(found).at as string);
    });
    // A busy computer starts the daemons and the agent slowly.
    assert.ok(Date.parse(firedAt) - Date.parse(since) < 30_000, `${firedAt} after ${since}`);
    const record = (await must('log', '--json')).split('\n').find((one) => one.includes('while nobody was there'));
    const { alarm_id: id } = JSON.parse(record!);
    const lateReason = /late: Reveille was not running/;
    assert.match(await must('alarm', 'show', id), lateReason);
    assert.match(await must('log'), lateReason);
    const reply = await eventually('the agent has answered', async () => {
      const shown = await must('alarm', 'show', id);
      return /I am the offline model[\s\S]*/.exec(shown)?.[0];
    });
    assert.match(reply, lateReason, 'the agent got the reason, too');
  });

  test('the computer is woken before the first alarm that asks for it, whatever is killed, and no longer when none does', async () => {
    const armed = async () => {
      const { stdout } = await system.run('cat', WAKE_ALARM);
      return Number(stdout) * 1000;
    };
    const set = async (when: string) => {
      const { id, next_fire_at: at } = await json('alarm', 'set', `wakes ${when}`, '--in', when, '--wake-computer');
      return { id: id as string, wakesAt: Math.floor((Date.parse(at) - 60_000) / 1000) * 1000 };
    };
    assert.match(await must('service', 'wake'), /is not woken for alarms\./);
    const [first, second] = [await set('30m'), await set('1h')];
    assert.equal((await json('service', 'wake', 'on')).wakes_computer, true);
    await eventually('the first wake is armed', async () => (await armed()) === first.wakesAt);
    const { woken_at: output } = await json('service', 'status');
    assert.equal(Math.floor(Date.parse(output) / 1000) * 1000, first.wakesAt);
    await system.run('kill', '-9', String(await mainPid()));
    await must('alarm', 'cancel', first.id).catch(() =>
      eventually('it runs again', () =>
        must('alarm', 'cancel', first.id).then(
          () => true,
          () => false,
        ),
      ),
    );
    await eventually('the second wake is armed', async () => (await armed()) === second.wakesAt);
    const doctor = await system.reveille('doctor');
    assert.match(doctor.stdout, /sleep +the computer is woken at [\s\S]* by\s+\/sys\/class\/rtc\/rtc0\/wakealarm/);
    await must('service', 'wake', 'off');
    assert.equal(await armed(), 0);
    await must('service', 'wake', 'on');
    await eventually('it is armed again, and stays so to the end', async () => (await armed()) === second.wakesAt);
  });

  test('the computer is kept awake until the turn has ended, and released at once when the service is killed', async () => {
    const isInhibited = async () =>
      (await system.run('env', SYSTEM_BUS, 'systemd-inhibit', '--list', '--no-pager')).stdout;
    const isHeld = async () => /Reveille .*sleep:idle:handle-lid-switch/.test(await isInhibited());
    await must('alarm', 'set', 'held awake for', '--in', '20s', '--wake-computer');
    await eventually('the inhibitor is active', isHeld);
    const holder = /^Reveille +\d+ +\S+ +(\d+)/m.exec(await isInhibited())![1]!;
    await system.run('kill', '-9', holder);
    await eventually(
      'another inhibitor is active',
      async () => (await isHeld()) && !(await isInhibited()).includes(` ${holder} `),
    );
    const pid = await mainPid();
    await system.run('kill', '-9', String(pid));
    await eventually('no inhibitor is active', async () => !(await isHeld()));
    await eventually('the inhibitor is active again', isHeld);
    await eventually('the inhibitor is released', async () => !(await isHeld()));
    assert.match(await logs(), /fired .*held awake for[\s\S]*The message: "held awake for"/, 'the agent has answered');
  });

  test('upgrade gives the reason in one sentence when the registry cannot provide a version, and nothing changes', async () => {
    const pid = await mainPid();
    const refuses = async (wanted: string, says: RegExp) => {
      const { status, stderr } = await system.reveille('upgrade', wanted);
      assert.equal(status, 1);
      assert.match(stderr, says);
      assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
      assert.deepEqual([leftOvers(), await mainPid()], [[], pid]);
    };
    await refuses('latest', /^error: the registry http:\/\/127\.0\.0\.1:4873 cannot be reached \(ECONNREFUSED\), so /);
    for (const version of ['0.1.5', '0.2.0'] as const) await pack(version);
    void system.run(process.execPath, REGISTRY, registry, String(REGISTRY_PORT));
    await eventually('the registry answers', () => existsSync(join(registry, 'listening')));
    await refuses('9.9.9', /^error: the registry has no reveille@9\.9\.9; .*npm view reveille versions/);
    const wrong = join(registry, 'reveille-0.2.0.tgz.wrong');
    writeFileSync(wrong, '');
    await refuses('latest', /^error: reveille@latest from the registry failed its integrity check/);
    rmSync(wrong);
    const broken = join(folder, 'broken.tgz');
    writeFileSync(broken, 'no package');
    await refuses(broken, /npm could not install/);
  });

  test('upgrade runs the newest version of the registry, and reverts a broken one', async () => {
    await must('alarm', 'set', 'kept over upgrades', '--in', '1h');
    assert.deepEqual((await json('upgrade')).to, '0.2.0');
    assert.equal((await json('service', 'status')).version, '0.2.0');
    const says = {
      '0.4.0': /0\.2\.0 runs again on the same data: its doctor reports that books is broken: they do not balance/,
      '0.5.0': /0\.2\.0 runs again on the earlier data: it does not start: .*newer Reveille \(schema 900/,
    } as const;
    for (const version of ['0.4.0', '0.5.0'] as const) {
      const { status, stderr } = await system.reveille('upgrade', await pack(version));
      assert.equal(status, 1);
      assert.match(stderr, says[version]);
    }
    const { state, version: runs } = await json('service', 'status');
    assert.deepEqual([state, runs], ['running', '0.2.0']);
    assert.match(await must('alarm', 'list'), /kept over upgrades/);
    assert.deepEqual(leftOvers(), []);
  });

  test('an upgrade that is killed during its download has changed nothing', async () => {
    const pid = await mainPid();
    const file = await pack('0.6.0');
    writeFileSync(`${file}.slow`, '');
    const cut = system.reveille('upgrade', '0.6.0');
    await eventually('half of it has arrived', () => existsSync(`${file}.begun`));
    await system.run('pkill', '-9', '-f', 'reveille.mjs upgrade|npm install');
    await cut;
    rmSync(`${file}.slow`);
    assert.equal(await mainPid(), pid);
  });

  test('after a power cut while the new version migrates, the previous one runs on the unchanged data', async () => {
    const cut = system.reveille('upgrade', '0.6.0');
    await eventually('it migrates', () => existsSync(join(system.person, 'migrating')));
    await system.cutPower();
    await cut;
    await system.boot();
    await restarted();
    assert.match(await must('alarm', 'list'), /kept over upgrades/);
    assert.match(await logs(), /The upgrade to 0\.6\.0 was interrupted and is cancelled: the earlier version starts/);
    assert.equal((await json('service', 'status')).version, '0.2.0');
    assert.deepEqual(leftOvers(), []);
  });

  test('an upgrade that is killed during its trial is completed by the next', async () => {
    await pack('0.7.0');
    void system.run(process.execPath, REGISTRY, registry, String(REGISTRY_PORT));
    writeFileSync(join(system.person, 'slow'), '');
    const cut = system.reveille('upgrade');
    await eventually('the doctor runs its checks', () => existsSync(join(system.person, 'doctoring')));
    assert.match((await system.reveille('upgrade')).stderr, /another upgrade runs as process \d+/);
    await must('alarm', 'set', 'acknowledged by the new one', '--in', '1h');
    await system.run('pkill', '-9', '-f', 'reveille.mjs (upgrade|doctor)');
    await cut;
    rmSync(join(system.person, 'slow'));
    assert.match(
      await must('service', 'status'),
      /to 0\.7\.0, which was interrupted: finish it with "reveille\s+upgrade"/,
    );
    const pid = await mainPid();
    assert.match(
      (await system.reveille('service', 'install')).stderr,
      /an upgrade to 0\.7\.0 is running or was interrupted/,
    );
    const { from, to } = await json('upgrade');
    assert.deepEqual([from, to, await mainPid()], ['0.2.0', '0.7.0', pid]);
    assert.match(await must('alarm', 'list'), /acknowledged by the new/);
    assert.deepEqual(leftOvers(), []);
  });

  test('uninstall leaves only the data, and prints its folder', async () => {
    const output = await must('service', 'uninstall');
    assert.match(output, new RegExp(`The data stays in ${system.home}`));
    assert.ok(!existsSync(join(system.person, '.config/systemd/user/reveille.service')));
    assert.ok(!existsSync(join(system.person, '.local/share/reveille')));
    assert.deepEqual((await system.run('pgrep', '-f', 'reveille.mjs')).stdout, '');
    assert.match((await system.run('cat', WAKE_ALARM)).stdout, /^0?\n?$/, 'no wake is left armed');
    assert.ok(existsSync(join(system.home, 'chronos', 'chronos.db')));
    const { status, stderr } = await system.reveille('service', 'logs');
    assert.equal(status, 1);
    assert.match(stderr, /no service is installed for .*install one with: reveille service install/);
  });
});
