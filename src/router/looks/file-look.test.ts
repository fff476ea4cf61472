import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { LOOK_EVENTS_MAX, lookAnswerSchema } from '../../wire/look.ts';
import { ENTRIES_SHOWN, lookAtFile } from './file-look.ts';

type Data = { change: string; path: string; name?: string; kind?: string; size?: number; sha256?: string };

/** Looks at a path in a folder that the agent may read, one look after another. */
function createWatch(t: TestContext, path = '') {
  const outside = temporaryFolder(t);
  const home = join(outside, 'home');
  mkdirSync(home);
  const isReadable = (real: string) => real === home || real.startsWith(`${home}/`);
  let seen: string | undefined;
  const ids = new Set<string>();
  async function once(given = seen) {
    const answer = await lookAtFile(path || home, { folder: home, isReadable, now: Date.now() }, given);
    return lookAnswerSchema.parse(answer);
  }
  async function look(): Promise<Data[]> {
    const found: Data[] = [];
    let answer: Awaited<ReturnType<typeof once>>;
    do {
      answer = await once();
      for (const { id, data } of answer.events) {
        assert.ok(!ids.has(id), `twice: ${id}`);
        ids.add(id);
        found.push(JSON.parse(data) as Data);
      }
      seen = answer.seen;
    } while (answer.more);
    return found;
  }
  const short = async () =>
    (await look()).map(({ change, name = '.', kind }) => [change, name, kind ?? ''].join(' ').trim());
  const at = (name: string) => join(home, name);
  return { outside, home, at, once, look, short, seen: () => seen! };
}

/** Makes a file old enough not to be young. */
const age = (path: string, seconds = 10) => {
  const { mtimeMs } = statSync(path);
  utimesSync(path, mtimeMs / 1000 - seconds, mtimeMs / 1000 - seconds);
};

test('created, changed and deleted files are reported once, with size, time and digest, and no content', async (t) => {
  const { at, look, short } = createWatch(t);
  writeFileSync(at('old'), 'was there');
  assert.deepEqual(await short(), [], 'the first look only remembers');
  writeFileSync(at('new'), 'secret content');
  const [created] = await look();
  const { modified_at, ...rest } = created as Data & { modified_at: string };
  assert.match(modified_at, /^\d{4}-\d\d-\d\dT/);
  const sha256 = createHash('sha256')
    .update(readFileSync(at('new')))
    .digest('hex');
  assert.deepEqual(rest, {
    ...{ change: 'created', path: at(''), name: 'new' },
    kind: 'file',
    size: 14,
    sha256,
  });
  assert.deepEqual(await short(), []);
  appendFileSync(at('old'), '!');
  assert.deepEqual(await short(), ['changed old file']);
  unlinkSync(at('old'));
  renameSync(at('new'), at('renamed'));
  mkdirSync(at('folder'));
  assert.deepEqual((await short()).sort(), [
    'created folder folder',
    'created renamed file',
    'deleted new',
    'deleted old',
  ]);
  writeFileSync(at('folder/inner'), 'x');
  assert.deepEqual(await short(), [], 'what is in a folder of the folder is not looked at');
});

test('a change within the precision of the clock is seen by its content', async (t) => {
  const { at, short } = createWatch(t);
  writeFileSync(at('a'), 'one');
  await short();
  const { atimeMs, mtimeMs } = statSync(at('a'));
  writeFileSync(at('a'), 'two');
  utimesSync(at('a'), atimeMs / 1000, mtimeMs / 1000);
  const before = statSync(at('a')).mtimeMs;
  assert.deepEqual(await short(), ['changed a file'], String(before));
  assert.deepEqual(await short(), []);
});

test('the same change, again and again, is reported each time', async (t) => {
  const { outside, at, short } = createWatch(t);
  writeFileSync(join(outside, 'x'), 'x');
  age(join(outside, 'x'));
  await short();
  for (let round = 0; round < 4; round++) {
    renameSync(join(outside, 'x'), at('x'));
    assert.deepEqual(await short(), ['created x file']);
    renameSync(at('x'), join(outside, 'x'));
    assert.deepEqual(await short(), ['deleted x']);
  }
});

test('a repeated look has the same ids, and another path begins anew', async (t) => {
  const { home, at, once, short, seen } = createWatch(t);
  await short();
  writeFileSync(at('a'), 'a');
  const [one, other] = [await once(), await once()];
  assert.deepEqual(one, other);
  assert.equal(one.events.length, 1);
  const elsewhere = await lookAtFile('.', { folder: at('sub'), isReadable: () => true, now: 1 }, seen()).catch(
    () => undefined,
  );
  assert.equal(elsewhere?.events.length ?? 0, 0);
  assert.ok(home);
  for (const text of ['', '{}', '[2,"x",1,[]]', '[1,"x",1,"AAAA"]', 'null'])
    assert.deepEqual((await once(text)).events, [], text);
});

