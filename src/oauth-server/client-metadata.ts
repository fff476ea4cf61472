/**
 * Metadata of clients: fetches metadata documents (draft-ietf-oauth-client-id-metadata-document) from public addresses,
 * and makes the checks that the library does not make.
 */
import type { WebAccess } from '../kit/http/web-access.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { ClientMetadata } from './library.ts';

/** Maximum size that the draft recommends for a document. The keys of a client may be longer. */
export const DOCUMENT_BYTES = 5 * 1024;
export const KEYS_BYTES = 64 * 1024;

/** How long a document may take. The library would wait 2.5 seconds, which a busy computer needs for a handshake. */
const DOCUMENT_MS = 10_000;

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** The `fetch` of the library. It refuses private addresses and redirects, and limits the size. */
export function guardedFetch(web: Pick<WebAccess, 'get'>) {
  return async (url: string | URL): Promise<Response> => {
    const signal = AbortSignal.timeout(DOCUMENT_MS);
    const answer = await web.get({
      ...{ url: String(url), headers: { accept: 'application/json' }, redirects: 0, maxBytes: KEYS_BYTES, signal },
    });
    const { status, body, contentType, cacheControl, truncated } = answer;
    if (truncated) throw new ReveilleError('unavailable', `the document has more than ${KEYS_BYTES} bytes`);
    if (status === 200 && !JSON_TYPE.test(contentType))
      throw new ReveilleError('unavailable', 'the document must have the type application/json');
    const headers = { 'content-type': contentType, ...(cacheControl && { 'cache-control': cacheControl }) };
    // Some statuses may have no body.
    return new Response(status === 200 ? new Uint8Array(body) : null, { status, headers });
  };
}

/** Maximum length of a client's name, as alarms show it. */
const CLIENT_ID_MAX = 500;

/** Whether a client id may be the address of a document: the draft requires a path, and the length is limited. */
export const mayBeDocument = (clientId: string): boolean =>
  clientId.length <= CLIENT_ID_MAX && (URL.parse(clientId)?.pathname ?? '/') !== '/';

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** A private-use scheme: a reversed domain name (RFC 8252 §7.1), or the name of a program. */
const SCHEME = /^[a-z][a-z0-9+.-]{2,63}:$/;
const NEVER = new Set([
  ...['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'about:', 'filesystem:', 'view-source:'],
  ...['ws:', 'wss:', 'ftp:', 'mailto:', 'tel:', 'sms:', 'intent:', 'chrome:', 'resource:'],
  // The system opens tools of its own for these, with what follows as arguments.
  ...['search:', 'search-ms:', 'shell:', 'ssh:', 'jar:', 'feed:'],
]);
/** A web page can register itself for the first two, and the third is of Windows: none is a program of the client. */
const NEVER_BEGINS = /^(?:web\+|ext\+|ms-)/;
const MOST_REDIRECTS = 20;
const URI_LENGTH_MAX = 2000;
const NAME_MAX = 100;
const QUOTES = /["\p{Pi}\p{Pf}\u201a\u201e\u201f\u2033\u2036\u275d\u275e\u301d-\u301f\uff02]/gu;

/** Members for ID tokens and logout pages, which this server does not have. */
const IGNORED = [
  ...['scope', 'id_token_signed_response_alg', 'subject_type', 'sector_identifier_uri', 'default_max_age'],
  ...['require_auth_time', 'default_acr_values', 'initiate_login_uri', 'contacts', 'response_modes'],
  ...['logo_uri', 'policy_uri', 'tos_uri', 'post_logout_redirect_uris', 'application_type'],
];

/** @returns whether a program on the user's computer receives the redirect; `undefined` for a forbidden address */
function isForProgram(uri: unknown): boolean | undefined {
  const url = typeof uri === 'string' && uri.length <= URI_LENGTH_MAX ? URL.parse(uri) : null;
  if (url === null || url.href.includes('#') || url.username !== '' || url.password !== '') return undefined;
  if (url.protocol === 'https:') return false;
  if (url.protocol === 'http:') return LOOPBACK.has(url.hostname) ? true : undefined;
  const isUsable = SCHEME.test(url.protocol) && !NEVER.has(url.protocol) && !NEVER_BEGINS.test(url.protocol);
  return isUsable ? true : undefined;
}

/**
 * Checks the metadata of a client and sets its application type. A program on the user's computer may use any port of a
 * loopback address (RFC 8252 §7.3).
 *
 * @throws the error that `invalid` makes of a sentence
 */
export function normaliseMetadata(metadata: ClientMetadata, invalid: (why: string) => Error): void {
  const { redirect_uris: uris = [] } = metadata;
  if (!Array.isArray(uris) || uris.length > MOST_REDIRECTS)
    throw invalid(`redirect_uris must be a list of at most ${MOST_REDIRECTS} addresses`);
  const kinds = uris.map(isForProgram);
  if (kinds.includes(undefined))
    throw invalid(
      'each of redirect_uris must be an https address, a loopback http address, or have a private-use scheme',
    );
  for (const name of IGNORED) delete metadata[name];
  metadata.application_type = kinds.includes(true) ? 'native' : 'web';
  const { client_name: name } = metadata;
  // Pages quote it: it must not end its quotation and go on as a sentence of the page.
  if (typeof name === 'string') metadata.client_name = name.slice(0, NAME_MAX).toWellFormed().replace(QUOTES, "'");
}

/** The host of a client id with a document. It is verified, because the document was read from it. */
export function hostOfClient(clientId: string): string | undefined {
  const url = URL.parse(clientId);
  return url?.protocol === 'https:' ? url.host : undefined;
}

/** The host to which the browser is redirected after the answer. */
export type Destination = { readonly host: string; readonly isLocal: boolean };

export function destinationOf(redirectUri: unknown): Destination | undefined {
  const url = typeof redirectUri === 'string' ? URL.parse(redirectUri) : null;
  if (url === null) return undefined;
  if (/^https?:$/.test(url.protocol)) return { host: url.host, isLocal: LOOPBACK.has(url.hostname) };
  return { host: `${url.protocol}//${url.host}`, isLocal: true };
}
