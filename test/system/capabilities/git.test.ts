import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { needs } from '../../support/tools.ts';
import { openCapabilities } from './bench.ts';
import { gitSite } from './git-site.ts';

const own = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', PATH: process.env.PATH };
const author = ['-c', 'user.name=T', '-c', 'user.email=t@localhost'];

/** An attacker's writes, performed by the real git. */
const gitAs = (cwd: string, ...args: string[]) =>
  execFileSync('git', [...author, ...args], { cwd, env: own, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

/** A repository with a commit and an uncommitted change. */
function repository(folder: string): string {
  mkdirSync(folder, { recursive: true });
  gitAs(folder, 'init', '--quiet', '--initial-branch=main');
  writeFileSync(join(folder, 'a.txt'), 'one\n');
  gitAs(folder, 'add', '.');
  gitAs(folder, 'commit', '--quiet', '--message', 'first');
  writeFileSync(join(folder, 'a.txt'), 'two\n');
  return folder;
}

const READS: readonly [string, object][] = [
  ['git/status', {}],
  ['git/diff', {}],
  ['git/diff', { staged: true }],
  ['git/log', {}],
  ['git/show', { revision: 'HEAD' }],
  ['git/branches', {}],
];
const WRITES: readonly [string, object][] = [
  ['git/add', { paths: ['a.txt'] }],
  ['git/commit', { message: 'mine' }],
  ['git/switch', { branch: 'other', create: true }],
];

describe('git', () => {
  test('a file is edited, staged, committed and shown', async (t) => {
    const { call, workspace } = await openCapabilities(t);
    assert.equal((await call('git/init', { folder: '.' })).isError, false);
    writeFileSync(join(workspace, 'notes.md'), '# tea\n');
    assert.match((await call('git/status', {})).text, /\?\? notes\.md/);
    assert.equal((await call('git/add', { paths: ['notes.md'] })).isError, false);
    assert.match((await call('git/diff', { staged: true })).text, /^\+# tea$/m);
    const made = await call('git/commit', { message: 'Note the tea\n\n# not a remark' });
    assert.equal(made.isError, false, made.text);
    const { text } = await call('git/show', { revision: 'HEAD' });
    assert.match(text, /Author: Agent <agent@localhost>[\s\S]*Note the tea[\s\S]*# not a remark[\s\S]*\+# tea/);
    assert.equal((await call('git/switch', { branch: 'draft', create: true })).isError, false);
    assert.match((await call('git/branches', {})).text, /\* draft/);
    assert.equal((await call('git/commit', { message: 'nothing' })).isError, true);
  });

  test('a remote gets data only if it is named, with its credential and no other', {
    skip: needs('git'),
  }, async (t) => {
    const site = await gitSite(t);
    const other = await gitSite(t);
    const variables = { EXECUTOR_GIT_REMOTES: site.origin, EXECUTOR_GIT_TOKEN: 'token-of-the-remote' };
    const { call, workspace } = await openCapabilities(t, { variables });
    repository(join(workspace, 'mine'));
    const pushed = await call('git/push', { folder: 'mine', url: site.url, branch: 'main' });
    assert.equal(pushed.isError, false, pushed.text);
    assert.match(site.git('log', '--format=%s', 'main'), /^first$/);
    const basic = `Basic ${Buffer.from('x-access-token:token-of-the-remote').toString('base64')}`;
    assert.ok(site.seen.every(({ authorization }) => authorization === basic));
    assert.doesNotMatch(pushed.text, /token-of-the-remote/);
    assert.equal((await call('git/clone', { url: site.url, folder: 'yours' })).isError, false);
    assert.ok(existsSync(join(workspace, 'yours', 'a.txt')));
    const pulled = await call('git/pull', { folder: 'yours', url: site.url, branch: 'main' });
    assert.equal(pulled.isError, false, pulled.text);

    const elsewhere = [
      ...[other.url, site.url.replace('127.0.0.1', 'localhost')],
      ...['http://169.254.169.254/x.git', site.url.replace('http:', 'https:'), site.url.replace('//', '//user:pass@')],
      ...[
        'ext::sh -c "touch /tmp/x"',
        `file://${join(workspace, 'mine')}`,
        '/etc',
        '../mine',
        'git@github.com:a/b.git',
      ],
      ...['ssh://-oProxyCommand=x/y', '--upload-pack=touch x', `${site.origin.slice(0, -1)}.example.org/remote.git`],
    ];
    for (const url of elsewhere)
      for (const [name, args] of [
        ['git/push', { folder: 'mine', branch: 'main' }],
        ['git/pull', { folder: 'mine', branch: 'main' }],
        ['git/clone', { folder: 'theirs' }],
      ] as const) {
        const { isError } = await call(name, { ...args, url });
        assert.ok(isError && !existsSync(join(workspace, 'theirs')), `${name} ${url}`);
      }
    assert.equal(other.seen.length, 0);
    t.diagnostic(`${elsewhere.length * 3} unnamed remotes, ${other.seen.length} got through`);
  });

  test('no program runs that a repository names, in its configuration, its hooks, its attributes or its submodules', {
    skip: needs('git'),
  }, async (t) => {
    const marks = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('ran'));
    const variables = {
      ...{ GIT_EXTERNAL_DIFF: 'touch', GIT_SSH_COMMAND: 'touch', GIT_DIR: '/tmp', GIT_PAGER: 'touch', EDITOR: 'touch' },
      ...{
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'core.fsmonitor',
        GIT_CONFIG_VALUE_0: 'touch',
        GIT_PROXY_COMMAND: 'touch',
      },
    };
    const { call, folder, workspace } = await openCapabilities(t, { variables });
    const ran = join(workspace, 'ran');
    const payload = join(workspace, 'payload.sh');
    writeFileSync(payload, `#!/bin/sh\ntouch ${ran}-$$\ncat\n`);
    chmodSync(payload, 0o755);
    const config: [string, string][] = [
      ...(['core.fsmonitor', 'core.pager', 'core.editor', 'core.sshCommand', 'core.askPass', 'core.gitProxy'] as const),
      ...([
        'diff.external',
        'credential.helper',
        'gpg.program',
        'sequence.editor',
        'uploadpack.packObjectsHook',
      ] as const),
      ...(['filter.x.clean', 'filter.x.smudge', 'filter.x.process', 'diff.x.textconv', 'diff.x.command'] as const),
      ...([
        'merge.x.driver',
        'alias.status',
        'pager.status',
        'interactive.diffFilter',
        'remote.origin.uploadpack',
      ] as const),
      ...(['remote.origin.receivepack', 'remote.origin.vcs', 'trailer.x.command', 'submodule.x.update'] as const),
    ].map((key) => [key, key === 'submodule.x.update' || key === 'alias.status' ? `!${payload}` : payload]);
    config.push(['core.hooksPath', workspace], ['include.path', join(folder, 'evil')], ['core.worktree', folder]);
    config.push(
      ['core.attributesFile', '/etc/passwd'],
      ['url.ext::sh.insteadOf', 'http'],
      ['protocol.ext.allow', 'always'],
    );
    config.push(
      ['includeIf.gitdir:**.path', join(folder, 'evil')],
      ['commit.template', '/etc/passwd'],
      ['http.proxy', 'x'],
    );
    config.push(
      ['extensions.worktreeConfig', 'true'],
      ['core.alternateRefsCommand', payload],
      ['gpg.ssh.program', payload],
    );
    let calls = 0;
    for (const [index, [key, value]] of config.entries()) {
      const at = repository(join(workspace, `c${index}`));
      writeFileSync(join(at, '.gitattributes'), '* filter=x diff=x merge=x\n');
      gitAs(at, 'config', key, value);
      // No setting of a repository is applied, so none needs to be refused.
      for (const [name, args] of [...READS.slice(0, 2), WRITES[0]!]) {
        const { isError, text } = await call(name, { ...args, folder: `c${index}` });
        assert.equal(isError, false, `${key}: ${name}: ${text}`);
        assert.ok(!text.includes(value) || value === 'x' || value === 'true', text);
        calls++;
      }
    }
    const hooked = repository(join(workspace, 'hooked'));
    const hooks = [
      'pre-commit',
      'commit-msg',
      'prepare-commit-msg',
      'post-commit',
      'post-checkout',
      'post-index-change',
    ];
    for (const hook of [...hooks, 'reference-transaction', 'pre-push', 'post-merge', 'fsmonitor-watchman']) {
      writeFileSync(join(hooked, '.git', 'hooks', hook), `#!/bin/sh\ntouch ${ran}-${hook}\n`);
      chmodSync(join(hooked, '.git', 'hooks', hook), 0o755);
    }
    writeFileSync(join(hooked, '.gitattributes'), '* filter=lfs diff=x\n');
    for (const [name, args] of [...READS, ...WRITES]) {
      const { isError, text } = await call(name, { ...args, folder: 'hooked' });
      assert.equal(isError, false, `${name}: ${text}`);
    }
    const through = marks(workspace);
    assert.deepEqual(through, []);
    t.diagnostic(`${config.length} keys in ${calls} calls, ${hooks.length + 4} hooks, ${through.length} got through`);
  });

  test('a repository or folder that leads out of the workspace is refused', {
    skip: needs('git'),
  }, async (t) => {
    const { call, folder, workspace } = await openCapabilities(t);
    const outside = repository(join(folder, 'outside'));
    writeFileSync(join(outside, 'secret.txt'), 'canary');
    gitAs(outside, 'add', '.');
    gitAs(outside, 'commit', '--quiet', '--message', 'canary');
    const at = (name: string) => {
      mkdirSync(join(workspace, name), { recursive: true });
      return join(workspace, name);
    };
    const repositories: Record<string, () => void> = {
      link: () => symlinkSync(join(outside, '.git'), join(at('link'), '.git')),
      file: () => writeFileSync(join(at('file'), '.git'), `gitdir: ${join(outside, '.git')}\n`),
      commondir: () => writeFileSync(join(repository(at('commondir')), '.git', 'commondir'), join(outside, '.git')),
      alternates: () =>
        writeFileSync(
          join(repository(at('alternates')), '.git/objects/info/alternates'),
          join(outside, '.git/objects'),
        ),
      objects() {
        const made = repository(at('objects'));
        renameSync(join(made, '.git/objects'), join(made, '.git/objects.old'));
        symlinkSync(join(outside, '.git/objects'), join(made, '.git/objects'));
      },
      head() {
        const made = repository(at('head'));
        renameSync(join(made, '.git/HEAD'), join(made, '.git/HEAD.old'));
        symlinkSync(join(folder, 'outside', 'secret.txt'), join(made, '.git/HEAD'));
      },
    };
    for (const make of Object.values(repositories)) make();
    symlinkSync(outside, join(workspace, 'whole'));
    let through = 0;
    for (const place of [...Object.keys(repositories), 'whole', '..', '../outside', outside, '/'])
      for (const [name, args] of [...READS, ...WRITES]) {
        const { isError, text } = await call(name, { ...args, folder: place });
        if (!isError || text.includes('canary')) through++;
        assert.ok(isError && !text.includes('canary'), `${place} ${name}: ${text}`);
      }
    repository(at('plain'));
    for (const paths of [['../outside/secret.txt'], [join(outside, 'secret.txt')]]) {
      const { isError } = await call('git/add', { folder: 'plain', paths });
      assert.ok(isError, paths[0]);
    }
    for (const revision of ['--output=x', '-p', '@{-1};id', 'HEAD:../../outside', '--upload-pack=x', '$(id)'])
      assert.ok((await call('git/show', { folder: 'plain', revision })).isError, revision);
    t.diagnostic(`${(Object.keys(repositories).length + 5) * 9} calls, ${through} got through`);
  });
});
