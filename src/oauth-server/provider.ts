/** The configuration of the library: the enabled parts of OAuth and their restrictions. */
import {
  REMOTE_RESOURCES,
  REMOTE_SCOPES,
  type RemoteResource,
  type RemoteScope,
  resourcePath,
} from '../wire/remote-caller.ts';
import type { Artifacts } from './artifacts.ts';
import { DOCUMENT_BYTES, KEYS_BYTES, mayBeDocument, normaliseMetadata } from './client-metadata.ts';
import { type Connections, IDLE_MS } from './connections.ts';
import { isStillValid, type Persons, shownClient } from './interactions.ts';
import type { SigningKey } from './keys.ts';
import type { Client, ClientMetadata, Context, ErrorOut, Library, Provider, TokenSource } from './library.ts';
import { deviceConfirmMain, deviceMain, type Html, noticePage } from './pages.ts';

export type ProviderOptions = {
  library: Library;
  /** The issuer: the public address and `/oauth`. */
  issuer: string;
  keys: readonly SigningKey[];
  cookieSecret: string;
  artifacts: Artifacts;
  connections: Connections;
  persons: Persons;
  /** Whether clients may register themselves. */
  registration: boolean;
  /** The `fetch` for documents of clients. */
  fetch: (url: string | URL) => Promise<Response>;
  /** Whether the document of a client may be fetched for this address. */
  mayFetch: (clientId: string, remoteAddress: string) => boolean;
  page: (ctx: Context, title: string, main: Html) => Promise<void>;
};

/** Short, because resource servers in other processes cannot see that a token was revoked. */
const ACCESS_TOKEN_SECONDS = 600;
const ALG = 'ES256';
/** The claim with the id of the grant. Resource servers of this process use it to find revoked grants. */
export const GRANT_CLAIM = 'grant_id';

/** Routes below the issuer. */
export const ROUTES = {
  authorization: '/auth',
  token: '/token',
  jwks: '/jwks',
  revocation: '/revoke',
  registration: '/register',
  device_authorization: '/device/auth',
  code_verification: '/device',
} as const;

/** The resources of a public address, with their scopes. */
export function scopesOfResource(publicUrl: string, resource: string): readonly RemoteScope[] | undefined {
  return Object.entries(REMOTE_RESOURCES).find(
    ([name]) => publicUrl + resourcePath(name as RemoteResource) === canonical(resource),
  )?.[1];
}

/** The normal form of a URL, without a trailing slash. */
const canonical = (resource: string): string => (URL.parse(resource)?.href ?? '').replace(/\/$/, '');

function policyOf({ library: { interactionPolicy } }: ProviderOptions): object {
  const { base, Check } = interactionPolicy;
  const policy = base();
  // Browsers send cookies to every port: on the user's computer, any local server may get the session cookie.
  policy
    .get('login')
    .checks.add(new Check('always', 'every request needs a sign-in of its own', ({ oidc }) => !oidc.result?.login));
  // Local clients can be imitated, and any page can begin a request, so each request asks for consent.
  policy
    .get('consent')
    .checks.add(
      new Check('always', 'every request needs the consent of the user', ({ oidc }) => !oidc.result?.consent),
    );
  return policy;
}

function resourceIndicators({ library: { errors }, issuer }: ProviderOptions): object {
  const publicUrl = issuer.slice(0, issuer.lastIndexOf('/'));
  return {
    enabled: true,
    defaultResource: async (_ctx: Context, _client: Client, oneOf?: unknown) => {
      if (oneOf !== undefined) return oneOf;
      throw new errors.InvalidTarget('resource is missing: name the MCP endpoint that the token is for (RFC 8707)');
    },
    useGrantedResource: async () => true,
    getResourceServerInfo: async ({ oidc }: Context, resource: string) => {
      const scopes = scopesOfResource(publicUrl, resource);
      if (scopes === undefined) throw new errors.InvalidTarget('resource is not an MCP endpoint of this server');
      // A request without scopes asks for all scopes of the resource; the user selects among them.
      oidc.params.scope ??= scopes.join(' ');
      return {
        ...{ scope: scopes.join(' '), audience: canonical(resource), accessTokenTTL: ACCESS_TOKEN_SECONDS },
        ...{ accessTokenFormat: 'jwt', jwt: { sign: { alg: ALG } } },
      };
    },
  };
}

