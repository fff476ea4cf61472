/**
 * The server scenarios of the MCP conformance suite against `/mcp/chronos`, all of them, in each revision. The suite has no
 * token, so a proxy adds one.
 *
 * Most scenarios call tools, prompts or resources of the suite's own example server. At the alarm tools they find none,
 * which is the only accepted reason of a failed check. Therefore they run a second time with an extension that has them
 * (conformance-server.ts), behind the same endpoint.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServerExtension } from '../../../src/mcp-http/servers.ts';
import { listening, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { CONFORMANCE } from './conformance-server.ts';
import { startMcpHttp } from './mcp-http-bench.ts';

const SUITE = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const FREE = { ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '1000000', ROUTER_PUBLIC_REQUESTS_PER_USER: '1000' };

type Check = { id: string; status: string; errorMessage?: string };
type Outcome = { scenario: string; check: Check };

/** Runs all scenarios of a revision. */
async function conformance(
  owner: Owner,
  revision: string,
  extensions?: readonly ServerExtension[],
): Promise<Outcome[]> {
  const bench = await startMcpHttp(owner, FREE, extensions);
  const bearer = await bench.token();
  const { hostname, port } = new URL(bench.url);
  const proxy = createServer((incoming, outgoing) => {
    const { connection: _, ...headers } = incoming.headers;
    const sent = request(
      {
        hostname,
        port,
        path: '/mcp/chronos',
        method: incoming.method,
        headers: { ...headers, authorization: `Bearer ${bearer}` },
      },
      (answer) => answer.pipe(outgoing.writeHead(answer.statusCode!, answer.headers)),
    );
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  const url = `${(await listening(owner, proxy)).replace('127.0.0.1', 'localhost')}/mcp`;
  const folder = temporaryFolder(owner);
  const args = ['server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', folder];
  const suite = spawn(process.execPath, [SUITE, ...args], { cwd: folder, stdio: 'ignore' });
  owner.after(() => suite.kill('SIGKILL'));
  await once(suite, 'close');
  return globSync('*/checks.json', { cwd: folder }).flatMap((file) => {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(file)?.[1] ?? file;
    const checks = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Check[];
    return checks.map((check) => ({ scenario, check }));
  });
}

const counts = (outcomes: readonly Outcome[]) => {
  const of = (status: string) => outcomes.filter(({ check }) => check.status === status);
  return { passed: of('SUCCESS'), failed: of('FAILURE') };
};

/** The check did not find what only the example server has, or a capability that this server does not declare. */
const ABSENT =
  /unknown tool "test_|Method not found|^Not testable: server (?:does not list the diagnostic tool|exposes no tool with x-mcp-header)|^Tool 'json_schema_2020_12_tool' not found|^Expected InputRequiredResult|^Prerequisite failed: could not get initial InputRequiredResult/;

/** Scenarios that must pass as a whole, and the least number of passed checks of all. */
const EXPECTED = {
  '2025-06-18': { scenarios: ['server-initialize', 'ping', 'tools-list'], checks: 29 },
  '2025-11-25': { scenarios: ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'], checks: 35 },
  '2026-07-28': {
    scenarios: [
      ...['tools-list', 'dns-rebinding-protection', 'http-header-validation', 'server-sse-multiple-streams'],
      ...['sep-2164-resource-not-found', 'input-required-result-unsupported-methods'],
    ],
    checks: 87,
  },
};

for (const [revision, { scenarios, checks }] of Object.entries(EXPECTED))
  test(`every server scenario of ${revision} passes, or needs what only the example server has`, async (t) => {
    const outcomes = await conformance(t, revision);
    const { passed, failed } = counts(outcomes);
    const all = new Set(outcomes.map(({ scenario }) => scenario));
    t.diagnostic(`${all.size} scenarios: ${passed.length} checks passed, ${failed.length} had nothing to call`);
    const wrong = failed.filter(({ check }) => !ABSENT.test((check.errorMessage ?? '').replace(/^Failed: /, '')));
    assert.deepEqual(
      wrong.map(({ scenario, check }) => `${scenario}: ${check.id}: ${check.errorMessage}`),
      [],
    );
    for (const scenario of scenarios) {
      assert.ok(all.has(scenario), scenario);
      assert.ok(!failed.some((one) => one.scenario === scenario), scenario);
    }
    assert.ok(passed.length >= checks, `${passed.length} passed`);
  });

const ASKS = 'these servers ask the client nothing: no elicitation, sampling or roots';
/** Scenarios with failed checks although everything is there, and why each is correct. */
const EXPECTED_FAILURES: Readonly<Record<string, string>> = {
  'tools-call-elicitation': ASKS,
  'tools-call-sampling': ASKS,
  'elicitation-sep1034-defaults': ASKS,
  'elicitation-sep1330-enums': ASKS,
  'server-stateless': `${ASKS}; two of its checks are about such a tool`,
  'server-sse-polling': 'an answer is not resumed: each request stands for itself, and a repeated one is harmless',
  'http-custom-header-server-validation': 'no tool has its arguments in headers',
};
const isExpected = (scenario: string) =>
  Object.hasOwn(EXPECTED_FAILURES, scenario) || scenario.startsWith('input-required-result-');

const LEAST = { '2025-06-18': 50, '2025-11-25': 63, '2026-07-28': 117 };

for (const [revision, least] of Object.entries(LEAST))
  test(`with what the suite calls, the server scenarios of ${revision} pass`, async (t) => {
    const outcomes = await conformance(t, revision, [CONFORMANCE]);
    const { passed, failed } = counts(outcomes);
    const of = (some: readonly Outcome[]) => new Set(some.map(({ scenario }) => scenario)).size;
    t.diagnostic(
      `${of(outcomes)} scenarios, ${of(failed)} with failed checks: ${passed.length} passed, ${failed.length} failed`,
    );
    assert.deepEqual(
      failed
        .filter(({ scenario }) => !isExpected(scenario))
        .map(({ scenario, check }) => `${scenario}: ${check.id}: ${check.errorMessage}`),
      [],
    );
    assert.ok(passed.length >= least, `${passed.length} passed`);
  });
