import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sandboxAndCapabilities } from './disabled.ts';

const SHELL =
  'shell: there is no program bwrap and REVEILLE_SHELL_WITHOUT_WALLS is not set; install bubblewrap, which builds the sandbox';
const BROWSER = 'browser: there is no program playwright-mcp; npm install --global @playwright/mcp';
const MISSING = 'bubblewrap is not installed (apt-get install bubblewrap)';

test('a missing bubblewrap is one line for the sandbox and the capabilities that need it', () => {
  assert.deepEqual(sandboxAndCapabilities(MISSING, [BROWSER, SHELL]), [`sandbox, shell: ${MISSING}`, BROWSER]);
  assert.deepEqual(sandboxAndCapabilities(MISSING, [BROWSER]), [`sandbox: ${MISSING}`, BROWSER]);
});

test('another cause has a line of its own', () => {
  const forbidden = '/usr/bin/bwrap cannot be used here (no permission); the system may forbid user namespaces';
  assert.deepEqual(sandboxAndCapabilities(forbidden, [SHELL]), [`sandbox: ${forbidden}`, SHELL]);
  assert.deepEqual(sandboxAndCapabilities(undefined, [SHELL]), [SHELL]);
});
