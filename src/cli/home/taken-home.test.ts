/** A home that cannot be trusted stops the start of each daemon; home.test.ts tests the conditions. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startReveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { homeAt, loadOrMakeSecrets, makeHome } from './home.ts';

const PORTS = {
  ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', NEO_PORT: '0' },
  ...{ CHRONOS_DEV: '1', EXECUTOR_DEV: '1' },
};

test('no daemon starts in a home that others may write to, and none makes secrets there', {
  skip: process.platform === 'win32' && 'there are no modes',
}, async (t) => {
  const path = join(temporaryFolder(t), 'home');
  mkdirSync(path);
  chmodSync(path, 0o777);
  const look = async (words: string[]) => {
    const daemon = startReveille(t, path, words, { env: PORTS });
    // A daemon that starts anyway prints its address.
    await Promise.race([daemon.ended, daemon.until(({ stdout }) => stdout.includes('\n')).catch(() => {})]);
    assert.deepEqual([words, daemon.outcome.status, daemon.outcome.stdout], [words, 1, '']);
    assert.match(daemon.outcome.stderr, /home is writable for other users \(mode 0777\); run: chmod 700 /);
  };
  await look(['up', '--json']);
  const home = homeAt(path);
  assert.ok(!existsSync(home.secretsFile));
  chmodSync(path, 0o700);
  makeHome(home);
  loadOrMakeSecrets(home);
  chmodSync(path, 0o777);
  await Promise.all(['chronosd', 'router', 'executor', 'neo'].map((name) => look([name, '--json'])));
});
