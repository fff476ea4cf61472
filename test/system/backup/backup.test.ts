/** A backup while alarms are set and fire; restored elsewhere; killed; on a full disk; and with invalid files. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { reveille, reveilleProcess } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, startAgent, startInstallation } from '../../support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const PASSPHRASE = 'three quiet words';
const owner = sharedOwner();
after(() => owner.end());

let folder: string;
let env: Record<string, string>;
before(() => {
  folder = temporaryFolder(owner);
  const file = join(folder, 'passphrase');
  writeFileSync(file, `${PASSPHRASE}\n`, { mode: 0o600 });
  env = { REVEILLE_BACKUP_PASSPHRASE_FILE: file };
});

/** Sets alarms one after another until it is stopped; half of them fire meanwhile. */
function setAlarms({ client }: Installation) {
  const acknowledged: string[] = [];
  let isOver = false;
  const one = async (loop: number) => {
    for (let n = 0; !isOver; n++) {
      const request = { kind: 'once', label: `${loop}-${n}`, delay_seconds: n % 2 === 0 ? 1 : 6 } as const;
      const { id } = await client.createAlarm({ ...request, wake_message: `alarm ${loop}-${n}.` });
      acknowledged.push(id);
      await delay(4);
    }
  };
  const loops = Promise.all([0, 1].map(one));
  const stop = () => {
    isOver = true;
    return loops;
  };
  return { acknowledged, stop };
}

/** Every string and key in the home's files that grants access. */
function secretsIn(home: string): string[] {
  const names = ['secrets.json', 'executor-secrets.json', 'executor-admin.json'];
  const values = names.flatMap((name) => Object.values(JSON.parse(readFileSync(join(home, name), 'utf8')) as object));
  return [...values, readFileSync(join(home, 'keys', 'agent.key'), 'utf8').trim()] as string[];
}

const formsOf = (secret: string) => {
  const raw = /^[0-9a-f]+$/.test(secret) ? [Buffer.from(secret, 'hex')] : [Buffer.from(secret, 'base64url')];
  return [Buffer.from(secret), ...raw, ...raw.map((bytes) => Buffer.from(bytes.toString('base64').slice(0, 40)))];
};

describe('reveille backup while alarms are set and fire', () => {
  let installation: Installation;
  let agent: Awaited<ReturnType<typeof startAgent>>;
  let file: string;
  let begun: string[];

  before(async () => {
    installation = await startInstallation(owner);
    agent = await startAgent(owner);
    await installation.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    const load = setAlarms(installation);
    await eventually('alarms fire', () => agent.turns.length > 20);
    begun = [...load.acknowledged];
    file = join(folder, 'under-load.backup');
    const { status, stderr } = await reveilleProcess(installation.home.path, ['backup', file, '--json'], { env });
    assert.equal(status, 0, stderr);
    await load.stop();
    assert.ok(load.acknowledged.length > begun.length, 'alarms were set while the backup was made');
    await installation.chronos.close();
    await installation.router.close();
  });

  test('a home restored elsewhere has every acknowledged alarm, and all of them fire', async (t) => {
    const home = join(folder, 'elsewhere');
    const { status, stderr } = await reveille(installation.home.path, ['restore', file, '--home', home], { env });
    assert.equal(status, 0, stderr);
    assert.match(stderr, /every alarm fires twice/);
    const restored = await startInstallation(owner, home);
    const left = new Set(begun);
    await eventually('every previously acknowledged alarm has fired', async () => {
      for (const id of left) {
        const { status: state } = await restored.client.getAlarm(id);
        if (state !== 'fired') return false;
        left.delete(id);
      }
      return true;
    });
    const messages = new Set(agent.turns.map((body) => /alarm \d+-\d+\./.exec(body)?.[0]));
    t.diagnostic(`0 of ${begun.length} acknowledged alarms lost`);
    assert.ok(messages.size >= begun.length);
    const { stderr: again } = await reveille(home, ['restore', file], { env });
    assert.match(again, /in use by|is not empty/);
  });

  test('no secret is readable in the file, and only its owner can open it', () => {
    const bytes = readFileSync(file);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const secrets = secretsIn(installation.home.path);
    assert.ok(secrets.length >= 9);
    for (const form of secrets.flatMap(formsOf)) assert.ok(!bytes.includes(form));
    assert.ok(!bytes.includes('SQLite format') && !bytes.includes('wake_message'));
  });

  test('--check reports the content, with schema versions and checksums', async () => {
    const { status, stdout } = await reveille(folder, ['backup', '--check', file, '--json'], { env });
    assert.equal(status, 0);
    const found = JSON.parse(stdout);
    assert.ok(found.schemas['chronos/chronos.db'] >= 11);
    assert.ok(['instant', 'ordered'].includes(found.cut));
    const database = found.files.find(({ path }: { path: string }) => path === 'chronos/chronos.db');
    assert.match(database.sha256, /^[0-9a-f]{64}$/);
    assert.ok(!found.files.some(({ path }: { path: string }) => /run\.json|\.lock$|-wal$|approver/.test(path)));
  });

  test('a damaged, truncated or foreign file, a wrong passphrase and a newer version write nothing', async () => {
    const bytes = readFileSync(file);
    const target = join(folder, 'nothing');
    const wrong = join(folder, 'wrong-passphrase');
    writeFileSync(wrong, 'another passphrase', { mode: 0o600 });
    const flipped = Buffer.from(bytes);
    flipped[bytes.length - 40]! ^= 1;
    const cases: [name: string, content: Buffer, says: RegExp, sealedWith?: string][] = [
      ['flipped', flipped, /damaged or truncated/],
      ['cut', bytes.subarray(0, bytes.length - 100), /damaged or truncated/],
      ['head', bytes.subarray(0, 30), /damaged or truncated \(its first line\)/],
      ['foreign', randomBytes(5000), /is not a backup of Reveille/],
      ['empty', Buffer.alloc(0), /is not a backup of Reveille/],
      ['newer', Buffer.from(bytes.toString('latin1').replace('backup/1', 'backup/2'), 'latin1'), /newer Reveille/],
      ['whole', bytes, /the passphrase is not the one/, wrong],
    ];
    for (const [name, content, message, passphrase] of cases) {
      const path = join(folder, name);
      writeFileSync(path, content);
      const given = passphrase === undefined ? env : { REVEILLE_BACKUP_PASSPHRASE_FILE: passphrase };
      const { status, stderr } = await reveille(folder, ['restore', path, '--home', target], { env: given });
      assert.equal(status, 1, `${name}: ${stderr}`);
      assert.match(stderr, message, name);
      assert.equal(stderr.trimEnd().split('\n').length, 1);
      assert.ok(!existsSync(target) && !readdirSync(folder).some((entry) => entry.startsWith('nothing')), name);
    }
  });
});

