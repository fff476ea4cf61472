/** Restores crafted archives: nothing is written outside of the home, and a refused one leaves nothing. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Dice, diceOf, rounds } from '../../../test/support/random/random.ts';
import { namesBelow, temporaryFolder } from '../../../test/support/temporary.ts';
import { Beneath } from '../../kit/files/beneath.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Part, writeArchive } from './archive.ts';

import { restoreBackup, Unpacking } from './restore.ts';
import { sealing } from './sealed-stream.ts';

type Crafted = Readonly<Record<string, unknown>>;
const ABOUT = {
  reveille: '0.1.0',
  made_at: '2026-11-24T00:00:00Z',
  cut: 'instant',
  schemas: {},
  alarms: 'file',
} as const;

const dir = (path: string, mode: number = 0o700) => ({ kind: 'folder', path, mode });
const file = (path: string, mode: number = 0o600) => ({ kind: 'file', path, mode });
const link = (path: string, target: string) => ({ kind: 'link', path, target });

async function collected(source: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Readable.from(source).toArray());
}

/** The bytes of an archive with these entries: the writer accepts any entry. */
function archiveOf(entries: readonly Crafted[]): Promise<Buffer> {
  async function* parts(): AsyncGenerator<Part> {
    for (const head of entries) {
      const content = head.kind === 'file' ? { content: Readable.from([Buffer.from('written by the archive')]) } : {};
      yield { head: head as unknown as Part['head'], ...content };
    }
  }
  return collected(writeArchive(ABOUT, parts(), () => {}));
}

/** Everything below a folder: kind, mode, and content or target. */
function tree(folder: string): string[] {
  return namesBelow(folder)
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const stat = lstatSync(path);
      const what = stat.isSymbolicLink() ? readlinkSync(path) : stat.isFile() ? readFileSync(path, 'utf8') : '';
      return `${name} ${stat.mode.toString(8)} ${what}`;
    });
}

/** A folder with a victim beside the home, and a restore of crafted entries into that home. */
async function bench(t: TestContext) {
  const base = realpathSync(temporaryFolder(t));
  const victim = join(base, 'victim');
  mkdirSync(join(victim, 'folder'), { recursive: true });
  writeFileSync(join(victim, 'file'), 'untouched');
  const { key, seal } = await sealing('three quiet words');
  let count = 0;
  const restore = async (entries: readonly Crafted[], more: { onOutsideLink?: (path: string) => void } = {}) => {
    const backup = join(base, 'crafted.backup');
    const sealed = seal(Readable.from([gzipSync(await archiveOf(entries))]));
    await writeFile(backup, await collected(sealed));
    const before = tree(base);
    const home = join(base, `home-${count++}`);
    try {
      await restoreBackup({ file: backup, home, passphrase: key, ...more });
      return { home, before };
    } catch (thrown) {
      assert.ok(thrown instanceof ReveilleError, `${JSON.stringify(entries)}: ${thrown}`);
      assert.deepEqual(tree(base), before, `left behind by ${JSON.stringify(entries)}`);
      return { message: thrown.message, before };
    }
  };
  return { base, victim, restore };
}

