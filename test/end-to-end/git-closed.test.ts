/**
 * Two earlier ways for git to leave the workspace, tried with only a submitter's token: real processes, the shipped
 * manifest and policy, with and without the sandbox, as root and as an ordinary user.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { perform } from '../../src/capabilities/git-operations.ts';
import { Beneath } from '../../src/kit/files/beneath.ts';
import { eventually } from '../support/eventually.ts';
import { atEnd, listening, namesBelow } from '../support/temporary.ts';
import { hasBubblewrap } from '../support/tools.ts';
import { callerOf } from '../system/executor/executor-bench.ts';
import { EXECUTOR_TOKEN, startExecutorProcess } from '../system/rail/executor-process.ts';

const LIMIT_MS = 60_000;
const NOBODY = { uid: 65_534, gid: 65_534 };
const SECRET = 'the-seed-of-the-approver-7c1f';
const GIT_TOKEN = 'the-token-of-the-remote-93ab';
const isRoot = process.geteuid?.() === 0;

type Node = { id: string; kind: 'call'; tool: string; args: object };

async function startHouse(t: TestContext, { separation, as }: { separation: string; as?: typeof NOBODY }) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-git-'));
  atEnd(t, () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const home = join(folder, 'home');
  const workspace = join(home, 'workspace');
  // In the workspace, where the sandbox lets a program write.
  const marks = join(workspace, 'marks');
  mkdirSync(marks, { recursive: true });
  const seed = join(home, 'approver-seed');
  writeFileSync(seed, `${SECRET}\n`);
  let asked = 0;
  const neighbour = await listening(
    t,
    createServer((_, response) => {
      asked++;
      response.end();
    }),
  );
  // The filter of the finding: it read the environment of every process, and called a daemon on loopback.
  const program = join(workspace, 'program.sh');
  const steal = `cat /proc/*/environ > ${marks}/environ 2>/dev/null; echo "${neighbour}" > ${marks}/ran; cat`;
  writeFileSync(program, `#!/bin/sh\n${steal}\n`);
  chmodSync(program, 0o755);
  const nested = join(workspace, 'outer', 'nested');
  mkdirSync(nested, { recursive: true });
  writeFileSync(join(nested, 'file.txt'), 'text\n');
  const files = new Beneath(workspace);
  for (const job of [
    { operation: 'init', folder: 'outer/nested', branch: 'main' },
    { operation: 'add', folder: 'outer/nested', paths: ['.'] },
    { operation: 'commit', folder: 'outer/nested', message: 'nested' },
  ] as const)
    await perform(job, { root: workspace, files, http: { request: () => Promise.reject(new Error('no remote')) } });
  files.close();
  writeFileSync(
    join(nested, '.git', 'config'),
    `[core]\n\tbare = false\n[filter "x"]\n\tclean = ${program}\n\tsmudge = ${program}\n`,
  );
  writeFileSync(join(nested, '.gitattributes'), '* filter=x\n');
  // The same length as before: only the content, which the filter cleans, shows a change.
  writeFileSync(join(nested, 'file.txt'), 'next\n');
  writeFileSync(join(workspace, 'outer', 'own.txt'), 'text\n');
  if (as) {
    const all = namesBelow(folder);
    for (const path of [folder, ...all.map((name) => join(folder, name))]) chownSync(path, as.uid, as.gid);
  }
  for (const [name, target] of [
    ['linked', join(folder, 'made-by-init')],
    ['linked-too', home],
  ] as const) {
    mkdirSync(join(workspace, name));
    symlinkSync(target, join(workspace, name, '.git'));
  }
  const settings = {
    HOME: home,
    EXECUTOR_WORKSPACE: workspace,
    EXECUTOR_GIT_TOKEN: GIT_TOKEN,
    REVEILLE_SEPARATION: separation,
  };
  const executor = await startExecutorProcess(home, settings, as);
  atEnd(t, () => executor.end('SIGKILL'));
  /** Submits one call and waits for its end, or for its question. */
  const attempt = async (tool: string, args: object, user = 'ada') => {
    const caller = callerOf(executor, user, EXECUTOR_TOKEN);
    const plan: Node = { id: 'it', kind: 'call', tool, args };
    const id = await caller.submit({ intent: { verb: 'try', plan } });
    const state = await eventually(
      `${tool} ends`,
      async () => {
        const found = (await caller.state(id)) as Record<string, unknown>;
        return !['drafting', 'planned', 'executing'].includes(String(found.status)) && found;
      },
      LIMIT_MS,
    );
    return {
      status: String(state.status),
      text: JSON.stringify(state) + (await executor.get(user, `/intents/${id}/receipt`).catch(() => '')),
    };
  };
  return { folder, home, workspace, marks, seed, attempt, asked: () => asked };
}

