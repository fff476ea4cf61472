/**
 * A router with MCP over HTTP in front of a real chronosd, and an issuer of access tokens: everything speaks HTTP, and
 * tokens are signed by real keys.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { openAgentHost } from '../../../src/agents/host.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { fleetServices } from '../../../src/cli/access/public-services.ts';
import type { CliContext } from '../../../src/cli/context.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { parseMcpHttpConfig } from '../../../src/mcp-http/config.ts';
import type { ServerExtension } from '../../../src/mcp-http/servers.ts';
import { createMcpHttp } from '../../../src/mcp-http/service.ts';
import { parseRouterConfig } from '../../../src/router/config.ts';
import { startRouter } from '../../../src/router/daemon.ts';
import type { ServicesOf } from '../../../src/router/public/listener.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Settings } from '../../../src/wire/settings.ts';
import { atEnd, listening, type Owner, temporaryFolder } from '../../support/temporary.ts';

export const TRANSPORT = 'transport-token-of-the-tests';
export const CHRONOS_ADMIN = 'admin-token-of-the-chronosd-of-the-tests';

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;
type Claims = { readonly [claim: string]: unknown };

/** An authorization server, as far as a resource server sees it. */
export async function startIssuer(owner: Owner, alg = 'ES256') {
  const pair = await generateKeyPair(alg, { extractable: true });
  const kid = `key-of-${alg}`;
  const asked: string[] = [];
  const state = { isDown: false, jwksUri: undefined as string | undefined };
  const keys = async () => ({ keys: [{ ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' }] });
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (state.isDown) answer(500, {});
    else if (request.url === '/.well-known/openid-configuration')
      answer(200, { issuer: url, jwks_uri: state.jwksUri ?? `${url}/jwks` });
    else if (request.url === '/jwks') void keys().then((body) => answer(200, body));
    else answer(404, {});
  });
  const url = await listening(owner, server);
  return {
    ...{ url, asked, state, pair, kid },
    /** A token with these claims; `undefined` removes one. */
    sign(claims: Claims, header: Record<string, unknown> = {}, key: Parameters<SignJWT['sign']>[0] = pair.privateKey) {
      const now = Math.floor(Date.now() / 1000);
      const all = { iss: url, sub: 'subject-of-ada', client_id: 'client-1', iat: now, exp: now + 300, ...claims };
      const payload = JSON.parse(JSON.stringify(all)) as JWTPayload;
      return new SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header }).sign(key);
    },
  };
}

export type McpHttpBench = Awaited<ReturnType<typeof startMcpHttp>>;

/**
 * @param more settings of the router
 * @param extensions of the servers, which then have no alarms
 * @param isRevoked of the issuer, with extensions
 */
export async function startMcpHttp(
  owner: Owner,
  more: Record<string, string> = {},
  extensions?: readonly ServerExtension[],
  isRevoked: () => boolean = () => false,
) {
  const folder = temporaryFolder(owner);
  const issuer = await startIssuer(owner);
  const chronos = await startChronos({
    ...{ clock: systemClock, log: silentLogger },
    config: parseChronosConfig({
      ...{ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: join(folder, 'chronos'), CHRONOS_ENROLLMENT: 'required' },
      ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN },
      ...{ CHRONOS_AGENT_AUTH_SECRET: 'auth-secret-of-the-tests', CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
      CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:1/internal/wake',
    }),
  });
  atEnd(owner, () => chronos.close());
  const users = { 'subject-of-ada': 'ada', 'subject-of-bob': 'bob' };
  const clients = { 'https://chat.example/client.json': 'Chat' };
  const settings = {
    ...{ ROUTER_PORT: '0', ROUTER_DATA_DIR: join(folder, 'router'), ROUTER_WAKE_TOKEN: WAKE_TOKEN },
    ...{ ROUTER_ADMIN_TOKEN: ADMIN_TOKEN, ROUTER_CHRONOS_URL: chronos.url, ROUTER_CHRONOS_TOKEN: TRANSPORT },
    ROUTER_CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN,
    ROUTER_MCP_ISSUERS: JSON.stringify([{ issuer: issuer.url, users, clients }]),
    ROUTER_METRICS_TOKEN: 'metrics-token-of-the-tests',
    ...more,
  };
  const config = parseRouterConfig(settings);
  const context = { settings, clock: systemClock, log: async () => silentLogger } as unknown as CliContext;
  const router = await startRouter({
    ...{ config, openAgents: openAgentHost, clock: systemClock, log: silentLogger, version: '0.0.0' },
    environment: {},
    ...(extensions ? { servicesOf: extended(settings, extensions, isRevoked) } : fleetServices(context, config)),
  });
  atEnd(owner, () => router.close());
  const { url } = router.public;
  const resource = (endpoint: string) => `${config.public.url ?? url}/mcp/${endpoint}`;
  /** A token for an endpoint, by default with all of its scopes. */
  const token = (claims: Claims = {}, endpoint = 'chronos') =>
    issuer.sign({ aud: resource(endpoint), scope: 'alarms:read alarms:write time:read intents:read', ...claims });
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(url + path, { redirect: 'manual', ...init });
    const text = await response.text();
    const json = (): unknown => JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
    return { status: response.status, headers: response.headers, text, json };
  };
  return {
    ...{ folder, issuer, chronos, router, url, resource, token, send, settings },
    internal: clientOf(router.url),
    /** One JSON-RPC request of the revision 2025-11-25. @param bearer without it, the request has no token */
    async call(method: string, params: object = {}, { bearer, endpoint = 'chronos', headers = {} }: CallOptions = {}) {
      return send(`/mcp/${endpoint}`, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          'mcp-protocol-version': '2025-11-25',
          ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
    },
    /** Calls a tool, and returns its result. */
    async tool(name: string, args: object | string, bearer: string, endpoint = 'chronos') {
      const source = typeof args === 'string' ? args : JSON.stringify(args);
      const answer = await send(`/mcp/${endpoint}`, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...{ 'mcp-protocol-version': '2025-11-25', authorization: `Bearer ${bearer}` },
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${source}}}`,
      });
      assert.equal(answer.status, 200, answer.text);
      const { result } = answer.json() as { result: ToolResult };
      assert.ok(result, answer.text);
      return { ...result, source: answer.text };
    },
    /** The outcomes that the router counts. */
    figures: () => router.public.figures().services.mcp ?? {},
  };
}

/** The service without a chronosd, and with extensions. */
function extended(settings: Settings, extensions: readonly ServerExtension[], isRevoked: () => boolean): ServicesOf {
  const alarms = () => {
    throw new ReveilleError('unavailable', 'these servers have no alarms');
  };
  const open = async () => ({ backends: { alarms }, extensions, log: silentLogger });
  const { issuers, ...rest } = parseMcpHttpConfig(settings)!;
  const config = { ...rest, issuers: issuers.map((issuer) => ({ ...issuer, isRevoked })) };
  return (parts) => [createMcpHttp({ config, ...parts, open, clock: systemClock })];
}

type CallOptions = { bearer?: string; endpoint?: string; headers?: Record<string, string> };
export type ToolResult = {
  content: { type: string; text: string }[];
  structuredContent: Record<string, unknown>;
  isError?: boolean;
};
