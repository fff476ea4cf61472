/**
 * The public listener: users on the way to their machine. It accepts the daemon's own routes with a user's credential,
 * and passes every other path to the given pages. It has no route of the internal listener.
 */
import { bearerOf, refuseBearer } from '../../kit/http/bearer.ts';
import { hasBody, markProved, readJson } from '../../kit/http/body.ts';
import { addressOf, isLoopback } from '../../kit/http/connections.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { type Fallback, type ReadyReport, type RunningServer, startServer } from '../../kit/http/server.ts';
import { rightsOf } from '../../kit/identity/person-rights.ts';
import { FEED_ROUTE, isFeed } from '../../wire/calendar-feed.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HOOK_ROUTES, isHook } from '../../wire/hook.ts';
import { consoleCodeRequestSchema } from '../../wire/person.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { RouterConfig } from '../config.ts';
import type { StateSignal } from '../machines/state-signal.ts';
import { agentTransport } from './agent-transport.ts';
import { CODE_SECONDS, type ConsoleRows } from './console-rows.ts';
import { createEndings, type EndClient, type Endings } from './endings.ts';
import { type HookForwarding, passFeedOn, passHookOn } from './hooks.ts';
import { Lockouts } from './lockout.ts';
import type { Person, PersonTokens } from './person-tokens.ts';
import { ProxyConnections, type ProxyOptions } from './proxy-connections.ts';
import { CONSOLE_CODE, checkTarget, isForPages, matchRoute, PROXIED_ROUTES, type RouteMatch } from './routes.ts';
import { Shares } from './shares.ts';
import { createUsers, holdersOf, type Users } from './users.ts';

/** The client of a page request. */
export type PageInfo = {
  /** An IPv4 address, or the network of an IPv6 one. */
  readonly remoteAddress: string;
  /** Aborts when the listener closes, so that streams end. */
  readonly closing: AbortSignal;
};

/**
 * Answers every path that is not a route of the daemon. `Host` was checked, `Origin` was not; the body is at most 64
 * KiB, and arrives when it is read. `markProved` is called with the request once its sender is known. The request's
 * signal aborts when the reader disconnects.
 */
export type Pages = (request: Request, info: PageInfo) => Promise<Response>;

export type PagesOf = (users: Users) => Pages;

/** Programs that reach the listener with credentials of their own, at paths that no route has. */
export type PublicService = {
  /** In the metrics. */
  readonly name: string;
  /** Whether it answers requests with this target (unparsed path and query). It must be cheap. */
  owns(target: string): boolean;
  /** Maximum size of its request bodies. */
  readonly bodyBytes: number;
  readonly answer: Pages;
  /** Counts of requests since the start, by outcome. */
  figures(): Readonly<Record<string, number>>;
  /** Ends what a client has set. */
  readonly endClient?: EndClient;
  /** Ends the connections that a user made with a personal token. @returns the clients that have none left */
  disconnect?(userId: string, credential: string): Promise<readonly string[]>;
  /** Ends open answers. */
  close(): Promise<void>;
};

/** The parts of the listener that services use. */
export type ServiceParts = {
  /** The address by which others reach the listener, without a trailing slash; only while it listens. */
  readonly publicUrl: () => string;
  /** Admits one request of a user. @returns ends it @throws ReveilleError `rate_limited` */
  readonly enter: Shares['enter'];
  /** Personal tokens, and the agents of users. */
  readonly users: Users;
  /** What ends with the access of a program. */
  readonly endings: () => Endings;
  /** Whether any number of users share an address. */
  readonly isShared: (remoteAddress: string) => boolean;
};

export type ServicesOf = (parts: ServiceParts) => readonly PublicService[];

export type PublicListenerOptions = ProxyOptions & {
  config: RouterConfig['public'];
  tokens: PersonTokens;
  version: string;
  /** Creates the handler of the other paths from the given parts of the router. */
  pagesOf: PagesOf | undefined;
  /** Creates the services, which come before the pages. */
  servicesOf: ServicesOf | undefined;
  /** Ends the alarms of a client at chronosd; without it there are none. */
  endAlarms: EndClient | undefined;
  machineOf: Users['machineOf'];
  states: StateSignal;
  rows: ConsoleRows;
  ready: () => ReadyReport;
  drainMs: number;
  hooks: HookForwarding;
};

export type PublicFigures = {
  /** Requests with a token that is not a valid credential. */
  unauthorized: number;
  /** Requests that were locked out. */
  locked: number;
  /** Requests beyond a user's share. */
  overShare: number;
  /** Requests with an ambiguous target, or for another protocol. */
  malformed: number;
  /** Requests for which the machine did not start or did not answer. */
  notProxied: number;
  proxied: number;
  /** Open streams. */
  streams: number;
  /** Requests of each service, by outcome. */
  services: Readonly<Record<string, Readonly<Record<string, number>>>>;
};

