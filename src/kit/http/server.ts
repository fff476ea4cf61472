/**
 * The HTTP server of every daemon: Hono for the routes, and the checks and limits that an open port needs. A daemon
 * adds its routes; everything else is set here.
 */
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createSocketServer, isIPv6 } from 'node:net';
import { getRequestListener, RequestError } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { PROBES } from '../../wire/route.ts';
import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import { BodyReader, checkContentType, type UnprovedLimits } from './body.ts';
import { followCertificate, readCertificate } from './certificate.ts';
import { type ConnectionFigures, type ConnectionLimits, type Connections, trackConnections } from './connections.ts';
import {
  failureParts,
  type HttpApp,
  type HttpBindings,
  type HttpContext,
  type HttpEnv,
  sendError,
  sendOk,
  serve,
} from './handlers.ts';
import type { ListenerSettings } from './listener-settings.ts';
import { bracketed, hostCheck, originCheck } from './origin.ts';
import { answerClientError, refuseMethod, refuseOnSocket } from './outside-routes.ts';
import { WrongTokens } from './wrong-tokens.ts';

/** Whether the daemon is ready; `reasons` are sentences for the operator. */
export type ReadyReport = { ready: boolean; reasons?: readonly string[] };

/** Limits on a client's use of the server. */
export type HttpLimits = ConnectionLimits &
  UnprovedLimits & {
    bodyBytes: number;
    /** All header lines of a request together. */
    headerBytes: number;
    /** From the first byte of a request to the end of its headers. */
    headersMs: number;
    /** From the first byte of a request to the end of its body. */
    requestMs: number;
    /** How long an idle connection is kept. */
    keepAliveMs: number;
  };

const DEFAULT_LIMITS: HttpLimits = {
  bodyBytes: 256 * 1024,
  headerBytes: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  unprovedBytes: 16 * 1024 * 1024,
  unprovedMs: 10_000,
  keepAliveMs: 60_000,
  connections: 4096,
  connectionsPerAddress: 1024,
  pipelined: 32,
  lingerMs: 1000,
  stallMs: 30_000,
};

export type ServerOptions = {
  /** The daemon's name, in `GET /` and log lines. */
  name: string;
  version: string;
  /** An address or name to bind. */
  host: string;
  /** 0 lets the operating system choose a port. */
  port: number;
  /** Adds the daemon's routes. `/`, `/healthz` and `/readyz` are reserved. */
  routes: (app: HttpApp) => void;
  log: Logger;
  clock: Clock;
  /** State for `/readyz`. Without it, a daemon is ready until it drains. */
  ready?: () => ReadyReport | Promise<ReadyReport>;
  /** Members that `/healthz` adds to `{"status":"ok"}`. */
  health?: () => object;
  /** Accepted `Host` values besides loopback names and `host`: a name, or a name with a port. */
  allowedHosts?: readonly string[];
  /** Accepted `Origin` values, such as `http://localhost:3000`. Default: none. */
  allowedOrigins?: readonly string[];
  /** How long `close` waits for requests in flight. Default 10 seconds. */
  drainMs?: number;
  limits?: Partial<HttpLimits>;
  /** The listener's settings. With a certificate it speaks only HTTPS. */
  listener?: ListenerSettings | undefined;
  /** Refuses requests by their head. */
  guard?: ((c: HttpContext) => void | Promise<void>) | undefined;
  /**
   * Whether a target takes requests of any program that has its address: with any content type, and from any origin.
   * The address may be a secret, so that the log has only its first segment.
   */
  isOpen?: ((target: string) => boolean) | undefined;
  /** Answers requests that match no route or probe. `/` belongs to it if it owns that. */
  fallback?: Fallback | undefined;
  /** Whether browsers also reach it by the name `localhost`: a server at 127.0.0.1 then listens on [::1] as well. */
  byName?: boolean;
};

/** A second app on the same listener: pages beside the routes of an API. */
export type Fallback = {
  /**
   * Whether it handles requests with this target (unparsed path and query). Its content type and origin checks are its
   * own.
   */
  owns(target: string): boolean;
  /** Maximum size of a request body. */
  bodyBytes(target: string): number;
  /** @param read reads the body within the limit; `request` is the one that the app marks when its sender is proved */
  answer(c: HttpContext, read: (request: object) => Promise<Buffer>): Promise<Response>;
};

/** Counters of a server's listener, for its metrics. */
export type ListenerFigures = ConnectionFigures & {
  /** Since the start. */
  wrongTokens: number;
  /** Bytes of bodies whose senders have not proved a credential. */
  unprovedBytes: number;
};

export type RunningServer = {
  readonly port: number;
  /** Base URL on this machine, without a trailing slash. */
  readonly url: string;
  /** The base URL with the name `localhost`, if requested and if no other program can have that name. */
  readonly localhost: string | undefined;
  /** The routes, with `{name}` for parameters in paths. */
  readonly routes: readonly { readonly method: string; readonly path: string }[];
  figures(): ListenerFigures;
  /**
   * Drains: accepts no new requests, `/readyz` returns 503, requests in flight finish (at most `drainMs`), idle
   * connections are closed, then all others. Resolves after the last connection is closed. Later calls return the same
   * promise.
   */
  close(): Promise<void>;
};

