/**
 * Requests to the authorization server of an MCP server. The MCP server chooses its address, so the address is untrusted.
 * It must use HTTPS, and be public unless the MCP server itself is private. Requests with secrets are not redirected,
 * and answers are limited in size.
 */
import { isIP } from 'node:net';
import type { FetchLike } from '@modelcontextprotocol/client';
import type { Clock } from '../../kit/clock/clock.ts';
import { addressRefusal } from '../../kit/http/addresses.ts';
import { lateFetch } from '../../kit/http/dispatchers.ts';
import { GuardedClient } from '../../kit/http/guarded-client.ts';
import { hostOf, RefusedAddress, type Resolve } from '../../kit/http/guarded-lookup.ts';
import { thrownText } from '../../wire/errors.ts';
import { withDeadline } from '../deadline.ts';

const LIMIT_MS = 15_000;
const LONGEST_ANSWER_BYTES = 256 * 1024;

const TEXTS = {
  who: 'the sign-in of an MCP server',
  remedy: 'only the sign-in of a server on this computer or network may use private addresses',
};

/** A name such as `127.example.com` is of any computer. */
const isLoopback = (host: string) =>
  host === 'localhost' ||
  host.endsWith('.localhost') ||
  host === '::1' ||
  (isIP(host) === 4 && host.startsWith('127.'));

/** Whether a server's address is private, so that the address of its authorization server may be private too. */
export function isPrivateServer(url: string): boolean {
  const host = hostOf(new URL(url));
  return isLoopback(host) || (isIP(host) !== 0 && addressRefusal(host, false) !== undefined);
}

/**
 * Why an address must not be used for a sign-in, to complete the sentence "… is refused: "; `undefined` if it is allowed.
 *
 * @param allowPrivate whether `http:` on this computer is accepted too
 */
export function insecureAddress(address: string | URL, allowPrivate: boolean): string | undefined {
  const url = URL.parse(String(address));
  if (url === null) return 'it is not a valid URL';
  if (url.username !== '' || url.password !== '') return 'it contains a user name or a password';
  if (url.protocol === 'https:' || (allowPrivate && url.protocol === 'http:' && isLoopback(hostOf(url))))
    return undefined;
  return 'it must be an https:// address';
}

export type AuthorizationFetch = { readonly fetch: FetchLike; close(): Promise<void> };

/** @param serverUrl the address of the MCP server */
export function authorizationFetch(serverUrl: string, clock: Clock, resolve?: Resolve): AuthorizationFetch {
  const allowPrivate = isPrivateServer(serverUrl);
  const client = new GuardedClient(TEXTS, resolve);
  // The SDK rethrows a TypeError. After any other error it would continue with another address.
  const refuse = (url: URL, why: string) => new TypeError(`${url.origin} is refused: ${why}`);
  const fetch: FetchLike = async (given, init) => {
    const url = new URL(given);
    const refusal = insecureAddress(url, allowPrivate) ?? client.refusalOf(url, allowPrivate);
    if (refusal !== undefined) throw refuse(url, refusal);
    return withDeadline(clock, LIMIT_MS, init?.signal ?? undefined, async (signal) => {
      const dispatcher = client.dispatcher(allowPrivate);
      const options = { ...(init as object), redirect: 'manual', dispatcher, signal } as const;
      const answer = await lateFetch()(url, options).catch((thrown: unknown) => {
        throw refusedCause(thrown) ? refuse(url, thrownText(refusedCause(thrown))) : thrown;
      });
      const isRedirect = answer.status >= 300 && answer.status <= 399;
      // A code or a refresh token must not reach another address.
      if (isRedirect && init?.method === 'POST') throw refuse(url, 'it redirects a request that carries secrets');
      const body = await boundedBody(answer.body as ReadableStream<Uint8Array> | null, url);
      const { status, statusText } = answer;
      const hasBody = status !== 204 && status !== 304;
      return new Response(hasBody ? body : null, { status, statusText, headers: [...answer.headers.entries()] });
    });
  };
  return { fetch, close: () => client.close() };
}

/** Finds the refusal of an address in an error and its causes. */
function refusedCause(thrown: unknown): RefusedAddress | undefined {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof RefusedAddress) return at;
  }
  return undefined;
}

async function boundedBody(body: ReadableStream<Uint8Array> | null, { origin }: URL): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > LONGEST_ANSWER_BYTES) throw new TypeError(`${origin} sent more than ${LONGEST_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
