/**
 * Fetches pages whose address comes from an untrusted source: a model, or a page that a model has read. Only public
 * addresses and hosts that the operator allows are reached. Each redirect is checked like the first address, and each
 * connection goes to a checked address.
 */
import { isIP } from 'node:net';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import type { Clock } from '../clock/clock.ts';
import { addressRefusal } from './addresses.ts';
import { Agent } from './dispatchers.ts';
import { type Answered, type ExchangeRequest, exchange, reasonOf } from './exchange.ts';
import { guardedLookup, hostOf, type Resolve, resolveBySystem } from './guarded-lookup.ts';

const REDIRECTS_MAX = 5;
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const LIMIT_MS = 20_000;
const CONNECT_MS = 10_000;
const URL_LENGTH_MAX = 8192;

/** `host` or `host:port` in the operator's allow-list. */
const ALLOWED = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?$/i;

export type WebAccessOptions = {
  clock: Clock;
  /** Allowed hosts of private networks, `host` or `host:port`, separated by commas. */
  allow?: string | undefined;
  /** The option or variable with them, for messages; default `--allow`. */
  setting?: string;
  resolve?: Resolve;
};

export type WebRequest = {
  url: string;
  /** By default GET. */
  method?: 'GET' | 'HEAD';
  /** Sent to the address itself; a redirect to another origin gets only `accept`. */
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Maximum redirects; default 5. */
  redirects?: number;
  /** Maximum bytes of the body; default 4 MiB. */
  maxBytes?: number;
};

/** A body may be posted only once, so a redirect is the answer. */
export type WebPost = Pick<WebRequest, 'url' | 'headers' | 'signal'> & {
  body: string;
  maxBytes: number;
  /** Default 20 seconds. */
  limitMs?: number;
};

export type WebAnswer = {
  /** The address after all redirects. */
  url: URL;
  status: number;
  contentType: string;
  etag: string | undefined;
  cacheControl: string | undefined;
  body: Buffer;
  /** The body was longer than the limit. */
  truncated: boolean;
};

/** @throws ReveilleError `invalid_request` naming the entry that is not a host */
function readAllowed(allow: string, setting: string): ReadonlySet<string> {
  const entries = allow.split(',').flatMap((entry) => entry.trim().toLowerCase() || []);
  for (const entry of entries) {
    if (ALLOWED.test(entry)) continue;
    const what = `must be hosts, such as wiki.lan or 127.0.0.1:8080, separated by commas (got ${JSON.stringify(entry)})`;
    throw new ReveilleError('invalid_request', `${setting} ${what}`);
  }
  return new Set(entries);
}

function decoded({ headers, body, truncated }: Answered, maxBytes: number): Buffer {
  const coding = String(headers['content-encoding'] ?? 'identity').toLowerCase();
  if (coding === 'identity' || coding === '' || body.length === 0) return body;
  const unpack = { gzip: gunzipSync, 'x-gzip': gunzipSync, deflate: inflateSync, br: brotliDecompressSync }[coding];
  if (!unpack)
    throw new ReveilleError(
      'unavailable',
      `the page has the unsupported encoding ${JSON.stringify(coding.slice(0, 40))}`,
    );
  if (truncated) throw new ReveilleError('unavailable', `the page is longer than ${maxBytes} bytes, and compressed`);
  try {
    return unpack(body, { maxOutputLength: maxBytes });
  } catch (cause) {
    const why = thrownText(cause);
    throw new ReveilleError('unavailable', `the page cannot be decompressed within ${maxBytes} bytes: ${why}`);
  }
}