test('a crafted entry is refused with its name and the reason, and nothing is left', async (t) => {
  const { victim, restore } = await bench(t);
  const cases: readonly (readonly [entries: Crafted[], says: RegExp])[] = [
    [[link('a', victim), file('a/.bash_profile')], /entry "a", which points to ".*victim", which is outside the home/],
    [[dir('in'), link('in/a', '../..')], /entry "in\/a", which points to "\.\.\/\.\."/],
    [[dir('d'), link('d/a', '..'), link('b', 'd/a/../../victim')], /entry "b".*with "\.\." after another name/],
    [[link('a', 'b'), file('a/x')], /entry "a\/x", which is below "a", which is a link/],
    [[file('a'), file('a/x')], /entry "a\/x", which is below "a", which is a file/],
    [[file('a'), dir('a')], /entry "a", which is a duplicate: first a file, then a folder/],
    [[link('a', 'b'), dir('a'), file('a/x')], /entry "a", which is a duplicate: first a link/],
    [[dir('a'), link('a', 'b')], /is a duplicate/],
    [[file('a'), file('a')], /is a duplicate/],
    [[file('/etc/cron.d/x')], /entry "\/etc\/cron.d\/x", which has an absolute path/],
    [[file('../x')], /which has "\.\." in its path/],
    [[dir('a'), file('a/../../x')], /which has "\.\." in its path/],
    [[file('./x')], /an empty name or "\."/],
    [[dir('a/')], /an empty name or "\."/],
    [[file('')], /which has an empty path/],
    [[file('a\0b')], /which has a NUL character in its path/],
    [[link('a', 'b\0c')], /malformed target/],
    [[link('a', '')], /malformed target/],
    [[file('\ud800')], /half of a surrogate pair/],
    [[file('n'.repeat(256))], /a name of more than 255 bytes/],
    [[file(Array(129).fill('d').join('/'))], /more than 128 folders deep/],
    [[file('nowhere/x')], /is below a folder that does not precede it/],
    [
      [{ kind: 'hardlink', path: 'a', target: 'b' }],
      /entry "a", which is a "hardlink"; only folders, files and symbolic/,
    ],
    [[{ kind: 'device', path: 'a', mode: 0o600 }], /is a "device"/],
    [[{ kind: 'fifo', path: 'a', mode: 0o600 }], /is a "fifo"/],
    [[{ ...file('a'), uid: 0 }], /has the unknown field "uid"/],
    [[{ kind: 'file', path: 'a' }], /has no mode/],
    [[{ kind: 'file', path: 7, mode: 0 }], /entry "7", which has no path/],
  ];
  for (const [entries, says] of cases) {
    const { message = '' } = await restore(entries);
    assert.match(message, says, JSON.stringify(entries).slice(0, 200));
    assert.match(message, /nothing was restored from it: /);
  }
});

test('modes give rights to the owner only, and links within the home are restored', async (t) => {
  const { restore } = await bench(t);
  const { home, message } = await restore([
    ...[dir('d', 0o7777), file('setuid', 0o4777), file('d/world', 0o666), file('sticky', 0o3755)],
    ...[link('d/up', '../setuid'), link('in', './d'), dir('closed', 0o500), file('closed/x', 0o400)],
  ]);
  assert.equal(message, undefined);
  const mode = (name: string) => (lstatSync(join(home!, name)).mode & 0o7777).toString(8);
  assert.deepEqual(['d', 'setuid', 'd/world', 'sticky', 'closed', 'closed/x'].map(mode), [
    ...['700', '700', '600', '700', '500', '400'],
  ]);
  assert.equal(readlinkSync(join(home!, 'd/up')), '../setuid');
  assert.equal(readFileSync(join(home!, 'in/world'), 'utf8'), 'written by the archive');
  chmodSync(join(home!, 'closed'), 0o700);
});

test('links that lead out of the home are omitted on request', async (t) => {
  const { victim, restore } = await bench(t);
  const skipped: string[] = [];
  const entries = [link('out', victim), link('in', 'x'), file('x')];
  const { home } = await restore(entries, { onOutsideLink: (path) => skipped.push(path) });
  assert.deepEqual(readdirSync(home!).sort(), ['in', 'x']);
  assert.deepEqual(skipped, ['out']);
});

