import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DATABASES } from './databases.ts';
import { PACKAGE_ROOT } from './package-root.ts';

test('every folder of migrations belongs to a known database, so that a backup contains each', () => {
  const found = globSync('{src,examples}/**/migrations/0001-*.sql', { cwd: PACKAGE_ROOT })
    .map((file) => dirname(file))
    .filter((folder) => !folder.includes('postgres'));
  const known = DATABASES.map(({ migrations }) => fileURLToPath(migrations));
  assert.deepEqual(found.map((folder) => join(PACKAGE_ROOT, folder)).sort(), known.sort());
});
