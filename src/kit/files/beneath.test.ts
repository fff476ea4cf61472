import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { constants, existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { Beneath, BeneathError } from './beneath.ts';

const codeOf = (act: () => unknown): string => {
  try {
    act();
    return 'none';
  } catch (thrown) {
    assert.ok(thrown instanceof BeneathError, String(thrown));
    return thrown.code;
  }
};

function open(t: import('node:test').TestContext) {
  const folder = temporaryFolder(t);
  const [root, outside] = [join(folder, 'root'), join(folder, 'outside')];
  mkdirSync(join(root, 'a', 'b'), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(outside, 'canary'), 'canary');
  const files = new Beneath(root);
  t.after(() => files.close());
  return { root, outside, files };
}

describe('Beneath', () => {
  test('reads, writes, renames and removes beneath its folder', (t) => {
    const { root, files } = open(t);
    files.write('a/b/file', Buffer.from('one'));
    files.write('a/b/file', Buffer.from('two'), { temporary: 'a/b/file.lock' });
    assert.equal(files.read('a/b/file', 10).toString(), 'two');
    assert.equal(
      codeOf(() => files.read('a/b/file', 2)),
      'EFBIG',
    );
    files.mkdirs('c/d/e');
    files.rename('a/b/file', 'c/d/e/file');
    files.symlink('../outside', 'link');
    assert.equal(files.readlink('link').toString(), '../outside');
    assert.deepEqual(files.list('c/d/e'), [{ name: 'file', kind: 'file' }]);
    assert.equal(files.kind('link'), 'link');
    files.unlink('link');
    files.unlink('c/d/e/file');
    files.rmdir('c/d/e');
    assert.ok(!existsSync(join(root, 'c/d/e')));
    assert.equal(files.lstat('nowhere/at/all'), undefined);
  });

  test('follows no link, in the middle or at the end of a path, and refuses paths out of its folder', (t) => {
    const { root, outside, files } = open(t);
    symlinkSync(outside, join(root, 'out'));
    symlinkSync(join(outside, 'canary'), join(root, 'file'));
    symlinkSync('a', join(root, 'inside'));
    for (const path of ['out/canary', 'inside/b', 'file'])
      assert.match(
        codeOf(() => files.read(path, 100)),
        /^ELOOP$/,
        path,
      );
    for (const path of ['../outside/canary', '/etc/passwd', 'a/../../outside/canary', 'a//b', 'a/./b', 'a\0b'])
      for (const act of [
        () => files.read(path, 100),
        () => files.write(path, Buffer.from('x')),
        () => files.unlink(path),
      ])
        assert.equal(codeOf(act), 'EINVAL', path);
    for (const act of [
      () => files.write('out/new', Buffer.from('x')),
      () => files.mkdir('out/new'),
      () => files.mkdirs('out/new/er'),
      () => files.unlink('out/canary'),
      () => files.symlink('x', 'out/new'),
      () => files.rename('a', 'out/a'),
      () => files.rename('out/canary', 'canary'),
      () => files.list('out'),
    ])
      assert.equal(codeOf(act), 'ELOOP');
    assert.equal(files.lstat('out/canary'), undefined);
    files.write('file', Buffer.from('mine'));
    linkSync(join(outside, 'canary'), join(root, 'hard'));
    files.write('hard', Buffer.from('mine'));
    assert.equal(readFileSync(join(outside, 'canary'), 'utf8'), 'canary');
    assert.equal(
      codeOf(() => files.open('new', constants.O_WRONLY | constants.O_CREAT)),
      'EINVAL',
    );
  });

  test('refuses a FIFO without waiting, and refuses a device', {
    skip: process.platform === 'win32' && 'no FIFO',
  }, (t) => {
    const { root, files } = open(t);
    execFileSync('mkfifo', [join(root, 'pipe')]);
    assert.equal(
      codeOf(() => files.read('pipe', 100)),
      'ENOTSUP',
    );
    assert.equal(
      codeOf(() => files.open('pipe', constants.O_WRONLY)),
      'ENOTSUP',
    );
    assert.equal(
      codeOf(() => files.read('a', 100)),
      'EISDIR',
    );
  });

  test('a link that replaces a folder during the operation is refused', async (t) => {
    if (process.platform !== 'linux') return t.skip('other systems check each component and then use it');
    const { root, outside, files } = open(t);
    mkdirSync(join(root, 'spot'));
    writeFileSync(join(root, 'spot', 'canary'), 'inside');
    const swap = `
      const { renameSync, symlinkSync, unlinkSync } = require('node:fs');
      const { workerData: { spot, kept, outside, ended } } = require('node:worker_threads');
      for (let swaps = 1; !Atomics.load(ended, 0); swaps++) {
        renameSync(spot, kept); symlinkSync(outside, spot);
        unlinkSync(spot); renameSync(kept, spot);
        // Without rests, an operation that takes longer than one swap would never find the folder in its place.
        if (swaps % 20 === 0) Atomics.wait(ended, 0, 0, 1);
      }`;
    const ended = new Int32Array(new SharedArrayBuffer(4));
    const workerData = { spot: join(root, 'spot'), kept: join(root, 'kept'), outside, ended };
    const thread = new Worker(swap, { eval: true, workerData });
    await new Promise((resolve) => thread.once('online', resolve));
    const counts: Record<string, number> = {};
    for (let round = 0; round < 20_000; round++) {
      let read: string;
      try {
        read = files.read('spot/canary', 100).toString();
        files.write(`spot/${round % 10}`, Buffer.from('x'));
      } catch (thrown) {
        read = (thrown as BeneathError).code;
      }
      counts[read] = (counts[read] ?? 0) + 1;
    }
    Atomics.store(ended, 0, 1);
    await new Promise((resolve) => thread.once('exit', resolve));
    assert.equal(counts.canary, undefined);
    assert.ok((counts.inside ?? 0) > 0, JSON.stringify(counts));
    assert.deepEqual(readdir(outside), ['canary']);
    t.diagnostic(`20000 operations while a link replaced the folder, 0 followed it: ${JSON.stringify(counts)}`);
  });
});

function readdir(folder: string): string[] {
  return new Beneath(folder).list('').map(({ name }) => name);
}
