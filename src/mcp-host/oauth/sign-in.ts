/**
 * The sign-in of the user at an MCP server: an address to open, and the answer at the redirect address. The state
 * between the two is stored, so that another process can finish the sign-in.
 */
import {
  auth,
  extractWWWAuthenticateParams,
  OAuthClientFlowError,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  OAuthError,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { randomSecret, sameSecret } from '../../kit/identity/secrets.ts';
import { clip } from '../../kit/text/excerpt.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { authorizationFetch, insecureAddress, isPrivateServer } from './authorization-fetch.ts';
import {
  type AuthorizationOptions,
  clientMetadataOf,
  insecureServer,
  registeredClient,
  scopeToRequest,
} from './server-authorization.ts';
import type { Place } from './token-store.ts';

/** The data that the user sees before the sign-in. */
export type SignInRequest = {
  /** The address to open in a browser. */
  readonly url: string;
  /** The host of the authorization server, to which the user gives a password or key. */
  readonly host: string;
  /** The host that gets the access in the end. A malicious server could name its own, and a sign-in of another. */
  readonly accessHost: string;
  readonly issuer: string;
  readonly scope: string | undefined;
  /** How this client is registered at the authorization server. */
  readonly clientId: string;
};

/** Time limit of the answer. */
const ANSWER_MS = 30 * 60_000;
const SHOWN_CHARACTERS = 200;

const failure = (message: string, cause?: unknown) =>
  new ReveilleError('unavailable', message, { retryable: false, ...(cause !== undefined && { cause }) });

/** Converts an error of the SDK. Texts of others are shortened and quoted, so that they cannot pass as Reveille's. */
function translate(alias: string, thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  // The sender of a refused answer controls its text.
  const isFlow = thrown instanceof OAuthClientFlowError;
  const text = thrown instanceof OAuthError ? `the authorization server answered "${thrown.code}"` : thrownText(thrown);
  return failure(
    `the sign-in at "${alias}" failed: ${oneLine(clip(text, isFlow ? 2 * SHOWN_CHARACTERS : 400))}`,
    thrown,
  );
}

/** The SDK's provider for one sign-in, backed by the stored credentials. */
function providerOf(options: AuthorizationOptions, redirectUrl: string, onAddress: (url: URL) => void) {
  const { store, link } = options;
  const place = { alias: options.spec.alias, url: link.url };
  const state = randomSecret();
  let verifier = '';
  let discovery: OAuthDiscoveryState | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: clientMetadataOf(redirectUrl, link.oauth),
    ...(link.oauth.clientMetadataUrl !== undefined && { clientMetadataUrl: link.oauth.clientMetadataUrl }),
    state: () => state,
    clientInformation(about) {
      const registered = registeredClient(link.oauth);
      // If the manifest names no issuer, its client is bound to the authorization server of the first sign-in.
      if (registered) return { issuer: store.read(place).client?.issuer ?? about?.issuer, ...registered };
      const { client } = store.read(place);
      const uris = client !== undefined && 'redirect_uris' in client ? (client.redirect_uris as string[]) : undefined;
      return uris !== undefined && !uris.includes(redirectUrl) ? undefined : client;
    },
    saveClientInformation(client) {
      if (link.oauth.clientId !== undefined && client.client_id !== link.oauth.clientId)
        throw failure(
          `the server now names the authorization server ${JSON.stringify(client.issuer)}, for which the manifest has no client`,
        );
      store.update(place, (before) => ({ ...before, client }));
    },
    tokens: () => store.read(place).tokens,
    saveTokens(tokens) {
      const { clientId } = link.oauth;
      // The client secret is not stored again: it is in the manifest.
      const own = clientId !== undefined && { client_id: clientId, issuer: tokens.issuer! };
      store.update(place, ({ client, pending }) => {
        // An answer without a scope grants the requested scope (RFC 6749 §5.1).
        const scope = tokens.scope ?? pending?.scope;
        return { client: own || client, tokens: { ...tokens, ...(scope !== undefined && { scope }) } };
      });
    },
    redirectToAuthorization(url) {
      const refusal = insecureAddress(url, isPrivateServer(link.url));
      if (refusal !== undefined) throw failure(`the address of the sign-in, at ${url.host}, is refused: ${refusal}`);
      if (discovery === undefined) throw failure('the authorization server was not found');
      const scope = url.searchParams.get('scope') ?? undefined;
      const pending = { state, codeVerifier: verifier, redirectUrl, scope, discovery, at: options.clock.now() };
      store.update(place, (before) => ({ ...before, pending }));
      onAddress(url);
    },
    saveCodeVerifier(given) {
      verifier = given;
    },
    codeVerifier: () => store.read(place).pending?.codeVerifier ?? verifier,
    saveDiscoveryState(found) {
      discovery = found;
    },
    discoveryState: () => discovery,
  };
  return {
    provider,
    place,
    /** Continues with a stored discovery. */
    resume: (found: OAuthDiscoveryState) => {
      discovery = found;
    },
  };
}

