import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inheritedVariables, isWithheld, isWithheldFromServers } from './inherited-variables.ts';

test('a child gets the variables that it needs to run, and no paths of secrets', () => {
  const own = {
    PATH: '/usr/bin:/home/ada/.reveille/bin:/bin',
    HOME: '/home/ada',
    LC_TIME: 'de_DE.UTF-8',
    https_proxy: 'http://proxy:3128',
    TMPDIR: '/home/ada/.reveille/tmp',
    XDG_CACHE_HOME: '/home/ada/keys/cache',
    REVEILLE_HOME: '/home/ada/.reveille',
    REVEILLE_APPROVER_DIR: '/home/ada/keys',
    XDG_RUNTIME_DIR: '/run/user/1000',
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/1000/bus',
    PWD: '/home/ada/.reveille',
    CHRONOS_ADMIN_TOKEN: 'x',
    SHELLSHOCK: '() { :; }',
  };
  assert.deepEqual(inheritedVariables(own), {
    PATH: '/usr/bin:/bin',
    HOME: '/home/ada',
    LC_TIME: 'de_DE.UTF-8',
    https_proxy: 'http://proxy:3128',
  });
  assert.equal(inheritedVariables({ ...own, TMPDIR: '/home/ada/.reveille-tmp' }).TMPDIR, '/home/ada/.reveille-tmp');
});

test("secrets of daemons are withheld by name; an agent's secrets are withheld from its servers", () => {
  for (const name of ['EXECUTOR_TOKEN', 'REVEILLE_HOME', 'ROUTER_ADMIN_TOKEN', 'REVEILLE_APPROVER_PASSPHRASE'])
    assert.ok(isWithheld(name) && isWithheldFromServers(name), name);
  for (const name of ['NEO_DAEMON_TOKEN', 'NEO_EXECUTOR_TOKEN', 'NEO_MODEL_API_KEY', 'REVEILLE_MACHINE_TOKEN'])
    assert.deepEqual([isWithheld(name), isWithheldFromServers(name)], [false, true], name);
  for (const name of ['MATRIX_CHRONOS_TOKEN', 'MATRIX_EXECUTOR_KEYFILE', 'NEO_SEARCH_KEY', 'GITHUB_TOKEN'])
    assert.equal(isWithheldFromServers(name), false, name);
});