/** Entries with few names, so that they collide: hostile ones, and valid ones. */
function crafted(pick: Dice, victim: string): Crafted[] {
  const one = <T>(list: readonly T[]): T => list[pick(list.length)]!;
  const name = () => one(['a', 'b', 'c', 'A', '.bash_profile', 'folder', 'file']);
  const path = (): string => {
    const plain = Array.from({ length: 1 + pick(2) }, name).join('/');
    const odd = () => one([`/${plain}`, `../${plain}`, `${plain}/..`, `${plain}\0`, `./${plain}`, `${victim}/x`, '..']);
    return pick(12) === 0 ? odd() : plain;
  };
  const climb = () => '../'.repeat(pick(4)) + name();
  const target = () =>
    one([victim, '..', '../..', '.', name(), climb(), `${path()}/../../victim`, '/', `${victim}/file`, path()]);
  const mode = () => one([0o600, 0o700, 0o777, 0o4777, 0o2755, 0o1777, 0, -1, 0o100644]);
  const kinds = [() => link(path(), target()), () => file(path(), mode()), () => dir(path(), mode())];
  const odd = () => ({ kind: one(['hardlink', 'fifo', 'device']), path: path(), target: victim });
  const folders = pick(2) === 0 ? [dir('a'), dir('a/b'), dir('b', mode())] : [];
  return [...folders, ...Array.from({ length: 1 + pick(5) }, () => (pick(20) === 0 ? odd() : one(kinds)()))];
}

test('none of hundreds of crafted archives writes outside of the home', async (t) => {
  const { base, victim, restore } = await bench(t);
  const pick = diceOf(t);
  const counts = { archives: 0, refused: 0, restored: 0, outside: 0 };
  const untouched = tree(victim);
  for (; counts.archives < rounds(400, 4000); counts.archives++) {
    const entries = crafted(pick, victim);
    const { home, before } = await restore(entries);
    if (home === undefined) counts.refused++;
    else {
      counts.restored++;
      for (const entry of namesBelow(home)) {
        const at = join(home, entry);
        const stat = lstatSync(at);
        if (!stat.isSymbolicLink()) assert.equal(stat.mode & 0o7077, 0, JSON.stringify(entries));
        else if (leadsOut(at, home)) counts.outside++;
      }
      // The restored home moves aside, so that the rest can be compared with the earlier state.
      renameSync(home, `${base}-restored`);
      if (JSON.stringify(tree(base)) !== JSON.stringify(before)) counts.outside++;
      renameSync(`${base}-restored`, join(temporaryFolder(t), 'home'));
    }
    if (JSON.stringify(tree(victim)) !== JSON.stringify(untouched)) counts.outside++;
  }
  t.diagnostic(`${counts.archives} crafted archives: ${JSON.stringify(counts)}`);
  assert.equal(counts.outside, 0);
  assert.ok(counts.refused > 200 && counts.restored > 20, JSON.stringify(counts));
});

/** Whether a link's target, as the system resolves it, is outside of a folder. Loops and gaps have no target. */
function leadsOut(path: string, folder: string): boolean {
  try {
    const real = realpathSync(path);
    return real !== folder && !real.startsWith(folder + sep);
  } catch {
    return false;
  }
}

test('a folder that another process replaces by a link meanwhile is not followed', async (t) => {
  const base = realpathSync(temporaryFolder(t));
  const [root, victim] = [join(base, 'root'), join(base, 'victim')];
  for (const folder of [root, victim]) mkdirSync(folder);
  const beneath = new Beneath(root);
  t.after(() => beneath.close());
  const unpacking = new Unpacking(beneath, 'backup', undefined);
  const folder = (path: string) => unpacking.part({ kind: 'folder', path, mode: 0o700 });
  const file = (path: string) => unpacking.part({ kind: 'file', path, mode: 0o600 });
  await folder('a');
  renameSync(join(root, 'a'), join(root, 'moved'));
  symlinkSync(victim, join(root, 'a'));
  const refused = { name: 'ReveilleError', message: /is no longer a folder/ };
  await assert.rejects(file('a/x'), refused);
  await assert.rejects(folder('a/x'), refused);
  await unpacking.part({ kind: 'link', path: 'a/x', target: 'y' });
  assert.throws(() => unpacking.finish(), refused);
  for (const taken of [folder('a'), file('a')])
    await assert.rejects(taken, ({ cause }: Error) => (cause as NodeJS.ErrnoException).code === 'EEXIST');
  assert.deepEqual(readdirSync(victim), []);
});
