/** A router with A2A, chronosd, and the agents of two users. */
import type { TestContext } from 'node:test';
import { openAgentHost } from '../../../src/agents/host.ts';
import { a2aServices } from '../../../src/cli/access/a2a.ts';
import { type AlarmsOf, endAlarmsBy } from '../../../src/cli/access/public-services.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { McpHttpConfig } from '../../../src/mcp-http/config.ts';
import { parseRouterConfig } from '../../../src/router/config.ts';
import { startRouter } from '../../../src/router/daemon.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { type ConversingAgent, startConversingAgent } from '../../support/stand-ins/conversing-agent.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

export type A2aBench = Awaited<ReturnType<typeof openA2aBench>>;

/**
 * @param settings of the router
 * @param alarmsOf by default none can be set
 */
export async function openA2aBench(
  t: TestContext,
  {
    settings = {},
    alarmsOf,
    issuers,
  }: { settings?: Record<string, string>; alarmsOf?: AlarmsOf; issuers?: McpHttpConfig | undefined } = {},
) {
  const dataDir = temporaryFolder(t);
  const all = { ROUTER_A2A: '1', ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '100000', ...settings };
  const context = { settings: all, clock: systemClock, log: async () => silentLogger };
  const parts = {
    alarmsOf: alarmsOf ?? (() => Promise.reject(new Error('not used'))),
    needsGrant: false,
    issuers,
    level: 'error' as const,
  };
  const start = async () => {
    const config = parseRouterConfig({
      ...{ ROUTER_PORT: '0', ROUTER_DATA_DIR: dataDir, ROUTER_ORPHAN_SECONDS: '0' },
      ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
      ...Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith('ROUTER_A2A'))),
    });
    return startRouter({
      ...{ config, openAgents: openAgentHost, clock: systemClock, log: silentLogger, version: '0.0.0' },
      environment: process.env,
      servicesOf: await a2aServices(context, { router: config, ...parts }),
      ...(alarmsOf && { endAlarms: endAlarmsBy(alarmsOf) }),
    });
  };
  let router = await start();
  atEnd(t, () => router.close());
  const agents: Record<string, ConversingAgent> = {};
  const tokens: Record<string, string> = {};
  const tokenOf = async (userId: string, path = ''): Promise<string> => {
    const body = path === '' ? { user_id: userId, name: 'the agent' } : { name: 'another' };
    return (await clientOf(router.url).send('POST', `/admin/users${path}`, ADMIN_TOKEN, body)).json.data.token!;
  };
  for (const userId of ['ada', 'bob']) {
    const agent = await startConversingAgent();
    atEnd(t, () => agent.close());
    await clientOf(router.url).put(userId, {
      provider: 'http',
      spec: { url: agent.url },
      token: `machine-of-${userId}-0000`,
    });
    agents[userId] = agent;
    tokens[userId] = await tokenOf(userId);
  }
  return {
    dataDir,
    get router() {
      return { ...router, ...clientOf(router.url) };
    },
    get url() {
      return router.public.url;
    },
    ada: agents.ada!,
    bob: agents.bob!,
    tokens: tokens as { ada: string; bob: string },
    /** Another credential of a user. */
    anotherToken: (userId: string) => tokenOf(userId, `/${userId}/tokens`),
    revoke: async (userId: string, id: string) =>
      clientOf(router.url).send('DELETE', `/admin/users/${userId}/tokens/${id}`, ADMIN_TOKEN),
    /** Stops the router and starts another one over the same data, at another port. */
    async restart() {
      await router.close();
      router = await start();
    },
    /** Stops the router, and starts another one after the work. */
    async whileDown(work: () => Promise<void>) {
      await router.close();
      await work();
      router = await start();
    },

    /** A request of HTTP+JSON. */
    async rest(method: string, path: string, body?: unknown, token = tokens.ada, headers: Record<string, string> = {}) {
      const answer = await fetch(`${router.public.url}/a2a${path}`, {
        method,
        headers: {
          'a2a-version': '1.0',
          ...(token && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, json: parsed(text) };
    },

    /** A request of JSON-RPC. */
    async rpc(method: string, params: unknown, { token = tokens.ada, version = '1.0' } = {}) {
      const answer = await fetch(`${router.public.url}/a2a`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': version },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, json: parsed(text) };
    },
  };
}

function parsed(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

let made = 0;

/** A message with a text. */
export const textMessage = (text: string, more: object = {}) => ({
  message: { messageId: `m-${++made}-${process.pid}`, role: 'ROLE_USER', parts: [{ text }], ...more },
});