describe('reveille backup of a home at rest', () => {
  let home: string;

  before(async () => {
    home = join(folder, 'resting');
    const installation = await startInstallation(owner, home);
    await installation.chronos.close();
    await installation.router.close();
    mkdirSync(join(home, 'neo', 'workspace'), { recursive: true });
    writeFileSync(join(home, 'neo', 'workspace', 'large'), randomBytes(24 * 1024 * 1024));
    const workspace = join(home, 'neo', 'workspace');
    symlinkSync('./large', join(workspace, 'link'));
    symlinkSync(join(home, 'neo'), join(workspace, 'absolute'));
    // A restore refuses links that lead out of the home, so a backup has none.
    symlinkSync('/etc/hostname', join(workspace, 'outside'));
    writeFileSync(join(home, 'config.yaml'), `NEO_DATA_DIR: ${join(home, 'neo')}\nREVEILLE_LOG: warn\n`);
  });

  test('a killed backup leaves no file under its name, and the next one cleans up', async () => {
    const file = join(folder, 'killed.backup');
    const child = spawn(process.execPath, [PROGRAM, 'backup', file], {
      env: { PATH: process.env.PATH, HOME: folder, REVEILLE_HOME: home, ...env },
      stdio: 'ignore',
    });
    const draft = `${file}.part-${child.pid}`;
    const ended = new Promise((resolve) => child.once('close', resolve));
    await eventually('some of it is written', () => existsSync(draft) && statSync(draft).size > 1024 * 1024);
    child.kill('SIGKILL');
    await ended;
    assert.ok(!existsSync(file) && existsSync(draft));
    const { status, stderr } = await reveille(home, ['backup', file], { env });
    assert.equal(status, 0, stderr);
    assert.match(stderr, /Omitted 1 symbolic links .*: neo\/workspace\/outside to \/etc\/hostname/);
    assert.ok(!existsSync(draft) && !readdirSync(home).some((entry) => entry.startsWith('.backup')));
    const again = await reveille(home, ['backup', file], { env });
    assert.match(again.stderr, /exists and is not overwritten/);

    const target = join(folder, 'from-killed');
    const restored = await reveille(home, ['restore', file, '--home', target], { env });
    assert.equal(restored.status, 0, restored.stderr);
    assert.equal(readlinkSync(join(target, 'neo', 'workspace', 'link')), './large');
    assert.equal(readlinkSync(join(target, 'neo', 'workspace', 'absolute')), '..');
    assert.ok(!existsSync(join(target, 'neo', 'workspace', 'outside')));
    assert.ok(
      readFileSync(join(target, 'neo/workspace/large')).equals(readFileSync(join(home, 'neo/workspace/large'))),
    );
    assert.match(readFileSync(join(target, 'config.yaml'), 'utf8'), /^# restored into this folder, was: NEO_DATA_DIR/m);
    assert.match(restored.stderr, /NEO_DATA_DIR.*is now a comment/);
  });

  test('on a full disk the backup says so and leaves nothing', async () => {
    const file = join(folder, 'no-room.backup');
    const command = `ulimit -f 4096; exec "${process.execPath}" "${PROGRAM}" backup "${file}"`;
    const child = spawn('bash', ['-c', command], {
      env: { PATH: process.env.PATH, HOME: folder, REVEILLE_HOME: home, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const status = await new Promise((resolve) => child.once('close', resolve));
    assert.equal(status, 1);
    assert.match(output, /was not made: the disk is full .*nothing was left behind: free space/);
    assert.ok(!readdirSync(folder).some((entry) => entry.startsWith('no-room')));
    assert.ok(!readdirSync(home).some((entry) => entry.startsWith('.backup')));
  });

  test('a home of a newer version, a non-empty home, a short passphrase and a file within the home are refused', async () => {
    const newer = join(folder, 'newer-home');
    const file = join(folder, 'newer.backup');
    truncateSync(join(home, 'neo', 'workspace', 'large'), 0);
    await reveille(home, ['backup', join(folder, 'small.backup')], { env });
    assert.equal((await reveille(home, ['restore', join(folder, 'small.backup'), '--home', newer], { env })).status, 0);
    const db = new DatabaseSync(join(newer, 'chronos', 'chronos.db'));
    db.exec(`INSERT INTO schema_migrations VALUES (900, 'of-tomorrow', 'x', '2030-01-01T00:00:00Z')`);
    db.close();
    assert.equal((await reveille(newer, ['backup', file], { env })).status, 0);
    const target = join(folder, 'from-newer');
    const { stderr } = await reveille(home, ['restore', file, '--home', target], { env });
    assert.match(
      stderr,
      /was created by a newer Reveille \(schema 900 of chronos\.db.*use that version or a later one/,
    );
    assert.ok(!existsSync(target));
    const full = await reveille(home, ['restore', file, '--home', newer], { env });
    assert.match(full.stderr, /is not empty \(.* is in it\); name an empty folder with --home/);

    const short = join(folder, 'short');
    writeFileSync(short, 'short', { mode: 0o600 });
    const given = { REVEILLE_BACKUP_PASSPHRASE_FILE: short };
    const weak = await reveille(home, ['backup', join(folder, 'weak.backup')], { env: given });
    assert.match(weak.stderr, /at least 8 characters/);
    const unasked = await reveille(home, ['backup', join(folder, 'weak.backup')]);
    assert.match(unasked.stderr, /name a file with REVEILLE_BACKUP_PASSPHRASE_FILE/);
    const inside = await reveille(home, ['backup', join(home, 'x.backup')], { env });
    assert.match(inside.stderr, /is inside the home that is backed up/);
    const withoutHome = await reveille(join(folder, 'no-home'), ['backup', join(folder, 'n.backup')], { env });
    assert.match(withoutHome.stderr, /there is no installation in/);
  });

  test("the approver's key is included only on request, and is never overwritten", async () => {
    const person = { ...env, REVEILLE_APPROVER_DIR: join(folder, 'approver'), REVEILLE_APPROVER_STORE: 'file' };
    const key = join(folder, 'approver', 'approver.json');
    const { loadOrMakeApprover } = await import('../../../src/cli/approver/approver-key.ts');
    await loadOrMakeApprover(person, Date.now());
    const keyed = join(folder, 'keyed.backup');
    await reveille(home, ['backup', keyed, '--with-approver-key'], { env: person });
    const other = { ...person, REVEILLE_APPROVER_DIR: join(folder, 'approver-elsewhere') };
    const args = (to: string) => ['restore', keyed, '--home', join(folder, to), '--with-approver-key'];
    await reveille(home, args('keyed-1'), { env: other });
    const copied = join(folder, 'approver-elsewhere', 'approver.json');
    assert.equal(readFileSync(copied, 'utf8'), readFileSync(key, 'utf8'));
    const same = await reveille(home, args('keyed-2'), { env: other });
    assert.match(same.stdout, /approver {3}.*approver\.json has this key already/);
    writeFileSync(copied, readFileSync(copied, 'utf8').replace('\n', ' \n'));
    const { stderr } = await reveille(home, args('keyed-3'), { env: other });
    assert.match(stderr, /approver's key was not restored: .*has another one/);
    assert.ok(!existsSync(join(folder, 'keyed-3', 'approver.json')));
  });
});
