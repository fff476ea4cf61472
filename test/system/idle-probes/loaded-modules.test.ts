import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { modulesBelow, recordModules } from './loaded-modules.ts';

const SRC = pathToFileURL(join(import.meta.dirname, '..', '..', '..', 'src')).href;

/** Runs a module in a process of its own. @returns the record of what it loaded */
function run(t: TestContext, script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-modules-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const record = join(folder, 'modules');
  const child = spawnSync(process.execPath, [recordModules(record), '--input-type=module', '--eval', script], {
    env: {},
    encoding: 'utf8',
  });
  assert.equal(child.status, 0, child.stderr);
  return record;
}

test('opening loads no adapter, and reading loads only those of the platform', (t) => {
  const open = `
    const { openIdle } = await import('${SRC}/chronometric/idle/open-idle.ts');
    const { systemClock } = await import('${SRC}/kit/clock/clock.ts');
    const idle = openIdle({ XDG_RUNTIME_DIR: '/nonexistent' }, systemClock);`;
  const opened = ['idle.ts', 'open-idle.ts', 'program-host.ts'];
  assert.deepEqual(modulesBelow('chronometric/idle', run(t, open)).sort(), opened);

  const record = run(t, `${open} await idle.read();`);
  const adapters: Record<string, string[]> = {
    linux: ['linux.ts'],
    darwin: ['macos.ts'],
    win32: ['windows.ts'],
  };
  const expected = [...opened, ...(adapters[process.platform] ?? [])].sort();
  assert.deepEqual(modulesBelow('chronometric/idle', record).sort(), expected);
  assert.equal(/\/koffi\//.test(readFileSync(record, 'utf8')), process.platform === 'win32');
});