test('a single file that comes, changes, is replaced and goes', async (t) => {
  const { at, short, look } = createWatch(t, 'sub/one.txt');
  assert.deepEqual(await look(), [], 'its folder is missing too');
  mkdirSync(at('sub'));
  assert.deepEqual(await short(), []);
  writeFileSync(at('sub/one.txt'), '1');
  assert.deepEqual(await short(), ['created . file']);
  writeFileSync(at('sub/tmp'), '1');
  renameSync(at('sub/tmp'), at('sub/one.txt'));
  assert.deepEqual(await short(), ['changed . file']);
  unlinkSync(at('sub/one.txt'));
  mkdirSync(at('sub/one.txt'));
  writeFileSync(at('sub/one.txt/child'), '');
  assert.deepEqual(await short(), ['changed . folder', 'created child file']);
  rmSync(at('sub/one.txt'), { recursive: true });
  assert.deepEqual(await short(), ['deleted .', 'deleted child']);
});

test('links lead nowhere: neither the path, nor an entry, nor a folder on the way', async (t) => {
  const { outside, home, at, short, look } = createWatch(t);
  const secret = join(outside, 'secret');
  mkdirSync(secret);
  writeFileSync(join(secret, 'key'), 'k');
  await short();
  symlinkSync(join(secret, 'key'), at('link'));
  symlinkSync(secret, at('way'));
  const found = await look();
  assert.deepEqual(found.map(({ name, kind, size, sha256 }) => [name, kind, size, sha256]).sort(), [
    ['link', 'link', undefined, undefined],
    ['way', 'link', undefined, undefined],
  ]);
  writeFileSync(join(secret, 'key'), 'changed outside');
  assert.deepEqual(await short(), []);
  const isReadable = (real: string) => real === home || real.startsWith(`${home}/`);
  for (const path of [
    'link',
    'way',
    'way/key',
    '../secret',
    secret,
    join(home, '..', 'secret', 'key'),
    '/etc/passwd',
    '/',
  ])
    await assert.rejects(
      lookAtFile(path, { folder: home, isReadable, now: 1 }, undefined),
      /not in a folder that the agent may read/,
      path,
    );
  linkSync(join(secret, 'key'), at('hard'));
  assert.deepEqual(await short(), ['created hard file'], 'a hard link is a file of the folder');
});

test('pipes and devices are entries without content', { skip: process.platform === 'win32' }, async (t) => {
  const { at, look, short } = createWatch(t);
  await short();
  execFileSync('mkfifo', [at('pipe')]);
  const [found] = await look();
  assert.deepEqual([found!.kind, found!.size, found!.sha256], ['other', undefined, undefined]);
});

test('many changes come in several looks, each once', async (t) => {
  const { at, once, short } = createWatch(t);
  for (let n = 0; n < 500; n++) writeFileSync(at(`before-${n}`), '');
  await short();
  for (let n = 0; n < 500; n++) renameSync(at(`before-${n}`), at(`after-${n}`));
  assert.equal((await once()).events.length, LOOK_EVENTS_MAX);
  const found = await short();
  assert.equal(new Set(found).size, 1000);
  assert.equal(found.length, 1000);
});

test('a folder with 10,000 entries is reported as a whole, and one with more is refused', async (t) => {
  const { at, look, short, seen } = createWatch(t);
  await short();
  for (let n = 0; n < 10_000; n++) writeFileSync(at(`${n}`), '');
  const [crowd, ...more] = (await look()) as (Data & { entries: number; note: string })[];
  assert.deepEqual(more, []);
  assert.equal(crowd!.entries, 10_000);
  assert.match(crowd!.note, new RegExp(`more than ${ENTRIES_SHOWN} entries`));
  assert.ok(seen().length < 300);
  assert.deepEqual(await look(), []);
  appendFileSync(at('5000'), 'x');
  assert.equal((await look()).length, 1);
  writeFileSync(at('one more'), '');
  await assert.rejects(look(), /more than 10000 entries/);
  unlinkSync(at('one more'));
  for (let n = 0; n < 9_990; n++) unlinkSync(at(`${n}`));
  assert.equal((await look()).length, 1, 'it has few again');
  writeFileSync(at('new'), '');
  assert.deepEqual(await short(), ['created new file']);
});

test('long names do not make what is remembered too long', async (t) => {
  const { at, look, seen } = createWatch(t);
  await look();
  const random = () => Buffer.from(Array.from({ length: 120 }, () => Math.floor(Math.random() * 256))).toString('hex');
  for (let n = 0; n < 900; n++) writeFileSync(at(random()), '');
  assert.equal((await look()).length, 1);
  assert.ok(seen().length < 64 * 1024);
});

test('strange names are reported as they are', async (t) => {
  const { at, look } = createWatch(t);
  await look();
  const names = ['a\nb', '"', ' ', '-rf', '\u{1f600}', '<script>', '__proto__'];
  for (const name of names) writeFileSync(at(name), '');
  assert.deepEqual((await look()).map(({ name }) => name!).sort(), [...names].sort());
});

test('a missing folder is refused at the first look, and a missing file is not', async (t) => {
  for (const path of ['nowhere/', 'a/b/']) {
    const { once } = createWatch(t, path);
    await assert.rejects(once(), { message: /^the folder \/\S*(nowhere|a\/b) does not exist; create it, or/ }, path);
  }
  const { at, look, once, seen } = createWatch(t, 'inbox/mail.txt');
  mkdirSync(at('inbox'));
  assert.deepEqual(await look(), []);
  // A folder that goes later is a change.
  rmSync(at('inbox'), { recursive: true });
  await once(seen());
});
