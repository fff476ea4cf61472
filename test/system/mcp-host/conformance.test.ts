/**
 * The client scenarios of the MCP conformance suite that apply to a host of tools. Those on OAuth do not: the host
 * sends only headers.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../support/temporary.ts';

const SUITE = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const CLIENT = fileURLToPath(new URL('conformance-client.ts', import.meta.url));

/** The expected failures, and why each is correct. */
const NO_ELICITATION =
  'a host of tools asks no person; it says in-band that it does not, and declares no such capability';
const EXPECTED_FAILURES: Readonly<Record<string, string>> = {
  'elicitation-sep1034-client-defaults': NO_ELICITATION,
  'sep-2322-client-request-state': NO_ELICITATION,
};

const SCENARIOS = {
  '2025-11-25': [
    'initialize',
    'tools_call',
    'sse-retry',
    'json-schema-2020-12-preservation',
    'elicitation-sep1034-client-defaults',
  ],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
    'sep-2322-client-request-state',
  ],
};

for (const [revision, scenarios] of Object.entries(SCENARIOS)) {
  for (const scenario of scenarios) {
    const why = EXPECTED_FAILURES[scenario];
    test(`${scenario} of ${revision} ${why === undefined ? 'passes' : `fails, for ${why}`}`, async (t) => {
      const command = `${process.execPath} ${CLIENT}`;
      const args = ['client', '--command', command, '--scenario', scenario, '--spec-version', revision];
      const suite = spawn(process.execPath, [SUITE, ...args], {
        cwd: temporaryFolder(t),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      t.after(() => suite.kill('SIGKILL'));
      let output = '';
      for (const stream of [suite.stdout, suite.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
      const [code] = (await once(suite, 'close')) as [number | null];
      assert.equal(code === 0, why === undefined, output);
      assert.match(output, why === undefined ? /OVERALL: PASSED/ : /OVERALL: FAILED/);
    });
  }
}
