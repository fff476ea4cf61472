import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withSecrets } from './secrets.ts';

test('a secret that contains another one is hidden as a whole', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-secrets-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'check-secrets.json');
  writeFileSync(file, JSON.stringify({ USER: 'ada', KEY: 'ada-4711' }));
  const headers = { user: `\${USER}`, authorization: `Bearer \${KEY}` };
  const { hide } = withSecrets({ url: 'https://example.com/', headers }, file, true);
  assert.equal(hide('got "Bearer ada-4711" of ada'), `got "Bearer \${KEY}" of \${USER}`);
});
