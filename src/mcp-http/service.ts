/**
 * MCP over HTTP at the public listener (docs/reference/api.md, "MCP over HTTP"): the endpoints, and the OAuth resource
 * metadata of each. The first request loads the rest of the code.
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError } from '../wire/errors.ts';
import { MCP_ENDPOINTS, type McpEndpoint, mcpPath, metadataPath } from '../wire/remote-caller.ts';
import type { RemoteBackends } from './backends.ts';
import type { McpHttpConfig } from './config.ts';
import type { McpHttpEndpoint, Outcome } from './endpoint.ts';
import type { ServerExtension } from './servers.ts';

export type McpHttpOptions = {
  config: McpHttpConfig;
  /** The address by which others reach the listener, without a trailing slash. */
  publicUrl: () => string;
  /** Admits one request of a user. @returns releases its slot @throws ReveilleError `rate_limited` */
  enter: (userId: string, kind: 'streams' | 'requests') => () => void;
  /** Called by the first request. */
  open: () => Promise<{ backends: RemoteBackends; extensions?: readonly ServerExtension[]; log: Logger }>;
  clock: Clock;
};

/** Implements the router's `PublicService`. */
export type McpHttpService = {
  readonly name: 'mcp';
  owns(target: string): boolean;
  readonly bodyBytes: number;
  answer(request: Request, info: { readonly closing: AbortSignal }): Promise<Response>;
  figures(): Readonly<Record<string, number>>;
  close(): Promise<void>;
};

/** Large enough for a message and a payload of 64 KiB each with every character escaped. */
const BODY_BYTES = 1024 * 1024;

const TITLES: Readonly<Record<McpEndpoint, string>> = {
  chronos: 'Reveille: alarms',
  chronometric: 'Reveille: time and sessions',
  intents: 'Reveille: intents',
};

type Target = { readonly endpoint: McpEndpoint; readonly isMetadata: boolean };
const TARGETS: ReadonlyMap<string, Target> = new Map(
  (Object.keys(MCP_ENDPOINTS) as McpEndpoint[]).flatMap((endpoint): [string, Target][] => [
    [mcpPath(endpoint), { endpoint, isMetadata: false }],
    [metadataPath(mcpPath(endpoint)), { endpoint, isMetadata: true }],
  ]),
);
/** The address of an endpoint may end with a slash. */
const targetOf = (path: string) => TARGETS.get(path.replace(/\/$/, ''));

/** All addresses below these are of this service, so that a wrong one is not answered by another part of the listener. */
const OWN = /^(\/mcp|\/\.well-known\/oauth-protected-resource\/mcp)(\/|$)/;

const notServed = (endpoint: McpEndpoint) =>
  new ReveilleError('not_found', `${mcpPath(endpoint)} is not available at this listener`);

const noEndpoint = (path: string) => {
  const known = (Object.keys(MCP_ENDPOINTS) as McpEndpoint[]).map(mcpPath).join(', ');
  return new ReveilleError('not_found', `there is no MCP endpoint at ${path}; the endpoints are ${known}`);
};

const EXPOSED = 'WWW-Authenticate, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version';

/** The CORS headers that let a page of an accepted origin read the answer. */
function corsHeaders(origin: string, request: Request, methods: string): Record<string, string> {
  const wanted = request.headers.get('access-control-request-headers') ?? 'authorization, content-type';
  return {
    'access-control-allow-origin': origin,
    vary: 'Origin',
    'access-control-expose-headers': EXPOSED,
    ...(request.method === 'OPTIONS' && {
      'access-control-allow-methods': methods,
      'access-control-allow-headers': /^[A-Za-z0-9, -]{1,1000}$/.test(wanted) ? wanted : 'authorization, content-type',
      'access-control-max-age': '600',
    }),
  };
}

/** Whether an origin is the listener's own. `Host` was checked before, so it cannot name another site. */
function isOwn(origin: string, request: Request): boolean {
  const page = URL.parse(origin);
  return page !== null && page.origin === origin && page.host === request.headers.get('host');
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

export function createMcpHttp({ config, publicUrl, enter, open, clock }: McpHttpOptions): McpHttpService {
  const counts = new Map<Outcome, number>();
  const count = (outcome: Outcome) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const origins = new Set(config.origins);
  type Opened = {
    endpoints: ReadonlyMap<McpEndpoint, McpHttpEndpoint>;
    close(): Promise<unknown>;
  };
  let opened: Promise<Opened> | undefined;

  const load = async (): Promise<Opened> => {
    const [{ createEndpoint }, { endpointsOf, serverFactory }, { createVerifier }, { IssuerKeys }, parts] =
      await Promise.all([
        import('./endpoint.ts'),
        import('./servers.ts'),
        import('./oauth/verifier.ts'),
        import('./oauth/issuer-keys.ts'),
        open(),
      ]);
    const { backends, extensions = [], log } = parts;
    const keys = new IssuerKeys({ allow: config.allow, clock });
    const verifier = createVerifier({ issuers: config.issuers, keys, publicUrl, clock });
    const serverFor = serverFactory({ backends, extensions, log });
    const shared = { verifier, publicUrl, serverFor, extensions, enter, count, clock, log };
    const endpoints = new Map(
      endpointsOf(backends).map((endpoint) => [endpoint, createEndpoint({ endpoint, ...shared })]),
    );
    return {
      endpoints,
      close: () =>
        Promise.all([...[...endpoints.values()].map((one) => one.close()), keys.close(), backends.close?.()]),
    };
  };

  const metadataOf = (endpoint: McpEndpoint): Response =>
    Response.json(
      {
        resource: `${publicUrl()}${mcpPath(endpoint)}`,
        authorization_servers: config.issuers.map(({ issuer }) => issuer),
        scopes_supported: MCP_ENDPOINTS[endpoint],
        bearer_methods_supported: ['header'],
        resource_name: TITLES[endpoint],
      },
      { headers: { 'cache-control': 'public, max-age=300' } },
    );

  const answer = async (request: Request, closing: AbortSignal, { endpoint, isMetadata }: Target) => {
    opened ??= load();
    opened.catch(() => {
      opened = undefined;
    });
    const served = (await opened).endpoints.get(endpoint);
    if (!served) throw notServed(endpoint);
    if (!isMetadata) return served.answer(request, closing);
    // The metadata are public and contain no data of a user.
    const cors = corsHeaders('*', request, 'GET');
    if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: cors });
    if (request.method === 'GET' || request.method === 'HEAD') return withHeaders(metadataOf(endpoint), cors);
    return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } });
  };

  return {
    name: 'mcp',
    owns: (target) => OWN.test(target.split('?', 1)[0]!),
    bodyBytes: BODY_BYTES,
    async answer(request, { closing }) {
      const { pathname } = new URL(request.url);
      const target = targetOf(pathname);
      if (!target) throw noEndpoint(pathname);
      const origin = request.headers.get('origin');
      if (target.isMetadata || origin === null) return answer(request, closing, target);
      if (!isOwn(origin, request) && !origins.has(origin)) {
        count('foreign_origin');
        const why = `pages of the origin ${JSON.stringify(origin)} may not call this endpoint; the operator can add it to ROUTER_MCP_ORIGINS`;
        return Response.json({ error: 'forbidden', error_description: why }, { status: 403 });
      }
      const cors = corsHeaders(origin, request, 'POST');
      if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: cors });
      return withHeaders(await answer(request, closing, target), cors);
    },
    figures: () => Object.fromEntries(counts),
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}