export type PublicListener = Pick<RunningServer, 'url' | 'localhost' | 'port' | 'routes' | 'close'> & {
  readonly endings: Endings;
  figures(): PublicFigures & { listener: ReturnType<RunningServer['figures']> };
};

const NEEDS_CREDENTIAL = 'this needs "Authorization: Bearer <token>" with a valid credential of a user';
const PAGE_BODY_BYTES = 64 * 1024;
/** How often the credentials of open streams are checked again, milliseconds. */
const RECHECK_MS = 2000;

/** The facts about a request before its body was read. Without a matched route the router answers it. */
type Entry = { person: Person; match: RouteMatch | undefined; rights: string | undefined };

/** @throws ReveilleError as `startServer` */
export async function startPublicListener(options: PublicListenerOptions): Promise<PublicListener> {
  const { config, tokens, version, pagesOf, rows, clock, log, ready, drainMs, hooks } = options;
  const counts = { unauthorized: 0, malformed: 0, notProxied: 0, proxied: 0 };
  const proxies = new ProxyConnections(options);
  // Behind a proxy, all requests have the proxy's address.
  const isShared = (address: string) => config.isBehindProxy || isLoopback(address);
  const lockouts = new Lockouts(clock, isShared);
  const shares = new Shares(clock, config.shares);
  const entries = new WeakMap<object, Entry>();
  const streams = new Streams();
  const transports = { proxies, shares };
  const holderOf = holdersOf(tokens, lockouts, () => counts.unauthorized++);
  const users = createUsers({
    ...{ tokens, holderOf, rows, machineOf: options.machineOf, states: options.states },
    connectionsTo: (userId) => agentTransport(userId, transports),
  });
  const pages = pagesOf?.(users);

  let ownUrl = '';
  const enter: Shares['enter'] = (userId, kind) => shares.enter(userId, kind);
  const parts = { publicUrl: () => config.url ?? ownUrl, enter, users, endings: () => endings, isShared };
  const services = options.servicesOf?.(parts) ?? [];
  const { endAlarms } = options;
  const endings = createEndings({
    parts: [
      ...(endAlarms ? [{ what: 'its alarms', end: endAlarms }] : []),
      ...services.flatMap(({ name, endClient: end }) => (end ? [{ what: `its part of ${name}`, end }] : [])),
    ],
    disconnect: services.flatMap((service) => service.disconnect?.bind(service) ?? []),
    log,
  });
  const serviceAt = (target: string) => services.find((service) => service.owns(target));
  const isOutside = (target: string) => isForPages(target) || serviceAt(target) !== undefined;

  const authenticate = async (c: HttpContext): Promise<Person> => {
    const given = bearerOf(c.req.header('authorization')) ?? '';
    if (given === '') counts.unauthorized++;
    const person = given === '' ? undefined : holderOf(given, addressOf(c.env.incoming.socket));
    if (person) {
      markProved(c.env.incoming);
      return person;
    }
    throw await refuseBearer(c, NEEDS_CREDENTIAL);
  };

  const checkRequest = async (c: HttpContext): Promise<void> => {
    const { incoming } = c.env;
    const target = incoming.url ?? '';
    try {
      checkTarget(target);
      refuseUpgrade(c);
    } catch (thrown) {
      counts.malformed++;
      throw thrown;
    }
    if (isOutside(target) || isProbe(target) || isForChronosd(target)) return;
    const person = await authenticate(c);
    const isForCode = config.console !== undefined && matchRoute({ CONSOLE_CODE }, incoming.method ?? '', target);
    const match = matchRoute(PROXIED_ROUTES, incoming.method ?? '', target);
    const rights = isForCode ? rightsOf(bearerOf(c.req.header('authorization'))!) : undefined;
    if (match || isForCode) entries.set(incoming, { person, match, rights });
    else throw new ReveilleError('not_found', 'the public listener has no such route');
  };

  const proxy = async (c: HttpContext): Promise<Response> => {
    const { incoming } = c.env;
    const { person, match } = entries.get(incoming) ?? {};
    if (!person || !match) throw new ReveilleError('not_found', 'the public listener has no such route');
    const isStream = match.route === PROXIED_ROUTES.events;
    const leave = shares.enter(person.userId, isStream ? 'streams' : 'requests');
    const revoked = new AbortController();
    const forget = isStream ? streams.add({ person, revoked }) : () => {};
    try {
      const response = await proxies.pass(c, person, match, revoked.signal);
      counts.proxied++;
      return response;
    } catch (thrown) {
      counts.notProxied++;
      throw thrown;
    } finally {
      forget();
      leave();
    }
  };

  const createCode = async (c: HttpContext): Promise<Response> => {
    const { person, rights } = entries.get(c.env.incoming) ?? {};
    if (!person || rights === undefined)
      throw new ReveilleError(
        'not_found',
        'this router has no console; its operator turns it on with ROUTER_CONSOLE=1',
      );
    const leave = shares.enter(person.userId, 'requests');
    try {
      const { zone } = parseOrThrow(consoleCodeRequestSchema, await readJson(c));
      const code = await rows.issue({ user: person.userId, credential: person.tokenId, rights, zone });
      return sendOk(c, { code, expires_in: CODE_SECONDS });
    } finally {
      leave();
    }
  };

  const server = await startServer({
    name: 'router-public',
    version,
    ...{ host: config.host, port: config.port, listener: config.listener, allowedHosts: config.allowedHosts },
    ...{ log, clock, ready, drainMs, guard: checkRequest, byName: pages !== undefined, isOpen: isForChronosd },
    fallback: pages || services.length > 0 ? fallbackOf({ pages, serviceAt, isTls: config.isTls }) : undefined,
    routes(app) {
      addRoutes(app, proxy);
      serve(app, CONSOLE_CODE, (c) => createCode(c as HttpContext));
      serve(app, FEED_ROUTE, (c) => passFeedOn(c as HttpContext, hooks));
      for (const route of Object.values(HOOK_ROUTES)) serve(app, route, (c) => passHookOn(c as HttpContext, hooks));
    },
  });
  ownUrl = server.url;
  const revocationCheck = setInterval(() => streams.endRevoked((person) => tokens.isValid(person)), RECHECK_MS).unref();
  return {
    ...{ url: server.url, localhost: server.localhost, port: server.port, routes: server.routes, endings },
    figures: () => ({
      ...counts,
      ...{ locked: lockouts.refused, overShare: shares.refused, streams: shares.streams },
      services: Object.fromEntries(services.map((service) => [service.name, service.figures()])),
      listener: server.figures(),
    }),
    async close() {
      clearInterval(revocationCheck);
      proxies.close();
      await Promise.all([...services.map((service) => service.close()), server.close()]);
    },
  };
}

