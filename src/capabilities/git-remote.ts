/** The remotes that git may speak to, and how: over HTTP, to named addresses, with the credential sent nowhere else. */
import type { Clock } from '../kit/clock/clock.ts';
import { Agent } from '../kit/http/dispatchers.ts';
import { exchange, reasonOf } from '../kit/http/exchange.ts';
import { guardedConnector } from '../kit/http/guarded-client.ts';
import { ReveilleError } from '../wire/errors.ts';
import { MAX_PACK_BYTES } from './git-files.ts';
import type { RemoteAnswer, RemoteRequest } from './git-thread.ts';

const EXCHANGE_MS = 120_000;
/**
 * What some servers decode into a path that begins otherwise: nginx resolves `/team/..%2fother` to `/other`, and servlet
 * containers read `..;` as `..`. A `..` alone is resolved when the address is parsed.
 */
const LEAVING_PATH = /%(?:2f|5c|00|25)|\/(?:\.|%2e){1,2};/i;

/** Sends the requests of one operation. */
export type Remote = {
  readonly href: string;
  send(request: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer>;
};

export class Remotes {
  readonly #clock: Clock;
  readonly #allowed: readonly string[];
  readonly #token: string | undefined;
  readonly #agent = new Agent({ connections: 4, pipelining: 1, allowH2: false, connect: guardedConnector() });

  /**
   * @param list what the addresses of remotes must begin with, separated by commas; none are spoken to unless named
   * @param token sent to them as a password
   * @throws ReveilleError `invalid_request` naming the entry that is no address
   */
  constructor(clock: Clock, list: string, token: string | undefined) {
    this.#clock = clock;
    this.#allowed = list.split(',').flatMap((entry) => entry.trim() || []);
    this.#token = token || undefined;
    for (const entry of this.#allowed) {
      const parsed = URL.parse(entry);
      if (parsed && /^https?:$/.test(parsed.protocol) && parsed.username === '' && parsed.password === '') continue;
      const what = `must be https:// addresses, separated by commas (got ${JSON.stringify(entry.slice(0, 200))})`;
      throw new ReveilleError('invalid_request', `--remotes ${what}`);
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** @throws ReveilleError `forbidden` for an address that was not named */
  open(given: string): Remote {
    const address = new URL(given);
    if (address.username !== '' || address.password !== '')
      throw new ReveilleError('invalid_request', 'url must not hold a user name or a password');
    if (address.search !== '' || address.hash !== '')
      throw new ReveilleError('invalid_request', 'url must have no query and no fragment');
    if (LEAVING_PATH.test(address.pathname))
      throw new ReveilleError('invalid_request', 'url must have no encoded slash or backslash and no ".." in its path');
    const fits = (prefix: URL) =>
      prefix.origin === address.origin && `${address.pathname}/`.startsWith(`${prefix.pathname.replace(/\/+$/, '')}/`);
    if (!this.#allowed.map((entry) => new URL(entry)).some(fits)) {
      const named = this.#allowed.length === 0 ? 'none is' : `these are: ${this.#allowed.join(', ')}`;
      const what = `${address.origin} is no remote that was named (${named}); set EXECUTOR_GIT_REMOTES`;
      throw new ReveilleError('forbidden', what);
    }
    const href = address.href.replace(/\/+$/, '');
    return { href, send: (request, signal) => this.#send(href, request, signal) };
  }

  /** The three requests that git makes of a remote; no other leaves, whatever a repository or an answer names. */
  async #send(href: string, { url, method, headers, body }: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer> {
    const refused = (code: string, message: string) => ({ refused: { code, message } });
    const path = url.slice(href.length);
    const isAsked =
      url.startsWith(href) &&
      (method === 'GET'
        ? /^\/info\/refs\?service=git-(?:upload|receive)-pack$/.test(path)
        : method === 'POST' && /^\/git-(?:upload|receive)-pack$/.test(path));
    if (!isAsked) return refused('forbidden', 'git asked for an address that is not the remote’s');
    const kept = Object.entries(headers).filter(([name]) => /^(?:accept|content-type|git-protocol)$/i.test(name));
    const basic = this.#token && Buffer.from(`x-access-token:${this.#token}`).toString('base64');
    const result = await exchange(this.#agent, {
      method: method === 'GET' ? 'GET' : 'POST',
      url: new URL(url),
      headers: {
        ...Object.fromEntries(kept),
        'user-agent': 'git/reveille',
        ...(basic && { authorization: `Basic ${basic}` }),
      },
      body: method === 'GET' ? undefined : body,
      maxBytes: MAX_PACK_BYTES,
      signal,
      limit: { clock: this.#clock, ms: EXCHANGE_MS },
    });
    if (result.result !== 'answered')
      return refused('unavailable', `the remote did not answer: ${reasonOf(result.error)}`);
    if (result.truncated)
      return refused(
        'unavailable',
        `the remote’s answer broke off, or is longer than ${MAX_PACK_BYTES / 1024 / 1024} MB`,
      );
    if (result.status >= 300 && result.status < 400)
      return refused('unavailable', `the remote answered ${result.status}, a redirect, and git follows none`);
    const type = result.headers['content-type'];
    return {
      status: result.status,
      headers: { 'content-type': String(type ?? '') },
      body: new Uint8Array(result.body),
    };
  }
}
