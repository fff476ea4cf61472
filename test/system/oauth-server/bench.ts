/** A router with the authorization server, clients with documents at an https server, and browsers with cookies. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { loadAssets, outsidePage } from '../../../src/console/page.ts';
import { HEADERS } from '../../../src/console/request-guard.ts';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { trustAuthorities } from '../../../src/kit/http/certificate.ts';
import type { Resolve } from '../../../src/kit/http/guarded-lookup.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { OauthServerConfig } from '../../../src/oauth-server/config.ts';
import type { SignedIn } from '../../../src/oauth-server/interactions.ts';
import { isOfOauthServer } from '../../../src/oauth-server/paths.ts';
import { createOauthServer, type OauthServer, type OauthServerOptions } from '../../../src/oauth-server/server.ts';
import type { ServiceParts } from '../../../src/router/public/listener.ts';
import { ADMIN_TOKEN, type Bench, startBench } from '../../../src/router/testing/bench.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';

/** Limits do not refill, however long a test takes. */
const UNHURRIED: Clock = { ...systemClock, monotonic: () => 0 };

/** Of most clients here. */
export const REDIRECT = 'https://app.example.com/callback';

/** How the server of a client's documents answers. */
export type Document = object | ((request: IncomingMessage, response: ServerResponse) => void);

/** The https server of clients: `https://localhost:PORT/NAME`. */
export async function startDocuments(t: Owner) {
  const authority = await makeAuthority(temporaryFolder(t), 'clients');
  trustAuthorities(authority.file);
  const { certificate, key } = await authority.issue();
  const documents = new Map<string, Document>();
  let requests = 0;
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
    requests++;
    const found = documents.get(request.url ?? '');
    if (typeof found === 'function') return found(request, response);
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const host = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    host,
    /** The file of the authority behind its certificate. */
    authority: authority.file,
    requests: () => requests,
    /** @returns the client id */
    put(path: string, document: Document): string {
      documents.set(path, document);
      return `https://${host}${path}`;
    },
    /** A client as most are: its document has its own address as id. */
    client(path: string, more: object = {}): string {
      const client_id = `https://${host}${path}`;
      const redirect_uris = [REDIRECT];
      documents.set(path, { client_id, client_name: 'Test Client', redirect_uris, ...more });
      return client_id;
    },
  };
}

export type Cookie = { readonly name: string; readonly value: string; readonly path: string };

export type Page = { readonly status: number; readonly url: string; readonly text: string; readonly headers: Headers };

/** A browser: it keeps cookies by path, and follows redirects and refreshes within the server. */
export class Browser {
  readonly #origin: string;
  readonly #cookies = new Map<string, Cookie>();

  constructor(origin: string, cookies: readonly Cookie[] = []) {
    this.#origin = origin;
    for (const cookie of cookies) this.#cookies.set(`${cookie.name} ${cookie.path}`, cookie);
  }