for (const separation of ['auto', 'off'])
  for (const who of ['root', 'an ordinary user'])
    test(`a submitter's token reads and runs nothing through git: ${separation === 'off' ? 'without' : 'with'} the sandbox, as ${who}`, async (t) => {
      if (!isRoot && who === 'root') return t.skip('only root can run a test as root');
      if (separation === 'auto' && !(await hasBubblewrap(t))) return;
      const as = isRoot && who !== 'root' ? NOBODY : undefined;
      const daemons = await startHouse(t, { separation, ...(as && { as }) });
      const { attempt, seed, workspace } = daemons;
      const picture = () => readdirSync(daemons.folder).sort().join(' ');
      const before = picture();
      let attempts = 0;
      const closed = async (tool: string, args: object, expected?: string, user?: string) => {
        const { status, text } = await attempt(tool, args, user);
        attempts++;
        assert.ok(!text.includes(SECRET) && !text.includes(GIT_TOKEN), `${tool} ${JSON.stringify(args)}: ${text}`);
        if (expected) assert.equal(status, expected, `${tool} ${JSON.stringify(args)}: ${text}`);
        return text;
      };

      await closed('git/init', { folder: 'outer' }, 'completed');
      // 1: a comparison with another file read any file.
      for (const paths of [
        [seed, '/dev/null'],
        ['/dev/null', seed],
        ['../../approver-seed', '/dev/null'],
        ['../approver-seed', '/dev/null'],
        ['own.txt', seed],
      ])
        for (const args of [
          { folder: 'outer', paths },
          { folder: 'outer', paths, staged: true },
        ])
          await closed('git/diff', args, 'failed');
      await closed('git/diff', { paths: [seed, '/dev/null'] }, 'failed');
      // 2: a nested repository's filter ran while its parent was staged.
      for (const paths of [['.'], ['own.txt'], ['nested'], ['nested/file.txt']])
        await closed('git/add', { folder: 'outer', paths });
      await closed('git/add', { folder: 'outer/nested', paths: ['.'] });
      await closed('git/status', { folder: 'outer' }, 'completed');
      await closed('git/commit', { folder: 'outer', message: 'mine' }, 'completed');
      const shown = await closed('git/show', { folder: 'outer', revision: 'HEAD' }, 'completed');
      assert.match(shown, /own\.txt/);
      assert.doesNotMatch(shown, /nested\/file/);
      // 2: links inside .git, and a .git that is a link, made commit and init write outside the workspace.
      for (const folder of ['linked', 'linked-too']) {
        await closed('git/init', { folder }, 'failed');
        await closed('git/status', { folder }, 'failed');
      }
      for (const name of ['COMMIT_EDITMSG', 'logs'])
        symlinkSync(join(daemons.folder, `made-by-commit-${name}`), join(workspace, 'outer', '.git', name));
      writeFileSync(join(workspace, 'outer', 'own.txt'), 'more\n');
      await closed('git/add', { folder: 'outer', paths: ['own.txt'] }, 'completed');
      await closed('git/commit', { folder: 'outer', message: 'again' }, 'completed');
      assert.equal(picture(), before);
      // A person who starts the git program later would run a program that a model put there.
      // One user each: a question defers later intents of the same user.
      for (const [index, path] of [
        '.git/config',
        'outer/.git/hooks/pre-commit',
        'outer/nested/.git/config',
      ].entries()) {
        const write = { path: join(workspace, path), content: 'x' };
        await closed('fs/write_file', write, 'awaiting_approval', `user-${index}`);
      }
      assert.deepEqual(readdirSync(daemons.marks), [], 'no program may run');
      assert.equal(daemons.asked(), 0);
      t.diagnostic(`${attempts} attempts with a submitter's token, 0 succeeded`);
    });
