/**
 * The client scenarios of the MCP conformance suite: everything that a revision requires of a client, and the extensions
 * that this host has.
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
const EXPECTED_FAILURES: Readonly<Record<string, string>> = {};

const OAUTH = [
  ...['metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd', 'pre-registration'],
  ...['scope-from-www-authenticate', 'scope-from-scopes-supported', 'scope-omitted-when-undefined'],
  ...['scope-step-up', 'scope-retry-limit'],
  ...['token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none'],
].map((name) => `auth/${name}`);

const SCENARIOS = {
  '2025-03-26': ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback'],
  '2025-11-25': [
    'initialize',
    'tools_call',
    'sse-retry',
    'json-schema-2020-12-preservation',
    'elicitation-sep1034-client-defaults',
    ...OAUTH,
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
    ...OAUTH,
    ...[
      ...['resource-mismatch', 'offline-access-scope', 'offline-access-not-supported'],
      ...['authorization-server-migration', 'metadata-issuer-mismatch'],
      ...['iss-supported', 'iss-not-advertised', 'iss-supported-missing', 'iss-wrong-issuer', 'iss-unexpected'],
      'iss-normalized',
    ].map((name) => `auth/${name}`),
  ],
  // Not part of a revision.
  extensions: ['auth/client-credentials-basic'],
};

for (const [revision, scenarios] of Object.entries(SCENARIOS)) {
  for (const scenario of scenarios) {
    const why = EXPECTED_FAILURES[scenario];
    test(`${scenario} of ${revision} ${why === undefined ? 'passes' : `fails, for ${why}`}`, async (t) => {
      const command = `${process.execPath} ${CLIENT}`;
      const args = ['client', '--command', command, '--scenario', scenario];
      if (revision !== 'extensions') args.push('--spec-version', revision);
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