function deviceFlow({ page }: ProviderOptions, base: string): object {
  const action = base + ROUTES.code_verification;
  const secretOf = ({ oidc }: Context) => oidc.session?.state?.secret ?? '';
  return {
    enabled: true,
    ...{ charset: 'base-20', mask: '****-****' },
    deviceInfo: () => ({}),
    userCodeInputSource: (ctx: Context, _form: string, _out: unknown, error?: Error & { userCode?: string }) => {
      const complaint = error === undefined ? undefined : DEVICE_ERRORS[error.name];
      const given = error === undefined ? codeIn(ctx) : '';
      if (error?.name === 'AbortedError')
        return page(ctx, 'Denied', noticePage('Denied', 'The device gets no access.', 'good'));
      const why = error === undefined ? undefined : (complaint ?? 'This did not work. Start again on the device.');
      return page(ctx, 'Connect a device', deviceMain({ action, xsrf: secretOf(ctx), code: given, complaint: why }));
    },
    userCodeConfirmSource: (ctx: Context, _form: string, client: Client, _info: unknown, code: string) => {
      const main = deviceConfirmMain({ action, xsrf: secretOf(ctx), code, client: shownClient(client) });
      return page(ctx, 'Connect a device', main);
    },
    successSource: (ctx: Context) =>
      page(ctx, 'Connected', noticePage('Connected', 'The device has access now. You can close this page.', 'good')),
  };
}

const DEVICE_ERRORS: Readonly<Record<string, string>> = {
  NoCodeError: 'Enter the code.',
  NotFoundError: 'This code is not valid.',
  ExpiredError: 'This code has expired. Start again on the device.',
  AlreadyUsedError: 'This code was already used. Start again on the device.',
};

/** The code in the address that a device shows. It fills the field; only the user submits it. */
const codeIn = ({ req }: Context): string => {
  const code = URL.parse(req.url ?? '', 'http://device')?.searchParams.get('code') ?? '';
  return /^[A-Za-z-]{1,20}$/.test(code) ? code : '';
};

/** The cookie that connects the steps of one request. */
export const sessionCookie = (issuer: string): string =>
  issuer.startsWith('https:') ? '__Secure-reveille-oauth' : 'reveille-oauth';