/** Open streams of events by credential. */
class Streams {
  readonly #open = new Set<{ person: Person; revoked: AbortController }>();

  /** @returns removes it */
  add(stream: { person: Person; revoked: AbortController }): () => void {
    this.#open.add(stream);
    return () => void this.#open.delete(stream);
  }

  endRevoked(isValid: (person: Person) => boolean): void {
    for (const { person, revoked } of this.#open) if (!isValid(person)) revoked.abort();
  }
}

/** Whether chronosd answers, by the secret in the address or a signature. */
const isForChronosd = (target: string) => isHook(target) || isFeed(target);

const isProbe = (target: string) => target === '/healthz' || target === '/readyz';

function refuseUpgrade(c: HttpContext): void {
  if (c.req.header('upgrade') === undefined) return;
  throw new ReveilleError('invalid_request', 'this listener speaks HTTP/1.1 and supports no upgrade');
}

function addRoutes(app: HttpApp, proxy: (c: HttpContext) => Promise<Response>): void {
  for (const route of Object.values(PROXIED_ROUTES)) serve(app, route, (c) => proxy(c as HttpContext));
}

type FallbackParts = {
  pages: Pages | undefined;
  serviceAt: (target: string) => PublicService | undefined;
  isTls: boolean;
};

/** The services, then the pages if there are any. */
function fallbackOf({ pages, serviceAt, isTls }: FallbackParts): Fallback {
  return {
    owns: (target) => serviceAt(target) !== undefined || (pages !== undefined && isForPages(target)),
    bodyBytes: (target) => serviceAt(target)?.bodyBytes ?? PAGE_BODY_BYTES,
    answer(c, read) {
      const { incoming, outgoing, draining } = c.env;
      const { method = 'GET', url = '/', headers } = incoming;
      const answer = serviceAt(url)?.answer ?? pages!;
      const gone = new AbortController();
      const given = Object.entries(headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((one): [string, string] => [name, one]),
      );
      // Pulled when a reader waits for it, which is after the head was checked.
      const body = new ReadableStream<Uint8Array>(
        {
          async pull(stream) {
            const bytes = await read(request);
            if (bytes.length > 0) stream.enqueue(new Uint8Array(bytes));
            stream.close();
          },
        },
        { highWaterMark: 0 },
      );
      const takesBody = method !== 'GET' && method !== 'HEAD' && hasBody(incoming);
      const request: Request = new Request(`${isTls ? 'https' : 'http'}://${headers.host}${url}`, {
        ...{ method, headers: given, signal: gone.signal },
        ...(takesBody && { body, duplex: 'half' }),
      });
      // The signal of a request aborts only while the request exists. An open answer may have kept only the signal.
      outgoing.once('close', () => {
        if (!request.signal.aborted) gone.abort();
      });
      return answer(request, { remoteAddress: addressOf(incoming.socket), closing: draining });
    },
  };
}
