/** The git tools compared with the git program, and against repositories and remotes of extreme cost. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { constants, createDeflate, deflateSync } from 'node:zlib';
import type { Job } from '../../../src/capabilities/git-operations.ts';
import { Remotes } from '../../../src/capabilities/git-remote.ts';
import { GitRunner, type GitRunnerOptions } from '../../../src/capabilities/git-runner.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { gitSite } from './git-site.ts';

const skip = needs('git');
const clock = systemClock;

function open(t: TestContext, options: Partial<GitRunnerOptions> = {}) {
  const root = temporaryFolder(t);
  const runner = new GitRunner({ clock, root, ...options });
  const never = new AbortController().signal;
  const run = (job: Job, remote?: Parameters<GitRunner['run']>[1]['remote']) =>
    runner.run(job, { signal: never, remote });
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]) => {
    const gitArgs = ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args];
    return execFileSync('git', gitArgs, {
      cwd: root,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trimEnd();
  };
  return { root, runner, run, git };
}

const put = (root: string, path: string, content: string | Buffer) => {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), content);
};

describe('compared with the git program', { skip }, () => {
  test('a repository that git made is read as git reads it: packed, with tags, links, modes and unusual names', async (t) => {
    const { root, run, git } = open(t);
    git('init', '--quiet', '--initial-branch=main');
    for (let n = 0; n < 40; n++) put(root, `src/${n % 4}/f${n}.txt`, `line ${n}\n`.repeat(30));
    put(root, 'Zoë ünï.txt', 'name\n');
    put(root, 'run.sh', '#!/bin/sh\n');
    chmodSync(join(root, 'run.sh'), 0o755);
    symlinkSync('run.sh', join(root, 'link'));
    put(root, '.gitignore', '*.log\nbuild/\n!keep.log\n/only-here\n');
    git('add', '.');
    git('commit', '--quiet', '--message', 'first\n\nwith a body');
    git('tag', 'v1');
    git('tag', '--annotate', 'v2', '--message', 'annotated');
    put(root, 'src/0/f0.txt', `line 0\n${'line 0\n'.repeat(28)}last\n`);
    git('commit', '--quiet', '--all', '--message', 'second');
    git('branch', 'side', 'HEAD~1');
    git('gc', '--quiet');
    put(root, 'src/1/f1.txt', 'changed\n');
    put(root, 'new/deep/file', 'new');
    put(root, 'x.log', '');
    put(root, 'keep.log', '');
    put(root, 'build/out', '');
    put(root, 'sub/only-here', '');
    put(root, 'only-here', '');
    rmSync(join(root, 'src/2/f2.txt'));
    chmodSync(join(root, 'src/3/f3.txt'), 0o755);
    rmSync(join(root, 'link'));
    symlinkSync('elsewhere', join(root, 'link'));
    put(root, 'staged.txt', 'staged\n');
    git('add', 'staged.txt');

    const status = git('-c', 'core.quotePath=false', 'status', '--short', '--branch');
    assert.equal(await run({ operation: 'status' }), status);
    // The tools name no functions after @@, and shorten ids to seven characters.
    const plain = (text: string) => text.replace(/^(@@ .* @@).*$/gm, '$1');
    const diff = (...gitArgs: string[]) =>
      plain(git('-c', 'core.quotePath=false', 'diff', '--no-color', '--abbrev=7', ...gitArgs));
    assert.equal(await run({ operation: 'diff' }), diff());
    assert.equal(await run({ operation: 'diff', staged: true }), diff('--cached'));
    assert.equal(await run({ operation: 'diff', paths: ['src/1'] }), diff('--', 'src/1'));
    const log = git('log', '--no-color', '--date=iso-strict', '--max-count=20', '--no-decorate');
    assert.equal((await run({ operation: 'log', revision: 'HEAD', count: 20 })).trimEnd(), log);
    for (const revision of ['HEAD', 'main', 'v1', 'v2', 'HEAD~1', 'side', git('rev-parse', '--short', 'HEAD')])
      assert.match(
        await run({ operation: 'show', revision }),
        new RegExp(`^commit ${git('rev-parse', `${revision}^{commit}`)}`),
      );
    const branches = await run({ operation: 'branches' });
    assert.match(branches, /^\* main \w{7} second$/m);
    assert.match(branches, /^ {2}side \w{7} first$/m);
  });

  test('no link into a .git folder is created, and nothing else of a commit that contains one', async (t) => {
    for (const target of ['.git', '.git/hooks', './sub/../.GIT', 'sub/.git/config', '../x/git~1/hooks']) {
      const { root, run, git } = open(t);
      git('init', '--quiet', '--initial-branch=main');
      put(root, 'a.txt', 'a\n');
      git('add', '.');
      git('commit', '--quiet', '--message', 'first');
      git('switch', '--quiet', '--create', 'other');
      put(root, 'a.txt', 'changed\n');
      symlinkSync(target, join(root, 'docs'));
      git('add', '.');
      git('commit', '--quiet', '--message', 'second');
      git('switch', '--quiet', 'main');
      await assert.rejects(
        run({ operation: 'switch', branch: 'other' }),
        /"docs" is a symbolic link into a \.git folder/,
      );
      assert.equal(git('status', '--short', '--branch'), '## main', target);
      assert.equal(lstatSync(join(root, 'docs'), { throwIfNoEntry: false }), undefined, target);
    }
  });

  test('staged, committed and checked-out content passes fsck, and git sees nothing left to do', async (t) => {
    const { root, run, git } = open(t);
    await run({ operation: 'init', branch: 'main' });
    for (let n = 0; n < 30; n++) put(root, `d${n % 3}/e/f${n}`, Buffer.from([n, 0, 255, n]));
    put(root, 'd0.txt', 'sorts between d0 and d0/\n');
    put(root, 'run.sh', '#!/bin/sh\n');
    chmodSync(join(root, 'run.sh'), 0o755);
    symlinkSync('/etc/passwd', join(root, 'away'));
    await run({ operation: 'add', paths: ['.'] });
    await run({ operation: 'commit', message: 'first ünï' });
    assert.equal(git('status', '--short', '--branch'), '## main');
    await run({ operation: 'switch', branch: 'side', create: true });
    rmSync(join(root, 'd1'), { recursive: true });
    rmSync(join(root, 'away'));
    put(root, 'away/now-a-folder', 'x');
    put(root, 'd1', 'now a file\n');
    await run({ operation: 'add', paths: ['.'] });
    await run({ operation: 'commit', message: 'second' });
    assert.equal(git('status', '--short', '--branch'), '## side');
    await run({ operation: 'switch', branch: 'main' });
    assert.equal(git('status', '--short', '--branch'), '## main');
    assert.equal(readlinkSync(join(root, 'away')), '/etc/passwd');
    assert.ok(lstatSync(join(root, 'run.sh')).mode & 0o100);
    assert.ok(existsSync(join(root, 'd1/e/f1')));
    await run({ operation: 'switch', branch: 'side' });
    assert.equal(git('status', '--short', '--branch'), '## side');
    git('fsck', '--full', '--strict');
    // An uncommitted change is not lost, and neither is a file that git does not track.
    put(root, 'd1', 'edited\n');
    await assert.rejects(run({ operation: 'switch', branch: 'main' }), /would be overwritten/);
    assert.equal(readFileSync(join(root, 'd1'), 'utf8'), 'edited\n');
    git('checkout', '--quiet', 'd1');
    git('rm', '--quiet', '--cached', 'd0.txt');
    git('commit', '--quiet', '--message', 'forget');
    await assert.rejects(run({ operation: 'switch', branch: 'main' }), /would be overwritten/);
    assert.equal(readFileSync(join(root, 'd0.txt'), 'utf8'), 'sorts between d0 and d0/\n');
  });

  test('a repository of some thousand files is staged, inspected and switched within a few seconds each', async (t) => {
    const { root, run, git } = open(t, { localMs: 120_000 });
    for (let n = 0; n < 4000; n++) put(root, `d${n % 40}/f${n}.txt`, `file ${n}\n`.repeat(20));
    put(root, '.gitignore', 'node_modules/\n*.log\n');
    const times: string[] = [];
    const timed = async (job: Job) => {
      const start = clock.monotonic();
      const text = await run(job);
      times.push(`${job.operation} ${Math.round(clock.monotonic() - start)} ms`);
      return text;
    };
    await timed({ operation: 'init', branch: 'main' });
    await timed({ operation: 'add', paths: ['.'] });
    await timed({ operation: 'commit', message: 'all' });
    assert.equal(await timed({ operation: 'status' }), '## main');
    assert.equal(git('status', '--short'), '');
    t.diagnostic(`4001 files: ${times.join(', ')}`);
  });

  test('clone, pull and push speak to git over HTTP; no history is overwritten on either side', async (t) => {
    const site = await gitSite(t);
    const remotes = new Remotes(clock, site.origin, 'token-of-the-remote');
    t.after(() => remotes.close());
    const remote = remotes.open(site.url);
    const { root, run, git } = open(t);
    const url = remote.href;
    await run({ operation: 'clone', url, folder: 'empty' }, remote);
    put(root, 'empty/a.txt', 'one\n');
    for (let n = 0; n < 200; n++) put(root, `empty/d/${n}`, `${n}\n`.repeat(100));
    symlinkSync('/etc/passwd', join(root, 'empty/away'));
    await run({ operation: 'add', folder: 'empty', paths: ['.'] });
    await run({ operation: 'commit', folder: 'empty', message: 'first' });
    await run({ operation: 'push', folder: 'empty', url, branch: 'main' }, remote);
    site.git('fsck', '--full', '--strict');
    await run({ operation: 'clone', url, folder: 'two' }, remote);
    assert.equal(git('-C', 'two', 'status', '--short', '--branch'), '## main...origin/main');
    assert.equal(readlinkSync(join(root, 'two/away')), '/etc/passwd');
    git('-C', 'two', 'fsck', '--full', '--strict');
    put(root, 'empty/a.txt', 'two\n');
    await run({ operation: 'add', folder: 'empty', paths: ['a.txt'] });
    await run({ operation: 'commit', folder: 'empty', message: 'second' });
    await run({ operation: 'push', folder: 'empty', url, branch: 'main' }, remote);
    assert.match(await run({ operation: 'pull', folder: 'two', url, branch: 'main' }, remote), /Fast-forward/);
    assert.equal(readFileSync(join(root, 'two/a.txt'), 'utf8'), 'two\n');
    assert.match(await run({ operation: 'pull', folder: 'two', url, branch: 'main' }, remote), /up to date/);
    for (const folder of ['empty', 'two']) {
      put(root, `${folder}/${folder}.txt`, folder);
      await run({ operation: 'add', folder, paths: ['.'] });
      await run({ operation: 'commit', folder, message: folder });
    }
    await run({ operation: 'push', folder: 'empty', url, branch: 'main' }, remote);
    const head = site.git('rev-parse', 'main');
    await assert.rejects(run({ operation: 'push', folder: 'two', url, branch: 'main' }, remote), /fast-forward/);
    await assert.rejects(run({ operation: 'pull', folder: 'two', url, branch: 'main' }, remote), /fast-forward/);
    assert.equal(site.git('rev-parse', 'main'), head);
    assert.equal(git('-C', 'two', 'log', '-1', '--format=%s'), 'two');
  });
});

describe('at their limits', () => {
  /** Writes an object unchecked. @returns its id */
  const plant = (root: string, type: string, content: Buffer): string => {
    const whole = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const oid = createHash('sha1').update(whole).digest('hex');
    put(root, `.git/objects/${oid.slice(0, 2)}/${oid.slice(2)}`, deflateSync(whole));
    return oid;
  };
  const plantCommit = (root: string, tree: string) => {
    const who = 'E <e@example.org> 1700000000 +0000';
    const text = `tree ${tree}\nauthor ${who}\ncommitter ${who}\n\nevil\n`;
    put(root, '.git/refs/heads/evil', `${plant(root, 'commit', Buffer.from(text))}\n`);
  };

  test('a tree of trees that expands to millions of files is refused', async (t) => {
    const { root, run } = open(t, { localMs: 120_000 });
    await run({ operation: 'init', branch: 'main' });
    let [mode, oid] = ['100644', plant(root, 'blob', Buffer.from('x'))];
    for (let level = 0; level < 12; level++) {
      const entries = Array.from({ length: 10 }, (_, n) =>
        Buffer.concat([Buffer.from(`${mode} ${n}\0`), Buffer.from(oid, 'hex')]),
      );
      [mode, oid] = ['40000', plant(root, 'tree', Buffer.concat(entries))];
    }
    plantCommit(root, oid);
    await assert.rejects(run({ operation: 'show', revision: 'evil' }), /more than 100000 files/);
    await assert.rejects(run({ operation: 'switch', branch: 'evil' }), /more than 100000 files/);
  });

  test('an object that expands to gigabytes ends with an error, and its memory is freed', async (t) => {
    const { root, run } = open(t, { maxGrowthBytes: 256 * 1024 * 1024, localMs: 120_000 });
    await run({ operation: 'init', branch: 'main' });
    // A megabyte of zeros, repeated: each block is complete by itself.
    const deflate = createDeflate();
    const pieces: Buffer[] = [];
    deflate.on('data', (piece: Buffer) => pieces.push(piece));
    const flush = () => new Promise<void>((resolve) => deflate.flush(constants.Z_FULL_FLUSH, () => resolve()));
    deflate.write('blob 9999999999\0');
    await flush();
    const head = Buffer.concat(pieces.splice(0));
    deflate.write(Buffer.alloc(1024 * 1024));
    await flush();
    const bomb = Buffer.concat([head, ...Array<Buffer>(4096).fill(Buffer.concat(pieces))]);
    const oid = 'ab'.repeat(20);
    put(root, `.git/objects/ab/${oid.slice(2)}`, bomb);
    const tree = plant(root, 'tree', Buffer.concat([Buffer.from('100644 big\0'), Buffer.from(oid, 'hex')]));
    plantCommit(root, tree);
    await assert.rejects(run({ operation: 'show', revision: 'evil' }), /git was ended: it needed more than 256 MB/);
    assert.equal(await run({ operation: 'status' }), '## No commits yet on main');
    t.diagnostic(`${bomb.length} bytes that expand to 4 GB`);
  });

  test('an operation ends at its deadline and when its call is cancelled', async (t) => {
    const { root, run } = open(t, { localMs: 1 });
    await assert.rejects(run({ operation: 'init', branch: 'main' }), /git was ended: it took more than 0.001 s/);
    const cancelled = new AbortController();
    const ending = new GitRunner({ clock, root }).run(
      { operation: 'init', branch: 'main' },
      { signal: cancelled.signal },
    );
    cancelled.abort();
    await assert.rejects(ending, /cancelled/);
  });

  test('a file that exceeds the size limit is named, and nothing is staged', async (t) => {
    const { root, run } = open(t);
    await run({ operation: 'init', branch: 'main' });
    put(root, 'a.txt', 'a');
    put(root, 'big', '');
    truncateSync(join(root, 'big'), 65 * 1024 * 1024);
    await assert.rejects(run({ operation: 'add', paths: ['.'] }), /"big": is longer than/);
    assert.match(await run({ operation: 'status' }), /\?\? a\.txt/);
  });
});