/** @throws as the library, for a wrong configuration */
export function createProvider(options: ProviderOptions): Provider {
  const { library, issuer, keys, cookieSecret, artifacts, connections, page, mayFetch } = options;
  const base = new URL(issuer).pathname;
  const session = sessionCookie(issuer);
  const provider = new library.Provider(issuer, {
    adapter: (model: string) => artifacts.of(model),
    jwks: { keys: keys.map(({ jwk }) => jwk) },
    clientDefaults: {
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
      ...{ token_endpoint_auth_method: 'none', id_token_signed_response_alg: ALG },
    },
    clientAuthMethods: ['none', 'private_key_jwt'],
    // Tokens need a code verifier or a refresh token, and no cookie.
    clientBasedCORS: () => true,
    cookies: {
      keys: [cookieSecret],
      names: { session, interaction: `${session}-request`, resume: `${session}-resume` },
      long: { httpOnly: true, sameSite: 'lax', path: base },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    features: {
      ...off('devInteractions', 'dPoP', 'pushedAuthorizationRequests', 'rpInitiatedLogout', 'userinfo'),
      clientIdMetadataDocument: {
        ...{ enabled: true, ack: 'draft-02', cacheDuration: { min: 300, max: 86_400 } },
        allowFetch: async (ctx: Context | undefined, id: string) =>
          mayBeDocument(id) && mayFetch(id, ctx?.req.socket.remoteAddress ?? ''),
      },
      deviceFlow: deviceFlow(options, base),
      registration: { enabled: options.registration, issueRegistrationAccessToken: false },
      resourceIndicators: resourceIndicators(options),
      revocation: {
        enabled: true,
        allowedPolicy: async (_ctx: Context, { clientId }: Client, token: { clientId: string }) =>
          token.clientId === clientId,
      },
    },
    extraClientMetadata: {
      // The library calls the check once for each name, with all metadata.
      properties: ['software_id'],
      validator: (_ctx: unknown, _name: string, _value: unknown, metadata: ClientMetadata) =>
        normaliseMetadata(metadata, (why) => new library.errors.InvalidClientMetadata(why)),
    },
    extraTokenClaims: async (_ctx: Context, { grantId }: TokenSource) => {
      if (grantId === undefined) return undefined;
      await connections.used(grantId);
      return { [GRANT_CLAIM]: grantId };
    },
    fetch: options.fetch,
    fetchResponseBodyLimits: { 'client_id metadata document': DOCUMENT_BYTES, jwks_uri: KEYS_BYTES },
    findAccount: async (_ctx: Context, sub: string, token?: TokenSource) => {
      if (token && !mayHaveTokens(token, options)) return undefined;
      return { accountId: sub, claims: async () => ({ sub }) };
    },
    interactions: {
      policy: policyOf(options),
      url: (_ctx: Context, { uid }: { uid: string }) => `${base}/interaction/${uid}`,
    },
    loadExistingGrant: async ({ oidc }: Context) => {
      const id = oidc.result?.consent?.grantId;
      return id === undefined ? undefined : oidc.provider.Grant.find(id);
    },
    ...{ allowOmittingSingleRegisteredRedirectUri: false, pkce: { required: () => true } },
    ...{ responseTypes: ['code'], routes: ROUTES, scopes: ['offline_access'], subjectTypes: ['public'] },
    ...{ rotateRefreshToken: true, expiresWithSession: async () => false },
    issueRefreshToken: async (_ctx: Context, client: Client) => client.grantTypeAllowed('refresh_token'),
    renderError: (ctx: Context, { error, error_description: why }: ErrorOut) =>
      page(
        ctx,
        'Error',
        noticePage('This request does not work', `${why ?? error}. Start again in the client.`, 'bad'),
      ),
    ttl: {
      ...{ AccessToken: ACCESS_TOKEN_SECONDS, AuthorizationCode: 60, DeviceCode: 600, IdToken: 600 },
      ...{ Interaction: 900, Session: 1800, RefreshToken: IDLE_MS / 1000, Grant: 365 * 86_400 },
    },
  });
  // The scheme of the issuer, which the bridge sets.
  provider.proxy = true;
  provider.use(strict(options));
  return provider;
}

const off = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { enabled: false }]));

/** Whether a code or refresh token is still valid: its connection exists, and its sign-in's credential is valid. */
function mayHaveTokens({ grantId, amr }: TokenSource, { connections, persons }: ProviderOptions): boolean {
  return grantId !== undefined && connections.get(grantId) !== undefined && isStillValid(amr, persons);
}

/** The error that a redirect brings to a client; `undefined` for any other redirect. */
function failureIn(location: string): string | undefined {
  const { search = '', hash = '' } = URL.parse(location) ?? {};
  // The library answers some response types in the fragment.
  const given = [search, hash.slice(1)].map((text) => new URLSearchParams(text)).find((one) => one.has('error'));
  return given && `${given.get('error_description') ?? 'The request is wrong'} (${given.get('error')})`;
}

/** Disables features that the library cannot turn off, and removes them from the metadata. */
function strict({ page }: ProviderOptions) {
  return async (ctx: Context, next: () => Promise<void>): Promise<void> => {
    const { response_mode: mode } = ctx.query;
    if (ctx.path === ROUTES.authorization && mode !== undefined && mode !== 'query') {
      ctx.status = 400;
      await page(ctx, 'Error', noticePage('This request does not work', 'response_mode must be query.', 'bad'));
      return;
    }
    await next();
    const failure = ctx.path === ROUTES.authorization ? failureIn(ctx.response.get('location')) : undefined;
    if (failure) {
      // Any client can register any address: without a page, a link to this server would lead anywhere (RFC 9700 §4.11.2).
      ctx.remove('location');
      ctx.status = 400;
      await page(
        ctx,
        'Error',
        noticePage('This request does not work', `${failure}. Start again in the client.`, 'bad'),
      );
      return;
    }
    if (ctx.path.startsWith('/.well-known/') && typeof ctx.body === 'object' && ctx.body !== null) {
      const {
        claims_parameter_supported: _,
        claims_supported: __,
        claim_types_supported: ___,
        ...rest
      } = ctx.body as Record<string, unknown>;
      ctx.body = { ...rest, response_modes_supported: ['query'], scopes_supported: REMOTE_SCOPES };
    }
  };
}
