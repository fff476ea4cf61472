import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasTools } from './desktop-tools.ts';

test('a missing desktop program fails a test in CI and is named with its package', (t) => {
  assert.throws(
    () => hasTools(t, ['Xvfb', 'gdbus'], true, (path) => path === '/usr/bin/Xvfb'),
    /gdbus .*libglib2\.0-bin/,
  );
  assert.equal(
    hasTools(t, ['Xvfb'], true, () => true),
    true,
  );
});