/**
 * Starts a server and resolves when it accepts connections.
 *
 * @throws ReveilleError `unavailable` if the address cannot be bound, `invalid_request` for an unusable certificate
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { tls, ...bounds } = options.listener ?? { tls: undefined };
  const limits = { ...DEFAULT_LIMITS, ...bounds, ...options.limits };
  const draining = new AbortController();
  const bodies = new BodyReader(limits, options.clock);
  const app = buildApp(options, bodies, draining.signal);
  const wrongTokens = new WrongTokens(options.clock, options.log);
  const listener = getRequestListener(
    (request, env) => {
      // The server speaks HTTP/1.1 only.
      const node = env as Pick<HttpBindings, 'incoming' | 'outgoing'>;
      const readBody = () => bodies.read(node, limits.bodyBytes);
      return app.fetch(request, { ...node, draining: draining.signal, wrongTokens, readBody }) as Promise<Response>;
    },
    { errorHandler: (thrown) => answerOutsideRoutes(thrown, options.log) },
  );
  const { server, stopFollowing } = createListener(options, limits, (incoming, outgoing) => {
    setFixedHeaders(outgoing, draining.signal.aborted);
    if (refuseMethod(incoming, outgoing, app.routes)) return;
    void listener(incoming, outgoing);
  });
  const connections = trackConnections(server, limits);
  server.on('connect', ({ url = '' }, socket) => refuseOnSocket(socket, 'CONNECT', url, app.routes));
  server.on('clientError', (cause: NodeJS.ErrnoException, socket) => {
    if (cause.code === 'ERR_HTTP_REQUEST_TIMEOUT') connections.overdue();
    answerClientError(cause, socket, { isAnswering: connections.isAnswering(socket), routes: app.routes });
  });
  try {
    await listen(server, options);
  } catch (error) {
    stopFollowing();
    throw error;
  }
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  const scheme = tls ? 'https' : 'http';
  const other = options.byName && options.host === '127.0.0.1' ? await takeSecondLoopback(server, port) : undefined;
  let closed: Promise<void> | undefined;
  return {
    port,
    url: `${scheme}://${reachableHost(options.host)}:${port}`,
    localhost: other?.isOurs ? `${scheme}://localhost:${port}` : undefined,
    routes: app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => ({ method: method.toLowerCase(), path: path.replace(/:(\w+)/g, '{$1}') })),
    figures: () => ({
      ...connections.figures(),
      wrongTokens: wrongTokens.total,
      unprovedBytes: bodies.unprovedBytes,
    }),
    close() {
      closed ??= Promise.all([other?.close(), drain(server, connections, draining, options)]).then(() => {});
      wrongTokens.close();
      stopFollowing();
      return closed;
    },
  };
}

/** A server that does not listen yet, with or without TLS. */
function createListener(
  { listener, clock, log }: ServerOptions,
  limits: HttpLimits,
  onRequest: RequestListener,
): { server: Server; stopFollowing: () => void } {
  const bounds = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    // Node checks for overdue requests at this interval.
    connectionsCheckingInterval: Math.max(20, Math.min(1000, limits.headersMs / 2)),
  };
  const tls = listener?.tls;
  if (!tls) return { server: createServer(bounds, onRequest), stopFollowing: () => {} };
  const pair = readCertificate(tls);
  const server = createTlsServer({ ...bounds, ...pair, handshakeTimeout: limits.headersMs }, onRequest);
  return { server, stopFollowing: followCertificate(server, tls, pair, { clock, log }) };
}

