import assert from 'node:assert/strict';
import { closeSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { ProcessLog } from './process-log.ts';

const MIB = 1024 * 1024;

/** A log, and the descriptor for its process. */
function open(t: TestContext, folder = temporaryFolder(t)) {
  const log = new ProcessLog(folder, 'alice');
  const fd = log.openForProcess();
  atEnd(t, () => closeSync(fd));
  return { log, folder, write: (text: string) => writeSync(fd, text) };
}

test('a short log is not rotated', async (t) => {
  const { log, folder, write } = open(t);
  write('hello\n');
  await log.rotate();
  assert.deepEqual(readdirSync(folder), [basename(log.path)]);
  assert.equal(readFileSync(log.path, 'utf8'), 'hello\n');
});

test('a log is kept in four files of at most one MiB, however much is written', async (t) => {
  const { log, folder, write } = open(t);
  for (let n = 0; n < 8; n++) {
    write(`${String(n).repeat(3 * MIB)}\n`);
    await Promise.all([log.rotate(), log.rotate()]);
  }
  write('the end\n');
  const files = readdirSync(folder).toSorted();
  assert.deepEqual(
    files,
    ['', '.1', '.2', '.3'].map((suffix) => basename(log.path) + suffix),
  );
  for (const file of files) {
    assert.ok(statSync(join(folder, file)).size <= MIB, file);
    assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600);
  }
  assert.deepEqual(
    files.map((file) => readFileSync(join(folder, file), 'utf8').slice(-8)),
    ['the end\n', '7777777\n', '6666666\n', '5555555\n'],
  );
});

test('the tail of a log has only output of its process, also after a rotation', async (t) => {
  const folder = temporaryFolder(t);
  const before = open(t, folder);
  before.write('of the process before\n');
  const { log, write } = open(t, folder);
  assert.equal(await log.tail(100), '');
  write('first\n');
  assert.equal(await log.tail(100), 'first\n');
  write(`${'.'.repeat(2 * MIB)}\nbefore the cut\n`);
  await log.rotate();
  write('after the cut\n');
  assert.match(await log.tail(100), /^\.+\nbefore the cut\nafter the cut\n$/);
  assert.equal((await log.tail(100)).length, 100);
  assert.equal(await log.tail(5), ' cut\n');
});

test('a log that was replaced by a link is not written through', async (t) => {
  const folder = temporaryFolder(t);
  const elsewhere = join(folder, 'precious');
  writeFileSync(elsewhere, 'precious');
  const log = new ProcessLog(join(folder, 'logs'), 'alice');
  symlinkSync(elsewhere, log.path);
  assert.throws(() => log.openForProcess(), /cannot be opened: ELOOP/);
  assert.equal(readFileSync(elsewhere, 'utf8'), 'precious');
});
