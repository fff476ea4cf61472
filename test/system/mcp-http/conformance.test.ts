/**
 * The server scenarios of the MCP conformance suite against `/mcp/chronos`, all of them, in each revision. The suite has no
 * token, so a proxy adds one.
 *
 * Most scenarios call tools, prompts or resources of the suite's own example server. Here they find none, which is the
 * only accepted reason of a failed check. Tools that answer in several messages are added by an extension, because such
 * answers take another way through the endpoint.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { ServerExtension } from '../../../src/mcp-http/servers.ts';
import { listening, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { startMcpHttp } from './mcp-http-bench.ts';

const SUITE = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const FREE = { ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '1000000', ROUTER_PUBLIC_REQUESTS_PER_USER: '1000' };

type Check = { id: string; status: string; errorMessage?: string };
type Outcome = { scenario: string; check: Check };

/** Runs scenarios of a revision. @param only all by default */
async function conformance(
  owner: Owner,
  revision: string,
  { extensions, only }: { extensions?: readonly ServerExtension[]; only?: readonly string[] } = {},
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
  const run = async (...more: string[]) => {
    const args = ['server', '--url', url, '--spec-version', revision, '-o', folder, ...more];
    const suite = spawn(process.execPath, [SUITE, ...args], { cwd: folder, stdio: 'ignore' });
    owner.after(() => suite.kill('SIGKILL'));
    await once(suite, 'close');
  };
  for (const scenario of only ?? []) await run('--scenario', scenario);
  if (!only) await run('--suite', 'all');
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

const text = (written: string): CallToolResult => ({ content: [{ type: 'text', text: written }] });

/** Tools as the suite describes them: an answer, a failure, and answers after other messages. */
const TOOLS: ServerExtension = {
  scopesOf: () => undefined,
  extend(server) {
    const names = ['test_simple_text', 'test_error_handling', 'test_tool_with_progress', 'test_tool_with_logging'];
    server.registerCapabilities({ logging: {} });
    server.setRequestHandler('tools/list', () => ({
      tools: names.map((name) => ({ name, description: name, inputSchema: { type: 'object' as const } })),
    }));
    server.setRequestHandler('tools/call', async ({ params: { name, _meta } }, { mcpReq }) => {
      if (name === 'test_simple_text') return text('This is a simple text response for testing.');
      if (name === 'test_error_handling')
        return { ...text('This tool intentionally returns an error for testing'), isError: true };
      for (const [step, progress] of [0, 50, 100].entries()) {
        const progressToken = _meta?.progressToken ?? 0;
        if (name === 'test_tool_with_progress')
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        else await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data: `step ${step}` } });
        await pause(20);
      }
      return text('done');
    });
  },
};

const STREAMED = {
  '2025-11-25': ['tools-call-simple-text', 'tools-call-error', 'tools-call-with-progress', 'tools-call-with-logging'],
  '2026-07-28': ['tools-call-simple-text', 'tools-call-error', 'tools-call-with-progress'],
};
for (const [revision, only] of Object.entries(STREAMED))
  test(`answers in several messages pass in ${revision}`, async (t) => {
    const { passed, failed } = counts(await conformance(t, revision, { extensions: [TOOLS], only }));
    assert.deepEqual(
      failed.map(({ scenario, check }) => `${scenario}: ${check.errorMessage}`),
      [],
    );
    assert.equal(new Set(passed.map(({ scenario }) => scenario)).size, only.length);
  });