/** @throws ReveilleError `invalid_request` when it is not a web address */
function readUrl(text: string, base?: URL): URL {
  const url = text.length > URL_LENGTH_MAX ? null : URL.parse(text, base?.href);
  const shown = JSON.stringify(text.slice(0, 200));
  if (url === null) throw new ReveilleError('invalid_request', `url must be a whole address, https://… (got ${shown})`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new ReveilleError('invalid_request', `url must begin with https:// or http:// (got ${shown})`);
  if (url.username !== '' || url.password !== '')
    throw new ReveilleError('invalid_request', 'url must not hold a user name or a password');
  return url;
}

const portOf = (url: URL) => url.port || (url.protocol === 'https:' ? '443' : '80');

export class WebAccess {
  readonly #clock: Clock;
  readonly #allowed: ReadonlySet<string>;
  readonly #setting: string;
  readonly #resolve: Resolve;
  readonly #agents = new Set<Agent>();

  /** @throws ReveilleError `invalid_request` for an invalid `allow` */
  constructor({ clock, allow = '', setting = '--allow', resolve = resolveBySystem }: WebAccessOptions) {
    this.#clock = clock;
    this.#setting = setting;
    this.#allowed = readAllowed(allow, setting);
    this.#resolve = resolve;
  }

  /**
   * A sentence why a connection to an address of this host is refused; `undefined` when it is allowed. Metadata and
   * link-local addresses are never reached, even if allowed.
   */
  refusalOf(host: string, port: string, address: string): string | undefined {
    const name = host.toLowerCase();
    const written = isIP(name) === 6 ? `[${name}]` : name;
    const isAllowed = this.#allowed.has(written) || this.#allowed.has(`${written}:${port}`);
    const refusal = addressRefusal(address, isAllowed);
    if (refusal === undefined) return undefined;
    const what = host === address ? `${host} is ${refusal}` : `${host} resolves to ${address}, ${refusal}`;
    const isPrivate = addressRefusal(address, true) === undefined;
    return `${what}: it is not reached${isPrivate ? `; to reach it, allow ${written}:${port} by name${this.#named}` : ''}`;
  }

  /** Whether the operator has allowed the host of an address by name. */
  isAllowed(text: string): boolean {
    const url = readUrl(text);
    return this.#allowed.has(url.hostname) || this.#allowed.has(`${url.hostname}:${portOf(url)}`);
  }

  /** The variable to set; a program's own option needs no name. */
  get #named(): string {
    return this.#setting.startsWith('--') ? '' : ` in ${this.#setting}`;
  }

  /**
   * Refuses an address that {@link get} would never reach, as far as this is known without a lookup.
   *
   * @throws ReveilleError `invalid_request` or `forbidden`
   */
  refuse(text: string): void {
    const url = readUrl(text);
    const host = hostOf(url);
    const refusal = isIP(host) ? this.refusalOf(host, portOf(url), host) : undefined;
    if (refusal !== undefined) throw new ReveilleError('forbidden', refusal);
  }

  /**
   * Fetches a page.
   *
   * @throws ReveilleError `invalid_request` for a wrong address, `forbidden` for an address that must not be reached
   *   (also by a redirect), `unavailable` without an answer
   */
  async get(request: WebRequest): Promise<WebAnswer> {
    const { url: text, method = 'GET', signal, redirects = REDIRECTS_MAX, maxBytes = BODY_BYTES_MAX } = request;
    const deadline = this.#clock.monotonic() + LIMIT_MS;
    let url = readUrl(text);
    let headers = request.headers ?? {};
    for (let hop = 0; ; hop++) {
      const ms = Math.max(1, Math.ceil(deadline - this.#clock.monotonic()));
      const answer = await this.#exchange(url, { method, headers, maxBytes, signal }, ms);
      const { location } = answer.headers;
      const isRedirect = answer.status >= 300 && answer.status < 400 && typeof location === 'string';
      if (!isRedirect) {
        const { status, truncated } = answer;
        const contentType = String(answer.headers['content-type'] ?? '');
        const headerOf = (name: 'etag' | 'cache-control') => {
          const value = answer.headers[name];
          return value === undefined ? undefined : String(value);
        };
        const [etag, cacheControl] = [headerOf('etag'), headerOf('cache-control')];
        return { url, status, contentType, etag, cacheControl, body: decoded(answer, maxBytes), truncated };
      }
      if (hop >= redirects)
        throw new ReveilleError(
          'unavailable',
          `${url.origin} redirects again after ${redirects} redirects, which is the limit`,
        );
      const next = readUrl(location, url);
      // The others may be credentials.
      if (next.origin !== url.origin) headers = headers.accept === undefined ? {} : { accept: headers.accept };
      url = next;
    }
  }

  /**
   * Posts to an address. A redirect is returned as the answer, and not followed.
   *
   * @throws ReveilleError as {@link get}; the cause of `unavailable` is the error of the connection
   */
  async post(request: WebPost): Promise<Pick<Answered, 'status' | 'body'>> {
    const { url: text, headers = {}, body, maxBytes, signal, limitMs = LIMIT_MS } = request;
    return this.#exchange(readUrl(text), { method: 'POST', headers, body, maxBytes, signal }, limitMs);
  }

  async #exchange(
    url: URL,
    { method, headers, body, maxBytes, signal }: Omit<ExchangeRequest, 'url' | 'limit'>,
    ms: number,
  ): Promise<Answered> {
    const host = hostOf(url);
    const port = portOf(url);
    // The lookup does not run for a numeric address, so check it here.
    const refusal = isIP(host) ? this.refusalOf(host, port, host) : undefined;
    if (refusal !== undefined) throw new ReveilleError('forbidden', refusal);
    let refused: string | undefined;
    const lookup = guardedLookup(this.#resolve, (name, address) => {
      refused = this.refusalOf(name, port, address);
      return refused;
    });
    // A new connection for each request: an address check is not reused for another request.
    const agent = new Agent({
      connections: 1,
      pipelining: 1,
      allowH2: false,
      connect: { lookup, timeout: CONNECT_MS },
    });
    this.#agents.add(agent);
    try {
      const answer = await exchange(agent, {
        ...{ method, url, body, maxBytes, signal },
        headers: { 'user-agent': `Reveille/${VERSION}`, 'accept-encoding': 'identity', ...headers },
        limit: { clock: this.#clock, ms },
      });
      if (answer.result === 'answered') return answer;
      if (refused !== undefined) throw new ReveilleError('forbidden', refused);
      const why = reasonOf(answer.error);
      throw new ReveilleError('unavailable', `${url.origin} did not answer: ${why}`, { cause: answer.error });
    } finally {
      this.#agents.delete(agent);
      void agent.destroy();
    }
  }

  /** Ends requests in progress. */
  async close(): Promise<void> {
    await Promise.all([...this.#agents].map((agent) => agent.destroy()));
  }
}