  cookies(): readonly Cookie[] {
    return [...this.#cookies.values()];
  }

  /** The last page, or the address at another origin to which the server sent the browser. */
  async open(address: string, init: RequestInit = {}): Promise<Page> {
    let url = new URL(address, this.#origin);
    let request: RequestInit = init;
    for (let hop = 0; hop < 10; hop++) {
      if (url.origin !== this.#origin) return { status: 0, url: url.href, text: '', headers: new Headers() };
      const response = await fetch(url, {
        ...request,
        redirect: 'manual',
        headers: { accept: 'text/html', cookie: this.#cookiesFor(url.pathname), ...(request.headers as object) },
      });
      this.#take(response);
      const text = await response.text();
      const refresh = /<meta http-equiv="refresh" content="0; url=([^"]+)">/.exec(text)?.[1];
      const next = response.headers.get('location') ?? refresh?.replaceAll('&amp;', '&');
      if (next === undefined) return { status: response.status, url: url.href, text, headers: response.headers };
      url = new URL(next, url);
      request = {};
    }
    throw new Error(`too many redirects, the last to ${url}`);
  }

  /** Sends the form of a page, as a page of this origin. */
  submit(page: Page, fields: Record<string, string | readonly string[]>, headers: object = {}): Promise<Page> {
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)?.[1];
    assert.ok(action, `a form in: ${page.text}`);
    const body = new URLSearchParams();
    for (const [, name, value] of page.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g))
      body.append(name!, value!);
    for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(name, one);
    return this.open(action, { method: 'POST', body, headers: { origin: this.#origin, ...headers } });
  }

  #cookiesFor(pathname: string): string {
    const fitting = this.cookies().filter(({ path }) => pathname === path || pathname.startsWith(`${path}/`));
    return fitting.map(({ name, value }) => `${name}=${value}`).join('; ');
  }

  #take(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const at = pair.indexOf('=');
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      const path = (attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? '/').replace(/^\/$/, '');
      if (value === '') this.#cookies.delete(`${name} ${path}`);
      else this.#cookies.set(`${name} ${path}`, { name, value, path });
    }
  }
}

export type OauthBench = Bench & {
  readonly oauth: OauthServer;
  /** The public address, and that of the server. */
  readonly at: string;
  readonly issuer: string;
  readonly documents: Awaited<ReturnType<typeof startDocuments>>;
  readonly codes: Map<string, SignedIn>;
  /** The folder of the database and the keys. */
  readonly oauthDir: string;
  /** Ends the server, and starts another one with the same files. */
  restart(): Promise<void>;
  browser(): Browser;
  /** A new token of a user. */
  tokenOf(user: string): Promise<string>;
};

/** @param resolve instead of the system's name lookups, for documents of clients */
export async function startOauthBench(
  t: TestContext,
  more: Partial<OauthServerConfig> = {},
  resolve?: Resolve,
): Promise<OauthBench> {
  const documents = await startDocuments(t);
  const assets = loadAssets();
  const codes = new Map<string, SignedIn>();
  let parts: ServiceParts | undefined;
  let oauth: OauthServer | undefined;
  const bench = await startBench(t, {
    servicesOf: (given) => {
      parts = given;
      return [
        {
          ...{ name: 'oauth', bodyBytes: 32 * 1024 },
          owns: isOfOauthServer,
          answer: (request, info) => oauth!.answer(request, info),
          figures: () => oauth!.figures(),
          close: async () => oauth?.close(),
        },
      ];
    },
  });
  const at = bench.public.url;
  const { users, isShared } = parts!;
  const oauthDir = temporaryFolder(t);
  const options: OauthServerOptions = {
    config: { dataDir: oauthDir, home: undefined, registration: false, allow: documents.host, ...more },
    publicUrl: () => at,
    persons: {
      authenticate: users.authenticate,
      isValid: users.isValid,
      async redeem(code) {
        const found = codes.get(code);
        codes.delete(code);
        return found;
      },
    },
    look: { page: (title, main, leadsTo) => outsidePage(title, main, assets, leadsTo), headers: HEADERS },
    ...{ isShared, clock: UNHURRIED, log: silentLogger, resolve },
  };
  oauth = await createOauthServer(options);
  return {
    ...bench,
    ...{ at, issuer: `${at}/oauth`, documents, codes, oauthDir },
    get oauth() {
      return oauth!;
    },
    async restart() {
      await oauth?.close();
      oauth = await createOauthServer(options);
    },
    browser: () => new Browser(at),
    async tokenOf(user) {
      const known = await bench.send('GET', `/admin/users?user_id=${user}`, ADMIN_TOKEN);
      const isKnown = known.text.includes('"id"');
      const path = isKnown ? `/admin/users/${user}/tokens` : '/admin/users';
      const { status, text, json } = await bench.send('POST', path, ADMIN_TOKEN, isKnown ? {} : { user_id: user });
      assert.equal(status, 200, text);
      return json.data.token!;
    },
  };
}

