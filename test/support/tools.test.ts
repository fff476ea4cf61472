import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from './temporary.ts';
import { lacks, needs, onPath, TOOL_NAMES, toolsIn } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('a missing tool is a reason to skip that names the tool and its install command; in CI it is an error', () => {
  const missing = TOOL_NAMES.filter((tool) => needs(tool, false) !== false);
  for (const tool of missing) {
    assert.match(String(needs(tool, false)), new RegExp(`^needs ${tool} \\((?:apt-get|npm|go) install `));
    // CI installs no browser, and Helm only where Go is.
    if (tool !== 'browser' && tool !== 'helm')
      assert.throws(() => needs(tool, true), new RegExp(`^Error: not tested: needs ${tool} `));
  }
  assert.deepEqual(toolsIn(missing.length > 0 && needs(missing, false)), missing);
  assert.deepEqual(toolsIn('bubblewrap is for Linux'), []);
});

test('a run ends with a line for each missing tool, and then with the summary of Node', (t) => {
  if (lacks(t, 'bash')) return;
  const folder = temporaryFolder(t);
  symlinkSync(onPath('bash')!, join(folder, 'bash'));
  const { CI: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const args = [join('test', 'support', 'run.ts'), 'src/cli/outline/completion.test.ts'];
  const { status, stdout } = spawnSync(process.execPath, args, {
    ...{ cwd: ROOT, encoding: 'utf8', env: { ...env, PATH: folder } },
  });
  assert.equal(status, 0, stdout);
  const last = stdout.trimEnd().split('\n').slice(-11);
  const line = (tool: string, packages = tool) =>
    `ℹ ${tool} is missing: skipped 1 test; apt-get install -y --no-install-recommends ${packages}`;
  assert.deepEqual(last.slice(0, 4), [line('fish'), line('groff', 'groff-base'), line('zsh'), 'ℹ tests 5']);
  assert.match(last.at(-1)!, /^ℹ duration_ms /);
});

test('no other module of the tests decides which tools CI must have', () => {
  const files = globSync('{src,test,examples,bench}/**/*.ts', {
    cwd: ROOT,
    exclude: (path) => /node_modules/.test(path),
  });
  const found = files.filter((file) => /process\.env\.CI\b/.test(readFileSync(join(ROOT, file), 'utf8')));
  assert.deepEqual(found.toSorted(), ['test/support/tools.ts', 'test/support/without.ts']);
});
