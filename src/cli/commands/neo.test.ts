import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';

const OPERATOR = 'the-operators-token-of-the-executor';

test("Neo does not find the operator's token anywhere, and names the token that it needs", {
  timeout: 60_000,
}, async (t) => {
  const home = join(temporaryFolder(t), 'home');
  mkdirSync(home, { mode: 0o700 });
  const neo = {
    NEO_DAEMON_TOKEN: 'the-daemon-token-of-this-neo',
    NEO_EXECUTOR_URL: 'http://127.0.0.1:1',
    NEO_MANIFEST: 'none',
    NEO_PORT: '0',
    MATRIX_USER_ID: 'ada',
  };
  const inEnvironment = await reveille(home, ['neo'], { env: { ...neo, EXECUTOR_TOKEN: OPERATOR } });
  writeFileSync(join(home, 'executor-secrets.json'), JSON.stringify({ EXECUTOR_TOKEN: OPERATOR }), { mode: 0o600 });
  const inHome = await reveille(home, ['neo'], { env: neo });
  for (const { status, stderr } of [inEnvironment, inHome]) {
    assert.equal(status, 1, stderr);
    assert.match(stderr, /NEO_EXECUTOR_TOKEN is not set.*give a submitter's token.*reveille submitter add/);
    assert.ok(!stderr.includes(OPERATOR));
  }
});
