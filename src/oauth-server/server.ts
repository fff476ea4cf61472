/**
 * The authorization server of a laptop or a small team (OAuth 2.1): MCP clients get access tokens for the endpoints of
 * the same public listener. It answers requests of a listener that another program owns. Start reading here.
 */
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { WebAccess } from '../kit/http/web-access.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { GrantedToken } from '../wire/remote-caller.ts';
import { Artifacts } from './artifacts.ts';
import { type ExchangeAt, type NodeExchange, nodeExchange } from './bridge.ts';
import { guardedFetch } from './client-metadata.ts';
import type { OauthServerConfig } from './config.ts';
import { type Connection, Connections } from './connections.ts';
import { Interactions, isStillValid, methodsOf, type Persons, type Shown } from './interactions.ts';
import { OauthKeys } from './keys.ts';
import { type Context, type Library, loadLibrary, type Provider } from './library.ts';
import { type Html, noticePage, type PageLook } from './pages.ts';
import { OAUTH_PATH, WELL_KNOWN } from './paths.ts';
import { createProvider, GRANT_CLAIM, ROUTES, scopesOfResource, sessionCookie } from './provider.ts';
import { RateLimit } from './rates.ts';
import { OauthStore } from './store.ts';

export type OauthServerOptions = {
  config: OauthServerConfig;
  /** The address by which others reach the listener, without a trailing slash. */
  publicUrl: () => string;
  persons: Persons;
  look: PageLook;
  /** Whether many users share a client address, so that it has no limit of its own. */
  isShared: (remoteAddress: string) => boolean;
  clock: Clock;
  log: Logger;
  resolve?: Resolve | undefined;
};

/** The connection of a request. */
export type OauthInfo = { readonly remoteAddress: string };

export type OauthFigures = Record<'answered' | 'refused' | 'limited' | 'failed', number>;

export type OauthServer = {
  answer(request: Request, info: OauthInfo): Promise<Response>;
  /** The public keys, for the resource servers of this process. */
  publicKeys(): { readonly keys: readonly object[] };
  /** Whether a verified token was revoked since it was signed. */
  isRevoked(token: GrantedToken): boolean;
  readonly connections: Pick<Connections, 'list' | 'revoke'>;
  /** The connections of a user that have valid tokens. */
  connectionsOf(user: string): readonly Connection[];
  figures(): OauthFigures;
  close(): Promise<void>;
};

/** Routes whose paths with an appended id continue a request; all other paths outside of {@link ROUTES} are refused. */
const RESUMED = [ROUTES.authorization, ROUTES.code_verification];
const INTERACTION = /^\/interaction\/([\w-]{10,64})$/;
/** Paths with forms and cookies, only for browsers. */
const FORMS: ReadonlySet<string> = new Set([ROUTES.code_verification]);

const MINUTE = { burst: 30, perMinute: 30 };
/** Routes that write to the database for unauthenticated callers. */
const WRITING_ROUTES: ReadonlySet<string> = new Set([
  ...[ROUTES.authorization, ROUTES.device_authorization, ROUTES.registration],
]);
const NEW_REQUESTS = { ofKey: { burst: 30, perMinute: 60 }, total: { burst: 200, perMinute: 600 } };
/**
 * Clients that register themselves. One address has few of them, and all together register fewer in the 15 minutes after
 * which an unused one gives way than are stored.
 */
export const REGISTRATIONS = { ofKey: { burst: 20, perMinute: 1 / 3 }, total: { burst: 200, perMinute: 40 } };
/** Requests for the keys of clients, by their host. */
const KEYS_OF_HOST = { ofKey: { burst: 20, perMinute: 20 }, total: { burst: 120, perMinute: 600 } };
/** Fetches of client documents: the caller chooses the host. */
const DOCUMENTS = { ofKey: { burst: 10, perMinute: 20 }, total: { burst: 60, perMinute: 120 } };
/** Documents of connected clients, limited for each: requests for other documents do not end connections. */
const KNOWN_DOCUMENTS = { ofKey: { burst: 5, perMinute: 5 }, total: { burst: 200, perMinute: 600 } };
/** Typed device codes: with 20^8 possible codes, guessing takes decades at these limits. */
const DEVICE_CODES = { ofKey: { burst: 10, perMinute: 5 }, total: MINUTE };
const SIGN_INS = { ofKey: { burst: 10, perMinute: 10 }, total: { burst: 60, perMinute: 60 } };

