/**
 * Authorization at an MCP server by OAuth 2.1 (MCP authorization, revision 2026-07-28). The host uses and renews tokens
 * that the user has consented to; it never asks for consent itself. The SDK implements the protocol: discovery (RFC
 * 9728, RFC 8414, OpenID Connect), PKCE, client registration, and the checks of issuer and resource.
 */
import {
  type AuthProvider,
  auth,
  computeScopeUnion,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type InsufficientScopeError,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  OAuthError,
  refreshAuthorization,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  selectResourceURL,
} from '@modelcontextprotocol/client';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Resolve } from '../../kit/http/guarded-lookup.ts';
import { clip } from '../../kit/text/excerpt.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { HttpLink, OAuthSettings, ServerSpec } from '../manifest.ts';
import {
  type AuthorizationFetch,
  authorizationFetch,
  insecureAddress,
  isPrivateServer,
} from './authorization-fetch.ts';
import { type Credentials, lacksSignIn, type Place, type TokenStore } from './token-store.ts';

/** The server requires a sign-in of the user. */
export class SignInRequired extends Error {
  override name = 'SignInRequired';
  /** Whether the user is signed in, but the server requires more scopes. */
  readonly isForMore: boolean;

  /** @param why finishes the sentence "the server needs sign-in: …" */
  constructor(why: string, isForMore = false) {
    super(`needs sign-in: ${why}`);
    this.isForMore = isForMore;
  }
}

/** Why no token may be sent to a server; `undefined` if it may. */
export function insecureServer(url: string): string | undefined {
  const refusal = insecureAddress(url, isPrivateServer(url));
  return refusal === undefined ? undefined : `its address would expose the tokens: ${refusal}`;
}

/** Finds the missing sign-in in an error and its causes. */
export function signInRequired(thrown: unknown): SignInRequired | undefined {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof SignInRequired) return at;
  }
  return undefined;
}

export type AuthorizationOptions = {
  spec: Pick<ServerSpec, 'alias'>;
  link: HttpLink & { oauth: OAuthSettings };
  store: TokenStore;
  clock: Clock;
  /** Resolves names; the system's resolver by default. */
  resolve?: Resolve | undefined;
};

const SCOPE_CHARACTERS = 200;
const shownScope = (scope: string) => oneLine(clip(scope, SCOPE_CHARACTERS));
/** An issuer for comparisons. As in the SDK, a slash at the end is ignored. */
const bare = (issuer: string) => issuer.replace(/\/$/, '');

/** The registered client that the manifest names for a server. */
export function registeredClient({
  clientId,
  clientSecret,
  issuer,
}: OAuthSettings): StoredOAuthClientInformation | undefined {
  if (clientId === undefined) return undefined;
  return {
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
    ...(issuer !== undefined && { issuer }),
  };
}

/** Uses the stored tokens of one server, and renews them. */
export class ServerAuthorization implements AuthProvider {
  readonly #options: AuthorizationOptions;
  readonly #place: Place;
  /** The access token of the last request. */
  #used: string | undefined;

  constructor(options: AuthorizationOptions) {
    this.#options = options;
    this.#place = { alias: options.spec.alias, url: options.link.url };
  }

