import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingOptional, withoutIntegrity } from '../../scripts/complete-lockfile.ts';

const lockfile = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package-lock.json'), 'utf8'));

test('the lock file covers every platform; "npm run lock" adds what npm left out', () => {
  assert.deepEqual([...missingOptional(lockfile).keys()], []);
});

test('the lock file names packages and checksums, not the hosts they came from', () => {
  const resolved = Object.entries<{ resolved?: string }>(lockfile.packages).filter(([, entry]) => entry.resolved);
  assert.deepEqual(resolved, []);
});

test('whatever is installed is held to its checksum, but for tools of development on platforms that the registry here does not carry', () => {
  const open = withoutIntegrity(lockfile);
  for (const path of open) {
    const { dev, optional, os } = lockfile.packages[path];
    assert.ok(dev && optional && os, `${path} has no integrity; "npm run lock" asks the registry for it`);
  }
  // It may only become shorter: an entry that is added needs its checksum.
  assert.ok(open.length <= 23, `${open.length} entries have no integrity: ${open.join(', ')}`);
});
