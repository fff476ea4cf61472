/** Runs the hostile program in the sandbox, as root and as an ordinary user, for a short test and a long one. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/temporary.ts';
import { hasBubblewrap } from '../../support/tools.ts';
import type { Outcome, Task } from './trespasser.ts';

const run = promisify(execFile);
const TRESPASSER = join(import.meta.dirname, 'trespasser.ts');
const ENTER = join(import.meta.dirname, 'enter.ts');
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const isRoot = process.geteuid?.() === 0;

type As = { readonly uid: number; readonly gid: number };
/**
 * Who starts the sandbox, and for whom. `open`: a program that sees the system, as a machine's; `closed`: one that sees
 * only named folders, as the shell's.
 */
type Case = { readonly name: string; readonly starter?: As; readonly user?: As; readonly kind: 'open' | 'closed' };

const CASES: readonly Case[] = [
  { name: 'a program of this user', kind: 'open' },
  { name: 'a closed program of this user', kind: 'closed' },
  { name: 'a program of an ordinary user', starter: UNPRIVILEGED, kind: 'open' },
  { name: 'a closed program of an ordinary user', starter: UNPRIVILEGED, kind: 'closed' },
  { name: 'a program that root starts for an ordinary user', user: UNPRIVILEGED, kind: 'open' },
];

/** Defines the tests. @param limitMs of each walk */
export function testTrespassing(files: Task['files'], limitMs: number): void {
  for (const { name, starter, user, kind } of CASES)
    test(`${name} in the sandbox writes only its own files, and reaches no other process`, async (t) => {
      if (!(await hasBubblewrap(t))) return;
      if ((starter ?? user) && !isRoot) return t.skip('only root can run a test as another user');
      const folder = temporaryFolder(t);
      const own = join(folder, 'own');
      mkdirSync(own);
      if (starter ?? user) {
        chmodSync(folder, 0o755);
        chownSync(own, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
      }
      const mark = `reveille-${process.pid}-${files}`;
      const task: Task = { own: [own], pid: process.pid, files, limitMs, mark };
      const args = [ENTER, kind, own, JSON.stringify(user ?? null), TRESPASSER, JSON.stringify(task)];
      const options = { env: { PATH: process.env.PATH, HOME: folder, SECRET_OUTSIDE: '1' }, cwd: '/', ...starter };
      const { stdout } = await run(process.execPath, args, { ...options, maxBuffer: 64 * 1024 * 1024 });
      const outcome = JSON.parse(stdout) as Outcome;
      const { folders, files: tried, processes, escapes, through, status } = outcome;
      t.diagnostic(
        `${folders} folders, ${tried} files, ${processes} processes, ${escapes} escapes tried, ${through.length} through`,
      );
      assert.deepEqual(through, []);
      assert.ok(outcome.isComplete, 'the walk ended before its limit');
      assert.ok(folders > 100 && processes > 60_000, 'it has really tried');
      assert.match(status.CapEff ?? '', /^0+$/);
      assert.equal(status.NoNewPrivs, '1', 'setuid programs give it nothing');
      assert.ok(!/^0\b/.test(status.Uid ?? ''), 'it is not root inside');
      for (const place of ['/etc', '/usr', '/root']) assert.ok(!existsSync(join(place, mark)), place);
    });
}