/** The challenge of the server for a request without a token. */
async function challengeOf({ link, clock, resolve }: AuthorizationOptions) {
  const access = authorizationFetch(link.url, clock, resolve);
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  try {
    const answer = await access.fetch(link.url, {
      method: 'POST',
      headers: { ...link.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(message),
    });
    const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(answer);
    return { scope, resourceMetadataUrl: resourceMetadataUrl?.href };
  } catch {
    // The address may be refused; the discovery that follows reports the reason.
    return {};
  } finally {
    await access.close();
  }
}

/**
 * Begins a sign-in: finds the authorization server, registers this client if needed, and makes the address that the
 * user opens. It replaces an unfinished sign-in.
 *
 * @param redirectUrl the address at which the answer arrives
 * @throws ReveilleError `unavailable` with the reason
 */
export async function beginSignIn(options: AuthorizationOptions, redirectUrl: string): Promise<SignInRequest> {
  const { store, link, clock, resolve } = options;
  const insecure = insecureServer(link.url);
  if (insecure !== undefined) throw failure(`the server "${options.spec.alias}" has no sign-in: ${insecure}`);
  let address: URL | undefined;
  const { provider, place } = providerOf(options, redirectUrl, (url) => {
    address = url;
  });
  const access = authorizationFetch(link.url, clock, resolve);
  try {
    if (store.read(place).challenge === undefined) {
      const challenge = await challengeOf(options);
      store.update(place, (before) => ({ ...before, challenge }));
    }
    const credentials = store.read(place);
    const { resourceMetadataUrl } = credentials.challenge ?? {};
    const scope = scopeToRequest(credentials, link.oauth);
    await auth(provider, {
      ...{ serverUrl: link.url, fetchFn: access.fetch, forceReauthorization: true },
      ...(scope !== undefined && { scope }),
      ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl: new URL(resourceMetadataUrl) }),
    });
    if (address === undefined) throw failure('the authorization server was not asked for consent');
    const found = provider.discoveryState!() as OAuthDiscoveryState;
    const tokenEndpoint = found.authorizationServerMetadata?.token_endpoint ?? found.authorizationServerUrl;
    return {
      url: address.href,
      host: address.host,
      accessHost: new URL(tokenEndpoint).host,
      issuer: found.authorizationServerMetadata?.issuer ?? found.authorizationServerUrl,
      scope: address.searchParams.get('scope') ?? undefined,
      clientId: address.searchParams.get('client_id') ?? '',
    };
  } catch (thrown) {
    throw translate(place.alias, thrown);
  } finally {
    await access.close();
  }
}

/**
 * Finishes a sign-in: checks the answer and stores the tokens.
 *
 * @param answer the redirect address with its query, as the browser opened it
 * @throws ReveilleError `invalid_request` for an answer to another sign-in, `forbidden` if the user or the authorization
 *   server refused, `unavailable` with the reason otherwise
 */
export async function finishSignIn(
  options: AuthorizationOptions,
  answer: string,
): Promise<{ scope: string | undefined }> {
  const { store, link, clock, resolve } = options;
  const place: Place = { alias: options.spec.alias, url: link.url };
  const { pending } = store.read(place);
  const url = URL.parse(answer.trim());
  if (pending === undefined || clock.now() - pending.at > ANSWER_MS)
    throw new ReveilleError('invalid_request', `no sign-in at "${place.alias}" waits for an answer; begin it again`);
  const { origin, pathname } = new URL(pending.redirectUrl);
  if (url === null || url.origin !== origin || url.pathname !== pathname)
    throw new ReveilleError('invalid_request', `the answer must be an address that begins with ${origin}${pathname}`);
  const parameters = url.searchParams;
  if (!sameSecret(parameters.get('state') ?? '', pending.state))
    throw new ReveilleError('invalid_request', 'the answer belongs to another sign-in; begin it again');
  const access = authorizationFetch(link.url, clock, resolve);
  const { provider, resume } = providerOf(options, pending.redirectUrl, () => {});
  resume(pending.discovery);
  // The pending sign-in is removed first, so that each is finished at most once.
  const forget = () => store.update(place, ({ pending: _, ...before }) => before);
  try {
    const { authorizationServerMetadata: metadata } = pending.discovery;
    const iss = parameters.get('iss') ?? undefined;
    // Before anything else of the answer is read (RFC 9207).
    validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata?.issuer,
      issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
    });
    const code = parameters.get('code');
    if (code === null) {
      const error = parameters.get('error') ?? '';
      const reason = /^[a-z_]{1,60}$/.test(error) ? error : 'an error';
      throw new ReveilleError('forbidden', `the sign-in at "${place.alias}" was refused: ${reason}`);
    }
    await auth(provider, {
      ...{ serverUrl: link.url, authorizationCode: code, fetchFn: access.fetch },
      ...(iss !== undefined && { iss }),
    });
    return { scope: store.read(place).tokens?.scope };
  } catch (thrown) {
    throw translate(place.alias, thrown);
  } finally {
    forget();
    await access.close();
  }
}