const MEANT_FOR_HTML = /^text\/html\b/;

class Server implements OauthServer {
  readonly connections: Connections;
  readonly #options: OauthServerOptions;
  readonly #library: Library;
  readonly #store: OauthStore;
  readonly #keys: OauthKeys;
  readonly #web: WebAccess;
  readonly #artifacts: Artifacts;
  readonly #interactions: Interactions;
  readonly #limits: Readonly<
    Record<
      'newRequests' | 'registrations' | 'keysOfHost' | 'documents' | 'knownDocuments' | 'deviceCodes' | 'signIns',
      RateLimit
    >
  >;
  readonly #figures: OauthFigures = { answered: 0, refused: 0, limited: 0, failed: 0 };
  #provider: { readonly of: string; readonly provider: Provider; readonly handle: Handle } | undefined;

  constructor(options: OauthServerOptions, library: Library) {
    const { config, clock, persons, resolve } = options;
    this.#options = options;
    this.#library = library;
    this.#keys = new OauthKeys(join(config.dataDir, 'oauth-keys.json'), clock.now());
    this.#web = new WebAccess({
      ...{ clock, allow: config.allow ?? '', setting: 'ROUTER_OAUTH_ALLOW' },
      ...(resolve && { resolve }),
    });
    this.#store = new OauthStore({ dataDir: config.dataDir, clock });
    this.connections = new Connections(this.#store, clock);
    this.#artifacts = new Artifacts({
      ...{ store: this.#store, connections: this.connections, clock, secret: this.#keys.storageSecret },
      usedAlready: () => new library.errors.InvalidGrant('it was already used'),
    });
    this.#limits = {
      newRequests: new RateLimit(clock, NEW_REQUESTS),
      registrations: new RateLimit(clock, REGISTRATIONS),
      keysOfHost: new RateLimit(clock, KEYS_OF_HOST),
      documents: new RateLimit(clock, DOCUMENTS),
      knownDocuments: new RateLimit(clock, KNOWN_DOCUMENTS),
      deviceCodes: new RateLimit(clock, DEVICE_CODES),
      signIns: new RateLimit(clock, SIGN_INS),
    };
    this.#interactions = new Interactions({
      ...{ connections: this.connections, persons, base: OAUTH_PATH, secret: this.#keys.cookieSecret },
      log: options.log,
      scopesOf: (resource) => scopesOfResource(options.publicUrl(), resource),
      mayTry: (address) => this.#limits.signIns.take(this.#keyOf(address)),
    });
  }

  readonly #issuerUrl = (): string => this.#options.publicUrl() + OAUTH_PATH;

  #keyOf(remoteAddress: string): string | undefined {
    return this.#options.isShared(remoteAddress) ? undefined : remoteAddress;
  }

  async answer(request: Request, { remoteAddress }: OauthInfo): Promise<Response> {
    try {
      const response = await this.#route(request, remoteAddress);
      this.#figures[response.status < 400 ? 'answered' : response.status < 500 ? 'refused' : 'failed']++;
      return response;
    } catch (thrown) {
      const error = this.#isUnknownInteraction(thrown)
        ? new ReveilleError(
            'not_found',
            'this request has ended, or began in another browser: start again in the client',
          )
        : toReveilleError(thrown);
      this.#figures[error.code === 'rate_limited' ? 'limited' : error.status < 500 ? 'refused' : 'failed']++;
      if (error.code === 'internal')
        this.#options.log.error({ err: thrown }, 'a request to the authorization server failed');
      return this.#errorAnswer(request, error);
    }
  }

  #isUnknownInteraction(thrown: unknown): boolean {
    return thrown instanceof this.#library.errors.SessionNotFound;
  }

  async #route(request: Request, remoteAddress: string): Promise<Response> {
    const url = new URL(request.url);
    const path = pathBelow(url.pathname);
    const [, uid] = INTERACTION.exec(path) ?? [];
    if (uid !== undefined) return this.#interaction(request, { uid, remoteAddress });
    if (!this.#isKnown(path)) throw new ReveilleError('not_found', 'the authorization server has no such path');
    if (WRITING_ROUTES.has(path) && !this.#limits.newRequests.take(this.#keyOf(remoteAddress))) throw tooMany();
    if (path === ROUTES.registration && !this.#limits.registrations.take(this.#keyOf(remoteAddress))) throw tooMany();
    if (FORMS.has(path)) {
      this.#refuseOtherSites(request);
      if (request.method === 'POST' && !this.#limits.deviceCodes.take(this.#keyOf(remoteAddress))) throw tooMany();
      // With `user_code`, the library's page would submit the code by a script.
      if (request.method === 'GET' && url.searchParams.has('user_code')) {
        url.searchParams.set('code', url.searchParams.get('user_code')!);
        url.searchParams.delete('user_code');
      }
    }
    const { handle } = await this.#current();
    // A new request must not use the sign-in of an earlier one.
    const begins = request.method === 'GET' && (path === ROUTES.authorization || path === ROUTES.code_verification);
    const without = begins ? sessionCookie(this.#issuerUrl()) : undefined;
    const exchange = await this.#exchange(request, { path: path + url.search, remoteAddress, without });
    void handle(exchange.req, exchange.res);
    const response = this.#withHeaders(await exchange.answered);
    return without === undefined ? response : withoutSession(response, without);
  }

  async #interaction(
    request: Request,
    { uid, remoteAddress }: { uid: string; remoteAddress: string },
  ): Promise<Response> {
    const { provider } = await this.#current();
    const path = `/interaction/${uid}`;
    if (request.method === 'GET') {
      const exchange = await this.#exchange(request, { path, remoteAddress });
      return this.#page(await this.#interactions.show(provider, exchange, uid));
    }
    if (request.method !== 'POST') throw new ReveilleError('invalid_request', 'use GET or POST', { status: 405 });
    this.#refuseOtherSites(request);
    const form = await readForm(request.clone() as Request);
    const exchange = await this.#exchange(request, { path, remoteAddress });
    return this.#page(await this.#interactions.answer(provider, exchange, uid, { form, remoteAddress }));
  }

  #exchange(request: Request, at: Omit<ExchangeAt, 'base'>): Promise<NodeExchange> {
    return nodeExchange(request, { base: new URL(this.#issuerUrl()), ...at });
  }

  #isKnown(path: string): boolean {
    if (path === ROUTES.registration) return this.#options.config.registration;
    const own: readonly string[] = [...Object.values(ROUTES), ...WELL_KNOWN];
    if (own.includes(path)) return true;
    return RESUMED.some((route) => path.startsWith(`${route}/`) && /^[\w-]{10,64}$/.test(path.slice(route.length + 1)));
  }

  /** Refuses a form from a page of another site. */
  #refuseOtherSites({ method, headers }: Request): void {
    if (method !== 'POST') return;
    const site = headers.get('sec-fetch-site');
    const isOwn = headers.get('origin') === new URL(this.#issuerUrl()).origin;
    if (isOwn && (site === null || site === 'same-origin')) return;
    throw new ReveilleError('forbidden', 'this form must be sent from its own page');
  }

  /** Client documents that are about to be fetched. Their limits are checked before. */
  readonly #documents = new Set<string>();

  #mayFetch(clientId: string, address: string): boolean {
    const { knownDocuments, documents } = this.#limits;
    const isKnown = this.connections.isConnected(clientId);
    const may = isKnown ? knownDocuments.take(clientId) : documents.take(this.#keyOf(address));
    if (may) this.#documents.add(clientId);
    return may;
  }

  /** The `fetch` of the library: client documents, and the keys at `jwks_uri`, which any request for a token can cause. */
  readonly #fetch = async (url: string | URL): Promise<Response> => {
    if (!this.#documents.delete(String(url)) && !this.#limits.keysOfHost.take(new URL(url).host)) throw tooMany();
    return guardedFetch(this.#web)(url);
  };

  /** The library's server for the current address and keys. */
  async #current(): Promise<{ provider: Provider; handle: Handle }> {
    const { config, clock, persons, log } = this.#options;
    const issuer = this.#issuerUrl();
    const keys = this.#keys.at(clock.now());
    const of = [issuer, ...keys.map(({ jwk }) => jwk.kid)].join(' ');
    if (this.#provider?.of === of) return this.#provider;
    const provider = createProvider({
      ...{ library: this.#library, issuer, keys, cookieSecret: this.#keys.cookieSecret },
      ...{ artifacts: this.#artifacts, connections: this.connections, persons },
      ...{ registration: config.registration, fetch: this.#fetch },
      mayFetch: (clientId, address) => this.#mayFetch(clientId, address),
      page: async (ctx, title, main) => this.#inLibrary(ctx, title, main),
    });
    provider.on('server_error', (_ctx, err) => {
      const { code, message } = toReveilleError(err);
      if (code === 'internal') log.error({ err }, 'a request to the authorization server failed');
      else log.warn({ reason: message }, 'a request to the authorization server was refused');
    });
    provider.on('error', (err) => log.error({ err }, 'the authorization server failed'));
    this.#provider = { of, provider, handle: provider.callback() };
    return this.#provider;
  }

  async #inLibrary(ctx: Context, title: string, main: Html): Promise<void> {
    ctx.type = 'html';
    ctx.body = String(await this.#options.look.page(title, main));
  }

  /** Pages get the console's headers. Answers for programs do not. */
  #withHeaders(response: Response): Response {
    if (!MEANT_FOR_HTML.test(response.headers.get('content-type') ?? '')) return response;
    for (const [name, value] of Object.entries(this.#options.look.headers)) response.headers.set(name, value);
    return response;
  }

  async #page({ title, main, status = 200, leadsTo }: Shown): Promise<Response> {
    const { look } = this.#options;
    const headers = { ...look.headers, 'content-type': 'text/html; charset=utf-8' };
    return new Response(String(await look.page(title, main, leadsTo)), { status, headers });
  }

  async #errorAnswer(request: Request, error: ReveilleError): Promise<Response> {
    const { message, status, retryAfterSeconds } = error;
    const text = error.code === 'internal' ? 'The server failed. Try again later.' : message;
    const retry = retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
    if (request.headers.get('accept')?.includes('text/html')) {
      const page = await this.#page({ title: 'Error', main: noticePage('This does not work', text, 'bad'), status });
      for (const [name, value] of Object.entries(retry)) page.headers.set(name, value);
      return page;
    }
    const code = status < 500 ? 'invalid_request' : 'server_error';
    return Response.json(
      { error: status === 429 ? 'temporarily_unavailable' : code, error_description: text },
      {
        status,
        headers: { ...retry, 'cache-control': 'no-store' },
      },
    );
  }

  publicKeys(): { readonly keys: readonly object[] } {
    return this.#keys.published(this.#options.clock.now());
  }

  isRevoked({ claims, subject, clientId }: GrantedToken): boolean {
    const id = claims[GRANT_CLAIM];
    const connection = typeof id === 'string' ? this.connections.get(id) : undefined;
    const isOwn = connection?.user === subject && connection.clientId === clientId;
    return !isOwn || !isStillValid(methodsOf(connection), this.#options.persons);
  }

  connectionsOf(user: string): readonly Connection[] {
    return this.connections.list(user).filter((one) => isStillValid(methodsOf(one), this.#options.persons));
  }

  readonly figures = (): OauthFigures => ({ ...this.#figures });

  async close(): Promise<void> {
    await this.#web.close();
    await this.#store.close();
  }
}

type Handle = ReturnType<Provider['callback']>;

/** The path below the server. Metadata addresses have the server's path at their end (RFC 8414 §3.1). */
function pathBelow(pathname: string): string {
  const known = WELL_KNOWN.find((path) => pathname === path + OAUTH_PATH);
  return known ?? pathname.slice(OAUTH_PATH.length);
}

/** Ends the session of an earlier request in the browser, unless the answer begins another one. */
function withoutSession(response: Response, cookie: string): Response {
  if (response.headers.getSetCookie().some((line) => line.startsWith(`${cookie}=`))) return response;
  const secure = cookie.startsWith('__Secure-') ? '; Secure' : '';
  for (const name of [cookie, `${cookie}.sig`])
    response.headers.append('set-cookie', `${name}=; Path=${OAUTH_PATH}; Max-Age=0; HttpOnly; SameSite=Lax${secure}`);
  return response;
}

const tooMany = () => new ReveilleError('rate_limited', 'too many requests; wait a minute', { retryAfterSeconds: 60 });

/** @throws ReveilleError `invalid_request` for a body of another type */
async function readForm(request: Request): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get('content-type') ?? ''))
    throw new ReveilleError('invalid_request', 'content-type must be application/x-www-form-urlencoded');
  return new URLSearchParams(await request.text());
}

/**
 * Creates the server.
 *
 * @throws ReveilleError `unavailable` without its library or its database, and as `OauthKeys`
 */
export async function createOauthServer(options: OauthServerOptions): Promise<OauthServer> {
  return new Server(options, await loadLibrary(options.config.home));
}