  async token(): Promise<string | undefined> {
    // On an insecure connection, others could read the token.
    if (insecureServer(this.#place.url) !== undefined) return undefined;
    this.#used = this.#options.store.read(this.#place).tokens?.access_token;
    return this.#used;
  }

  /** Renews the tokens. @throws SignInRequired, or Error when the authorization server does not answer */
  async onUnauthorized({ response }: { response: Response }): Promise<void> {
    const { store, link } = this.#options;
    const insecure = insecureServer(link.url);
    if (insecure !== undefined) throw new SignInRequired(insecure);
    const used = this.#used;
    const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
    const metadataUrl = resourceMetadataUrl?.href;
    await store.exclusively(this.#place, async () => {
      const before = store.read(this.#place);
      // Another connection or process has just renewed them.
      if (before.tokens !== undefined && before.tokens.access_token !== used) return;
      const { tokens } = before;
      // Scopes that an earlier call lacked are still missing.
      const wanted = tokens === undefined ? scope : computeScopeUnion(before.challenge?.scope, scope);
      const challenge = { scope: wanted, resourceMetadataUrl: metadataUrl };
      if (link.oauth.grant === 'client_credentials') return this.#ownToken(challenge);
      const registered = registeredClient(link.oauth);
      const client = before.client && registered ? { ...before.client, ...registered } : before.client;
      if (JSON.stringify(before.challenge) !== JSON.stringify(challenge))
        store.write(this.#place, { ...before, challenge });
      if (tokens === undefined || client === undefined) throw new SignInRequired('the user has not signed in');
      if (tokens.refresh_token === undefined) throw new SignInRequired('the sign-in has expired');
      await this.#renew({ tokens, client }, resourceMetadataUrl);
    });
  }

  /** Records the scope of a refused request whose token was valid. @returns the error for the caller */
  insufficient({ requiredScope, resourceMetadataUrl }: InsufficientScopeError): SignInRequired {
    const { store } = this.#options;
    const challenge = { scope: requiredScope, resourceMetadataUrl: resourceMetadataUrl?.href };
    store.update(this.#place, (before) => ({ ...before, challenge }));
    const what = requiredScope === undefined ? 'more scopes' : `the scope ${shownScope(requiredScope)}`;
    return new SignInRequired(`the server requires ${what}`, true);
  }

  async #renew(
    { tokens, client }: { tokens: StoredOAuthTokens; client: StoredOAuthClientInformation },
    resourceMetadataUrl: URL | undefined,
  ): Promise<void> {
    const { store, link } = this.#options;
    await this.#reach(async ({ fetch: fetchFn }) => {
      const found = await discoverOAuthServerInfo(link.url, {
        ...(resourceMetadataUrl && { resourceMetadataUrl }),
        fetchFn,
      });
      const { authorizationServerMetadata: metadata, authorizationServerUrl, resourceMetadata } = found;
      const issuer = metadata?.issuer ?? authorizationServerUrl;
      // Tokens and secrets of one authorization server must not be sent to another.
      if (bare(issuer) !== bare(tokens.issuer ?? '') || bare(issuer) !== bare(client.issuer ?? ''))
        throw new SignInRequired(
          `the server now names the authorization server ${oneLine(clip(issuer, SCOPE_CHARACTERS))}`,
        );
      await selectResourceURL(link.url, {} as OAuthClientProvider, resourceMetadata);
      const renewing = refreshAuthorization(authorizationServerUrl, {
        ...{ clientInformation: client, refreshToken: tokens.refresh_token!, fetchFn },
        ...(metadata && { metadata }),
        ...(resourceMetadata && { resource: resourceMetadata.resource }),
      });
      const fresh = await renewing.catch((thrown: unknown) => {
        // The text of the answer is not passed on, because it may contain the token.
        if (!(thrown instanceof OAuthError)) throw thrown instanceof TypeError ? thrown : new Error(UNREADABLE);
        if (!REFUSALS.has(thrown.code)) throw new Error(`the authorization server answered "${thrown.code}"`);
        store.update(this.#place, ({ tokens: _, ...rest }) => rest);
        throw new SignInRequired('the authorization server does not renew the sign-in');
      });
      // A renewed token without a scope has the granted scope (RFC 6749 §5.1).
      const scope = fresh.scope ?? tokens.scope;
      const renewed = { ...fresh, issuer, ...(scope !== undefined && { scope }) };
      store.update(this.#place, (before) => {
        const after = { ...before, tokens: renewed };
        return lacksSignIn(after) ? after : { ...after, challenge: undefined };
      });
    });
  }

  /** Gets a token for the client itself, without a user. */
  async #ownToken(challenge: { scope: string | undefined; resourceMetadataUrl: string | undefined }): Promise<void> {
    const { store, link } = this.#options;
    const registered = registeredClient(link.oauth);
    // Without an issuer in the manifest, the client is bound to the first authorization server that received it.
    const first = store.read(this.#place).client?.issuer;
    const client = registered && { ...(first !== undefined && { issuer: first }), ...registered };
    const provider: OAuthClientProvider = {
      redirectUrl: undefined,
      clientMetadata: { redirect_uris: [], grant_types: ['client_credentials'] },
      clientInformation: () => client,
      tokens: () => undefined,
      saveTokens: (tokens) => {
        const { issuer = '' } = tokens;
        store.write(this.#place, { client: { client_id: registered!.client_id, issuer }, tokens });
      },
      redirectToAuthorization() {},
      saveCodeVerifier() {},
      codeVerifier: () => '',
      prepareTokenRequest: (scope) =>
        new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }),
    };
    const scope = link.oauth.scope ?? challenge.scope;
    const resourceMetadataUrl =
      challenge.resourceMetadataUrl === undefined ? undefined : new URL(challenge.resourceMetadataUrl);
    await this.#reach(async ({ fetch: fetchFn }) => {
      await auth(provider, {
        ...{ serverUrl: link.url, fetchFn },
        ...(scope !== undefined && { scope }),
        ...(resourceMetadataUrl && { resourceMetadataUrl }),
      });
    });
  }

  async #reach(run: (access: AuthorizationFetch) => Promise<void>): Promise<void> {
    const { link, clock, resolve } = this.#options;
    const access = authorizationFetch(link.url, clock, resolve);
    try {
      await run(access);
    } finally {
      await access.close();
    }
  }
}

const UNREADABLE = 'the answer of the authorization server cannot be read';

/** Errors after which a refresh token is useless (RFC 6749 §5.2). */
const REFUSALS = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client']);

/** The scope to request. It includes the granted scopes, so that none is lost (SEP-2350). */
export function scopeToRequest({ tokens, challenge }: Credentials, { scope }: OAuthSettings): string | undefined {
  return computeScopeUnion(scope, tokens?.scope, challenge?.scope);
}

/** The metadata with which this client registers at an authorization server. */
export function clientMetadataOf(redirectUrl: string, { scope }: OAuthSettings): OAuthClientMetadata {
  return {
    client_name: 'Reveille',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    ...(scope !== undefined && { scope }),
  };
}
