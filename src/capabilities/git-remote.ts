/** The remotes that git may use: HTTP addresses with an allowed prefix. The credential is sent only to them. */
import type { Clock } from '../kit/clock/clock.ts';
import { Agent } from '../kit/http/dispatchers.ts';
import { exchange, reasonOf } from '../kit/http/exchange.ts';
import { guardedConnector } from '../kit/http/guarded-client.ts';
import { ReveilleError } from '../wire/errors.ts';
import { withoutTrailing } from '../wire/text.ts';
import { MAX_PACK_BYTES } from './git-files.ts';
import type { RemoteAnswer, RemoteRequest } from './git-thread.ts';

const EXCHANGE_MS = 120_000;
/**
 * Path parts that some servers decode to a path outside the prefix: nginx resolves `/team/..%2fother` to `/other`, and
 * servlet containers read `..;` as `..`. The URL parser already resolves a plain `..`.
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
   * @param list allowed prefixes of remote addresses, separated by commas; without an entry no remote is allowed
   * @param token sent to them as a password
   * @throws ReveilleError `invalid_request` naming the entry that is not an address
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

  /** @throws ReveilleError `forbidden` for an address without an allowed prefix */
  open(given: string): Remote {
    const address = new URL(given);
    if (address.username !== '' || address.password !== '')
      throw new ReveilleError('invalid_request', 'url must not hold a user name or a password');
    if (address.search !== '' || address.hash !== '')
      throw new ReveilleError('invalid_request', 'url must have no query and no fragment');
    if (LEAVING_PATH.test(address.pathname))
      throw new ReveilleError('invalid_request', 'url must have no encoded slash or backslash and no ".." in its path');
    const matches = (prefix: URL) =>
      prefix.origin === address.origin &&
      `${address.pathname}/`.startsWith(`${withoutTrailing(prefix.pathname, '/')}/`);
    if (!this.#allowed.map((entry) => new URL(entry)).some(matches)) {
      const named = this.#allowed.length === 0 ? 'none' : this.#allowed.join(', ');
      const what = `${address.origin} is not an allowed remote (allowed: ${named}); set EXECUTOR_GIT_REMOTES`;
      throw new ReveilleError('forbidden', what);
    }
    const href = withoutTrailing(address.href, '/');
    return { href, send: (request, signal) => this.#send(href, request, signal) };
  }

  /** Sends one of the three requests that git makes to a remote. Any other request is refused. */
  async #send(href: string, { url, method, headers, body }: RemoteRequest, signal: AbortSignal): Promise<RemoteAnswer> {
    const refused = (code: string, message: string) => ({ refused: { code, message } });
    const path = url.slice(href.length);
    const isAllowed =
      url.startsWith(href) &&
      (method === 'GET'
        ? /^\/info\/refs\?service=git-(?:upload|receive)-pack$/.test(path)
        : method === 'POST' && /^\/git-(?:upload|receive)-pack$/.test(path));
    if (!isAllowed) return refused('forbidden', 'git requested an address outside the remote');
    const forwarded = Object.entries(headers).filter(([name]) => /^(?:accept|content-type|git-protocol)$/i.test(name));
    const basic = this.#token && Buffer.from(`x-access-token:${this.#token}`).toString('base64');
    const result = await exchange(this.#agent, {
      method: method === 'GET' ? 'GET' : 'POST',
      url: new URL(url),
      headers: {
        ...Object.fromEntries(forwarded),
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
        `the remote’s answer is incomplete, or longer than ${MAX_PACK_BYTES / 1024 / 1024} MB`,
      );
    if (result.status >= 300 && result.status < 400)
      return refused('unavailable', `the remote answered ${result.status}, a redirect, which git does not follow`);
    const type = result.headers['content-type'];
    return {
      status: result.status,
      headers: { 'content-type': String(type ?? '') },
      body: new Uint8Array(result.body),
    };
  }
}
