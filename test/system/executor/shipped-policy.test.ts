import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPolicy } from '../../../src/executor/policy/read-policy.ts';
import { bundledManifest, bundledPolicy } from '../../../src/mcp-host/bundled-programs.ts';
import { classify } from '../../../src/mcp-host/classify.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';

/** Decisions of the bundled policy on each bundled tool. */
function decisions(unattended: boolean) {
  const policy = readPolicy(bundledPolicy());
  const { servers } = loadManifest(bundledManifest('executor'), {});
  const now = Date.parse('2026-06-15T03:00:00Z');
  const found = servers.flatMap(({ alias, tools }) =>
    [...tools!.values()].map((tool) => {
      const { surface } = classify(tool);
      const request = {
        tool: `${alias}/${tool.name}`,
        args: {},
        surface,
        user: 'ada',
        unattended,
        now,
        amount: undefined,
        spends: [],
      };
      return [request.tool, policy.decide(request).effect] as [string, string];
    }),
  );
  return (effect: string) => found.flatMap(([name, got]) => (got === effect ? [name] : [])).sort();
}

const ASKED = ['fetch/fetch', 'git/clone', 'git/pull', 'git/push', 'ledger/exchange', 'ledger/transfer', 'shell/run'];

test('with the bundled files, reads and writes in the workspace are allowed, and a call that leaves the machine is asked', () => {
  for (const unattended of [false, true]) {
    const by = decisions(unattended);
    assert.deepEqual(by('ask'), ASKED);
    assert.deepEqual(by('deny'), []);
    const writes = ['fs/write_file', 'fs/edit_file', 'fs/move_file', 'git/init', 'git/add', 'git/commit', 'git/switch'];
    for (const name of [...writes, 'fs/read_text_file', 'git/status', 'git/log', 'ledger/accounts'])
      assert.ok(by('allow').includes(name), name);
  }
});

test('a write into a .git folder is asked, by every name that a file system maps to it', () => {
  const policy = readPolicy(bundledPolicy());
  const base = {
    surface: 'escalate' as const,
    user: 'ada',
    now: Date.parse('2026-06-15T03:00:00Z'),
    amount: undefined,
  };
  const effectOf = (tool: string, args: Record<string, unknown>, unattended: boolean) =>
    policy.decide({ ...base, tool, args, unattended, spends: [] }).effect;
  const guarded = [
    '.git',
    '.git/config',
    '/w/.git/hooks/pre-commit',
    'a/.GIT/config',
    'a/../.git/config',
    'GIT~1/config',
  ];
  const odd = ['.git./config', '.git::$INDEX_ALLOCATION/config', 'a\\.git\\config', '.git. /x'];
  const free = ['.gitignore', '.github/workflows/x.yml', 'git/config', 'a.git/config', 'legit', 'docs/.gitkeep'];
  for (const unattended of [false, true]) {
    for (const [tool, argument] of [
      ['fs/write_file', 'path'],
      ['fs/edit_file', 'path'],
      ['fs/create_directory', 'path'],
      ['fs/move_file', 'source'],
      ['fs/move_file', 'destination'],
    ] as const) {
      const args = (path: string) => ({
        ...(tool === 'fs/move_file' && { source: 'a', destination: 'b' }),
        [argument]: path,
      });
      for (const path of [...guarded, ...odd])
        assert.equal(effectOf(tool, args(path), unattended), 'ask', `${tool} ${argument} ${path}`);
      for (const path of free)
        assert.equal(effectOf(tool, args(path), unattended), 'allow', `${tool} ${argument} ${path}`);
    }
    assert.equal(effectOf('fs/read_text_file', { path: '.git/config' }, unattended), 'allow');
    // The one file without which no folder is a bare repository.
    for (const path of ['HEAD', '/w/x/HEAD', 'x/head', 'x/HEAD/y/..', 'x/HEAD/', 'x\\HEAD', 'HEAD::$DATA']) {
      for (const tool of ['fs/write_file', 'fs/edit_file'])
        assert.equal(effectOf(tool, { path }, unattended), 'ask', `${tool} ${path}`);
      assert.equal(effectOf('fs/move_file', { source: 'a', destination: path }, unattended), 'ask', path);
    }
    for (const path of ['src/Head.tsx', 'AHEAD', 'HEADER', 'x/head.txt'])
      assert.equal(effectOf('fs/write_file', { path }, unattended), 'allow', path);
  }
});
