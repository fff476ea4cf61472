import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingOptional, withoutIntegrity } from '../../scripts/complete-lockfile.ts';

const lockfile = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package-lock.json'), 'utf8'));

test('the lock file covers every platform; "npm run lock" adds what npm left out', () => {
  assert.deepEqual([...missingOptional(lockfile).keys()], []);
});

test('the lock file names packages and checksums, not download hosts', () => {
  const resolved = Object.entries<{ resolved?: string }>(lockfile.packages).filter(([, entry]) => entry.resolved);
  assert.deepEqual(resolved, []);
});

test('every installed package, on any platform, has a checksum', () => {
  assert.deepEqual(withoutIntegrity(lockfile), [], '"npm run lock" asks the registry for them');
});
