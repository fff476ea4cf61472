/** Every route of every daemon refuses a wrong credential by the head of the request, before any byte of its body. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type TestContext, test } from 'node:test';
import { NEO_ROUTES } from '../../../src/agents/neo/http/routes.ts';
import { startedNeo } from '../../../src/agents/neo/testing/workbench.ts';
import { CHRONOS_ROUTES } from '../../../src/chronos/http/routes.ts';
import { EXECUTOR_ROUTES } from '../../../src/executor/http/routes.ts';
import { ROUTER_ROUTES } from '../../../src/router/http/routes.ts';
import { CONSOLE_CODE, PROXIED_ROUTES } from '../../../src/router/public/routes.ts';
import { startBench } from '../../../src/router/testing/bench.ts';
import type { Routes } from '../../../src/wire/route.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { openA2aBench } from '../a2a/bench.ts';
import { createHttpBench } from '../chronos/http-bench.ts';
import { startFleet } from '../console/fleet-bench.ts';
import { startedExecutor } from '../executor/executor-bench.ts';
import { startMcpHttp } from '../mcp-http/mcp-http-bench.ts';

const BODY_BYTES = 100_000;

type Target = { url: string; routes: readonly { method: string; path: string }[] };

/** The routes that take a body and need a credential in the head. */
const guarded = (routes: Routes) =>
  Object.values(routes).filter(
    ({ method, path, credential }) =>
      method !== 'get' &&
      credential !== 'none' &&
      credential !== 'hook' &&
      // The key of a turn report is the one that signs its body.
      !path.startsWith('/v1/fires/'),
  );
const posts = (...paths: string[]) => paths.map((path) => ({ method: 'post', path }));

const TARGETS: Record<string, (t: TestContext) => Promise<Target>> = {
  chronosd: async (t) => ({
    url: (await createHttpBench(t, { auth: { wakeToken: 'wake-token-of-these-tests' } })).url,
    routes: guarded(CHRONOS_ROUTES),
  }),
  router: async (t) => ({ url: (await startBench(t)).url, routes: guarded(ROUTER_ROUTES) }),
  executor: async (t) => {
    const settings = { EXECUTOR_ADMIN_TOKEN: 'an-admin-token-of-these-tests' };
    const { url } = await startedExecutor(t, temporaryFolder(t), settings);
    return { url, routes: guarded(EXECUTOR_ROUTES) };
  },
  neo: async (t) => ({ url: (await startedNeo(t)).url, routes: guarded(NEO_ROUTES) }),
  'the public listener': async (t) => ({
    url: (await startBench(t)).public.url,
    routes: guarded({ ...PROXIED_ROUTES, CONSOLE_CODE }),
  }),
  'MCP over HTTP': async (t) => ({
    url: (await startMcpHttp(t)).url,
    routes: posts('/mcp/chronos'),
  }),
  A2A: async (t) => ({ url: (await openA2aBench(t)).url, routes: posts('/a2a', '/a2a/message:send') }),
  LangGraph: async (t) => ({
    url: (await startFleet(t, { ROUTER_LANGGRAPH: '1' })).origin,
    routes: posts('/langgraph/runs/crons', '/langgraph/runs/crons/search'),
  }),
};

/** The status of the answer to a request whose announced body is never sent. */
function headOf(url: string, method: string, path: string): Promise<number> {
  const target = new URL(path.replace(/\{\w+\}/g, 'x'), url);
  const headers = {
    authorization: 'Bearer a-wrong-token-of-these-tests',
    'content-type': 'application/json',
    'content-length': BODY_BYTES,
  };
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(target, { method: method.toUpperCase(), headers, agent: false, rejectUnauthorized: false });
    request.on('error', reject).on('response', (response) => {
      resolve(response.statusCode ?? 0);
      request.destroy();
    });
    request.flushHeaders();
  });
}

for (const [name, start] of Object.entries(TARGETS))
  test(`${name} refuses a wrong credential without reading the body`, async (t) => {
    const { url, routes } = await start(t);
    assert.ok(routes.length > 0);
    for (const { method, path } of routes)
      assert.ok([401, 403].includes(await headOf(url, method, path)), `${method} ${path}`);
  });