describe('a hostile remote', () => {
  const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
  const advertise = (...refs: string[]) =>
    `${line('# service=git-upload-pack\n')}0000${refs.map((ref, n) => line(`${ref}${n === 0 ? '\0side-band-64k symref=HEAD:../../../../made' : ''}\n`)).join('')}0000`;

  test('redirects no client, names no file, and cannot send without end', async (t) => {
    const seen: string[] = [];
    const other = await listening(
      t,
      createServer((request, response) => {
        seen.push(`${request.url} ${request.headers.authorization}`);
        response.end();
      }),
    );
    const oid = '1'.repeat(40);
    const site = await listening(
      t,
      createServer((request, response) => {
        const [, kind] = request.url!.split('/');
        const type = 'application/x-git-upload-pack-advertisement';
        if (kind === 'moved') response.writeHead(302, { location: `${other}${request.url}` }).end();
        else if (kind === 'text') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>');
        else if (kind === 'broken') response.writeHead(200, { 'content-type': type }).end('zzzz');
        else if (kind === 'names')
          response
            .writeHead(200, { 'content-type': type })
            .end(advertise(`${oid} HEAD`, `${oid} refs/heads/../../../../made`, `${oid} refs/heads/../../config`));
        else response.writeHead(500).end();
      }),
    );
    const remotes = new Remotes(clock, site, 'token-of-the-remote');
    t.after(() => remotes.close());
    const { root, run } = open(t);
    for (const kind of ['moved', 'text', 'broken', 'names', 'fails']) {
      const remote = remotes.open(`${site}/${kind}/x.git`);
      for (const url of [remote.href, `${other}/x.git`])
        await assert.rejects(run({ operation: 'clone', url, folder: 'c' }, remote), (thrown: Error) => {
          assert.doesNotMatch(thrown.message, /token-of-the-remote/);
          return true;
        });
      assert.ok(!existsSync(join(root, 'c')), `${kind} leaves nothing behind`);
    }
    assert.ok(!existsSync(join(root, 'made')) && !existsSync(join(root, '..', 'made')));
    assert.deepEqual(seen, []);
  });
});
