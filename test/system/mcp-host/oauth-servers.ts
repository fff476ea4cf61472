/** An MCP server behind OAuth, and its authorization server, both on 127.0.0.1, which a test makes misbehave. */
import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { loadManifest, type ServerSpec } from '../../../src/mcp-host/manifest.ts';
import { temporaryFolder } from '../../support/temporary.ts';

export type Seen = { method: string; path: string; headers: IncomingMessage['headers']; body: string };
type Reply = { status?: number; headers?: Record<string, string>; body?: unknown };
type Respond = (seen: Seen) => Reply | undefined;

/** A server whose answers are functions. `seen` has every request. */
export async function scripted(t: TestContext, respond: Respond): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const entry = { method: request.method!, path: request.url!, headers: request.headers, body };
    seen.push(entry);
    const { status = 200, headers = {}, body: answer = '' } = respond(entry) ?? { status: 404 };
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

export type Issuer = {
  readonly url: string;
  readonly seen: Seen[];
  /** The access tokens that are valid now. */
  readonly valid: Set<string>;
  /** Members of the metadata, in place of the correct ones. */
  metadata: Record<string, unknown>;
  /** Answers of the token endpoint, in place of the correct ones. */
  token: (() => Reply) | undefined;
  /** Whether a refresh token was used twice; then all tokens are revoked. */
  wasReused(): boolean;
};

/** An authorization server with PKCE, registration, and refresh tokens that are used once. */
export async function startIssuer(t: TestContext): Promise<Issuer> {
  const valid = new Set<string>();
  const refresh = new Set<string>();
  const used = new Set<string>();
  const codes = new Map<string, URLSearchParams>();
  let reused = false;
  const grant = (scope: string): Reply => {
    const [access, renew] = [`at-${randomUUID()}`, `rt-${randomUUID()}`];
    valid.add(access);
    refresh.add(renew);
    return { body: { access_token: access, refresh_token: renew, token_type: 'Bearer', expires_in: 3600, scope } };
  };
  const refused = { status: 400, body: { error: 'invalid_grant' } };
  function tokens(form: URLSearchParams): Reply {
    if (issuer.token) return issuer.token();
    if (form.get('grant_type') === 'refresh_token') {
      const token = form.get('refresh_token')!;
      reused ||= used.has(token);
      if (reused) valid.clear();
      if (!refresh.delete(token)) return refused;
      used.add(token);
      return grant('read');
    }
    const request = codes.get(form.get('code')!);
    codes.delete(form.get('code')!);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    return request?.get('code_challenge') === challenge ? grant(request.get('scope') ?? '') : refused;
  }
  const { url, seen } = await scripted(t, ({ path, body }) => {
    const at = new URL(path, 'http://issuer');
    switch (at.pathname) {
      case '/.well-known/oauth-authorization-server':
        return {
          body: {
            ...{ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` },
            ...{ registration_endpoint: `${url}/register`, response_types_supported: ['code'] },
            ...{ code_challenge_methods_supported: ['S256'], authorization_response_iss_parameter_supported: true },
            ...issuer.metadata,
          },
        };
      case '/register':
        return { status: 201, body: { ...JSON.parse(body), client_id: `client-${randomUUID()}` } };
      case '/authorize': {
        const code = randomUUID();
        codes.set(code, at.searchParams);
        const back = new URL(at.searchParams.get('redirect_uri')!);
        for (const [name, value] of Object.entries({ code, state: at.searchParams.get('state')!, iss: url }))
          back.searchParams.set(name, value);
        return { status: 302, headers: { location: back.href } };
      }
      case '/token':
        return tokens(new URLSearchParams(body));
      default:
        return undefined;
    }
  });
  const issuer: Issuer = { url, seen, valid, metadata: {}, token: undefined, wasReused: () => reused };
  return issuer;
}

export type Resource = {
  /** The address of its MCP endpoint. */
  readonly url: string;
  readonly seen: Seen[];
  /** The authorization server that it names. */
  issuer: string;
  /** Answers a tool call, in place of its result. */
  call: ((seen: Seen) => Reply) | undefined;
};

/** An MCP server of 2025-11-25 that accepts the valid tokens of an authorization server. */
export async function startResource(t: TestContext, issuer: Issuer): Promise<Resource> {
  const { url, seen } = await scripted(t, (request) => {
    const { path, headers, body } = request;
    if (path === '/.well-known/oauth-protected-resource/mcp')
      return { body: { resource: `${url}/mcp`, authorization_servers: [resource.issuer] } };
    if (path !== '/mcp') return undefined;
    if (!issuer.valid.has((headers.authorization ?? '').replace('Bearer ', ''))) {
      const challenge = `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp", scope="read"`;
      return { status: 401, headers: { 'www-authenticate': challenge }, body: { error: 'invalid_token' } };
    }
    const { id, method } = JSON.parse(body === '' ? '{}' : body) as { id?: number; method?: string };
    const result = (value: object): Reply => ({ body: { jsonrpc: '2.0', id, result: value } });
    if (method === 'initialize')
      return result({
        ...{ protocolVersion: '2025-11-25', capabilities: { tools: {} } },
        serverInfo: { name: 'guarded', version: '1.0.0' },
      });
    if (method === 'tools/list') return result({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] });
    if (method === 'ping') return result({});
    if (method === 'tools/call')
      return resource.call?.(request) ?? result({ content: [{ type: 'text', text: 'seen' }] });
    return id === undefined
      ? { status: 202 }
      : { body: { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } } };
  });
  const resource: Resource = { url: `${url}/mcp`, seen, issuer: issuer.url, call: undefined };
  return resource;
}

/** The server of a manifest with one entry. */
export function specOf(t: TestContext, entry: object, variables: Record<string, string> = {}) {
  const path = join(temporaryFolder(t), 'agent.json');
  writeFileSync(path, JSON.stringify({ servers: [{ alias: 'wiki', transport: 'http', ...entry }] }));
  const manifest = loadManifest(path, variables);
  const spec: ServerSpec = manifest.servers[0]!;
  return { manifest, spec };
}
