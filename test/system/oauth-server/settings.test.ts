/** A wrong setting stops the start with a sentence, and the commands work without a server. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const ROUTER = {
  ...{ ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', ROUTER_OAUTH: '1' },
  ...{ ROUTER_WAKE_TOKEN: 'wake-token-of-the-tests', ROUTER_ADMIN_TOKEN: 'admin-token-of-the-tests' },
};

test('a router refuses what its clients could not use', async (t) => {
  const folder = temporaryFolder(t);
  const start = async (more: Record<string, string>) => {
    const { status, stderr } = await reveille(folder, ['router'], { env: { ...ROUTER, ...more } });
    assert.equal(status, 1, stderr);
    return stderr;
  };
  assert.match(await start({}), /needs the console, where users sign in and end access: set ROUTER_CONSOLE=1/);
  const shared = {
    ROUTER_CONSOLE: '1',
    ROUTER_CHRONOS_URL: 'http://127.0.0.1:1',
    ROUTER_CHRONOS_TOKEN: 'x'.repeat(16),
  };
  assert.match(await start({ ...shared, ROUTER_PUBLIC_TLS: 'terminated-in-front' }), /set ROUTER_PUBLIC_URL/);
  assert.match(
    await start(shared),
    /ROUTER_OAUTH is set, but clients cannot reach alarms: also set ROUTER_CHRONOS_ADMIN_TOKEN/,
  );
});

test('the commands list and revoke without a server', async (t) => {
  const folder = temporaryFolder(t);
  const list = await reveille(folder, ['client', 'list']);
  assert.equal(existsSync(join(folder, 'router', 'oauth.db')), false, 'a look makes no database');
  assert.equal(list.status, 0, list.stderr);
  assert.match(list.stdout, /No connected clients/);
  const revoke = await reveille(folder, ['client', 'revoke', '3f9a10c25d7e']);
  assert.equal(revoke.status, 1);
  assert.match(revoke.stderr, /no connected client with this id \(got 3f9a10c25d7e\); see: reveille client list/);
});