export type Asked = {
  readonly client: string;
  readonly redirect?: string;
  readonly resource?: string | undefined;
  readonly scope?: string | undefined;
  /** Members of the request to add, change or (`undefined`) leave out. */
  readonly more?: Readonly<Record<string, string | undefined>>;
};

export const verifierOf = () => randomBytes(32).toString('base64url');
export const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

/** The address that begins a request of a client. */
export function requestOf(
  bench: OauthBench,
  verifier: string,
  { client, redirect, resource, scope, more }: Asked,
): string {
  const members: Record<string, string | undefined> = {
    ...{ response_type: 'code', client_id: client, state: 'the-state' },
    redirect_uri: redirect ?? REDIRECT,
    ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
    resource: resource ?? `${bench.at}/mcp/chronos`,
    ...{ scope: scope ?? 'alarms:read alarms:write', ...more },
  };
  const given = Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${bench.issuer}/auth?${new URLSearchParams(given)}`;
}

export type Allowed = { readonly code: string; readonly verifier: string; readonly answer: URLSearchParams };

/** Signs in and allows a request. */
export async function allow(
  bench: OauthBench,
  asked: Asked,
  { token, browser = bench.browser(), scopes }: { token: string; browser?: Browser; scopes?: readonly string[] },
): Promise<Allowed> {
  const verifier = verifierOf();
  let page = await browser.open(requestOf(bench, verifier, asked));
  if (page.text.includes('name="credential"')) page = await browser.submit(page, { do: 'sign-in', credential: token });
  assert.match(page.text, /Allow access\?/, page.text);
  const all = [...page.text.matchAll(/name="scope" value="([^"]+)"/g)].map((match) => match[1]!);
  const answered = await browser.submit(page, { do: 'allow', scope: scopes ?? all });
  assert.equal(answered.status, 0, answered.text);
  const answer = new URL(answered.url).searchParams;
  return { code: answer.get('code') ?? '', verifier, answer };
}

export type Tokens = {
  access_token: string;
  refresh_token?: string;
  scope: string;
  expires_in: number;
  token_type: string;
};
export type TokenAnswer = { readonly status: number; readonly json: Partial<Tokens> & { error?: string } };

/** A request of the token endpoint, or of another for programs. */
export async function post(
  bench: OauthBench,
  path: string,
  members: Readonly<Record<string, string | undefined>>,
  headers: object = {},
): Promise<TokenAnswer> {
  const given = Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const body = new URLSearchParams(given);
  const response = await fetch(`${bench.issuer}${path}`, { method: 'POST', body, headers: { ...headers } });
  const text = await response.text();
  return { status: response.status, json: text === '' ? {} : JSON.parse(text) };
}

export const redeem = (bench: OauthBench, asked: Asked, { code, verifier }: Allowed, more: object = {}) =>
  post(bench, '/token', {
    ...{ grant_type: 'authorization_code', client_id: asked.client, code, code_verifier: verifier },
    ...{ redirect_uri: asked.redirect ?? REDIRECT, ...more },
  });

export const refresh = (bench: OauthBench, client: string, refresh_token: string, more: object = {}) =>
  post(bench, '/token', { grant_type: 'refresh_token', client_id: client, refresh_token, ...more });

/** Starts the device grant of a client (RFC 8628). */
export async function startDevice(bench: OauthBench, client: string) {
  const body = new URLSearchParams({ client_id: client, scope: 'alarms:read', resource: `${bench.at}/mcp/chronos` });
  const response = await fetch(`${bench.issuer}/device/auth`, { method: 'POST', body });
  const answer = (await response.json()) as Record<string, string>;
  assert.equal(response.status, 200, JSON.stringify(answer));
  return {
    code: answer.user_code!,
    address: answer.verification_uri!,
    complete: answer.verification_uri_complete!,
    poll: () =>
      post(bench, '/token', {
        ...{ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: client },
        device_code: answer.device_code,
      }),
  };
}