function buildApp(options: ServerOptions, bodies: BodyReader, draining: AbortSignal): HttpApp {
  const app: HttpApp = new Hono<HttpEnv>();
  const checkHost = hostCheck(options.host, options.allowedHosts ?? []);
  const checkOrigin = originCheck(options.allowedOrigins ?? []);
  const probes = new Set(['/healthz', '/readyz']);
  const { fallback } = options;
  const isOpen = ({ env: { incoming } }: HttpContext) => options.isOpen?.(incoming.url ?? '') === true;
  const shownPath = (c: HttpContext) => (isOpen(c) ? `${c.req.path.split('/', 2).join('/')}/…` : c.req.path);

  app.onError((thrown, c) => {
    const error = toReveilleError(thrown);
    const where = { method: c.req.method, path: shownPath(c), status: error.status };
    if (error.code === 'internal') options.log.error({ ...where, err: thrown }, 'request failed');
    else if (error.status >= 500) options.log.warn({ ...where, reason: error.message }, 'request not executed');
    else options.log.debug({ ...where, code: error.code, reason: error.message }, 'request refused');
    const { incoming, outgoing } = c.env;
    if (outgoing.headersSent) {
      // The answer had begun, such as an event stream. Only a broken connection signals the error to the reader.
      outgoing.destroy();
      return RESPONSE_ALREADY_SENT;
    }
    // The adapter reads more of an unread body for half a second and then closes, so that the sender can read this
    // answer. It does not do so for GET and HEAD, so their connections are closed here.
    if (!incoming.complete && (incoming.method === 'GET' || incoming.method === 'HEAD'))
      outgoing.setHeader('connection', 'close');
    return sendError(c, error);
  });
  app.notFound((c) => {
    const target = c.env.incoming.url ?? '';
    if (fallback?.owns(target))
      return fallback.answer(c, (request) => bodies.read(c.env, fallback.bodyBytes(target), request));
    throw new ReveilleError(
      'not_found',
      `${c.req.method} ${shownPath(c).slice(0, 200)} is not a route of ${options.name}`,
    );
  });
  app.use(async (c, next) => {
    const { incoming } = c.env;
    const takesAny = fallback?.owns(incoming.url ?? '') === true || isOpen(c);
    checkHost(c.req.header('host'));
    if (!takesAny) checkOrigin(c.req.header('origin'));
    if (draining.aborted && !probes.has(c.req.path)) {
      throw new ReveilleError('unavailable', `${options.name} is shutting down`, { retryAfterSeconds: 1 });
    }
    await options.guard?.(c);
    if (!takesAny) checkContentType(incoming);
    await next();
  });
  if (!fallback?.owns('/')) serve(app, PROBES.root, (c) => sendOk(c, { name: options.name, version: options.version }));
  serve(app, PROBES.health, (c) => sendOk(c, { status: 'ok', ...options.health?.() }));
  serve(app, PROBES.ready, async (c) => {
    const report = (await options.ready?.()) ?? { ready: true };
    if (draining.aborted) throw new ReveilleError('unavailable', `${options.name} is not ready: it is shutting down`);
    if (report.ready) return sendOk(c, { status: 'ready' });
    const reasons = report.reasons?.length ? report.reasons.join('; ') : 'no reason given';
    throw new ReveilleError('unavailable', `${options.name} is not ready: ${reasons}`);
  });
  options.routes(app);
  return app;
}

function setFixedHeaders(outgoing: ServerResponse, last: boolean): void {
  outgoing.setHeader('cache-control', 'no-store');
  outgoing.setHeader('x-content-type-options', 'nosniff');
  if (last) outgoing.setHeader('connection', 'close');
}

/**
 * Answers a request that did not reach the routes (target and `Host` form no URL), or whose handler threw something
 * other than an Error.
 */
function answerOutsideRoutes(thrown: unknown, log: Logger): Response {
  let error: ReveilleError;
  if (thrown instanceof RequestError) {
    error = new ReveilleError('invalid_request', 'the request target and the Host header must form a URL');
  } else {
    error = toReveilleError(thrown);
    log.error({ err: thrown }, 'request failed');
  }
  const { headers, text } = failureParts(error);
  return new Response(text, { status: error.status, headers });
}

function listen(server: Server, { name, host, port }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'EADDRINUSE'
          ? 'another program listens there; stop it or choose another port'
          : `${cause.message}; choose another address`;
      reject(
        new ReveilleError('unavailable', `${name} cannot listen on ${bracketed(host)}:${port}: ${why}`, {
          // Identifies the listener of a daemon with several.
          cause: Object.assign(cause, { listener: name }),
        }),
      );
    };
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

/** The loopback address of a wildcard address; other hosts unchanged. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (isIPv6(host) && /^[0:]+$/.test(host)) return '[::1]';
  return bracketed(host);
}

async function drain(
  server: Server,
  connections: Connections,
  draining: AbortController,
  { clock, drainMs = 10_000, log }: ServerOptions,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.closeIdle();
  draining.abort();
  const cancel = clock.after(drainMs, () => {
    log.warn(
      { connections: connections.figures().open },
      'requests were still in flight at the end of the drain; closing them',
    );
    connections.destroyAll();
  });
  await closed;
  cancel();
}

type SecondLoopback = {
  /** Whether no other program can have the name at this port. */
  readonly isOurs: boolean;
  /** Accepts no more connections; resolves after its own connections are closed. */
  close(): Promise<void>;
};

/** Error codes of a system without IPv6. */
const NO_IPV6 = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']);

/**
 * Listens on [::1] for a server on 127.0.0.1, and passes the connections to it. Never rejects: if another program has
 * the address, the server continues without it.
 *
 * The name `localhost` is 127.0.0.1 or [::1], and a browser may try either. A program on the other address of a port
 * has the same name, with all that a browser stores for it (RFC 6761 §6.3). A server that people reach by that name
 * therefore takes both.
 *
 * @param port the server's port
 */
function takeSecondLoopback(server: Server, port: number): Promise<SecondLoopback> {
  const other = createSocketServer((socket) => void server.emit('connection', socket));
  return new Promise((resolve) => {
    other.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
      resolve({ isOurs: NO_IPV6.has(code), close: () => Promise.resolve() }),
    );
    other.listen({ port, host: '::1', ipv6Only: true }, () =>
      resolve({
        isOurs: true,
        close: () => new Promise((closed) => void other.close(() => closed())),
      }),
    );
  });
}
