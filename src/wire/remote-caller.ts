/**
 * Clients that reach the public listener with an OAuth access token (docs/reference/api.md, "MCP over HTTP"): their
 * scopes, and who they are once the token is verified.
 */

/** The scopes of access tokens. */
export const REMOTE_SCOPES = [
  ...(['alarms:read', 'alarms:write', 'conversations:read', 'time:read', 'intents:read', 'agent:ask'] as const),
] as const;
export type RemoteScope = (typeof REMOTE_SCOPES)[number];

/** Scopes that no answer asks for, and that the consent page leaves to the user to select. */
export const isOptional = (scope: RemoteScope): boolean => scope === 'conversations:read';

/** The MCP endpoints of the public listener, with the scopes that each one uses. The first one is for reading. */
export const MCP_ENDPOINTS = {
  chronos: ['alarms:read', 'alarms:write', 'conversations:read'],
  chronometric: ['time:read'],
  intents: ['intents:read'],
} as const satisfies Record<string, readonly RemoteScope[]>;
export type McpEndpoint = keyof typeof MCP_ENDPOINTS;

/** The path of an endpoint. With the listener's public address it is the resource that a token is for (RFC 8707). */
export const mcpPath = (endpoint: McpEndpoint): `/mcp/${McpEndpoint}` => `/mcp/${endpoint}`;

/** All resources: besides the MCP endpoints, the agent of a user for other agents (A2A). */
export const REMOTE_RESOURCES = {
  ...MCP_ENDPOINTS,
  a2a: ['agent:ask', 'alarms:write'],
} as const satisfies Record<string, readonly RemoteScope[]>;
export type RemoteResource = keyof typeof REMOTE_RESOURCES;

export const resourcePath = (resource: RemoteResource): string => (resource === 'a2a' ? '/a2a' : mcpPath(resource));

/** Where the metadata of a resource is (RFC 9728 §3.1). @param path of the resource */
export const metadataPath = (path: string): string => `/.well-known/oauth-protected-resource${path}`;

/** The client and the user of a verified access token. It does not contain the token. */
export type RemoteCaller = {
  /** The one user that the token may act for: a label, under which alarms are stored. */
  readonly userId: string;
  /** The user's name at the issuer. */
  readonly subject: string;
  readonly issuer: string;
  readonly clientId: string;
  /** As the issuer or the operator gives it, and never as the client does. */
  readonly clientName?: string | undefined;
  readonly scopes: ReadonlySet<RemoteScope>;
  /** When the token expires, epoch milliseconds. */
  readonly expiresAt: number;
};

/** The claims of a token that an issuer may have revoked. */
export type GrantedToken = {
  readonly subject: string;
  readonly clientId: string;
  /** The id of the token, if it has one. */
  readonly tokenId: string | undefined;
  /** Epoch milliseconds; `undefined` if the token does not say. */
  readonly issuedAt: number | undefined;
  /** All claims, verified. */
  readonly claims: Readonly<Record<string, unknown>>;
};

/** An authorization server whose tokens are accepted. */
export type TrustedIssuer = {
  /** Exactly the `iss` of its tokens. */
  readonly issuer: string;
  /** Its keys, or their address; without both, the address is taken from its metadata. */
  readonly keys?: () => Promise<{ readonly keys: readonly object[] }>;
  readonly jwksUrl?: string | undefined;
  /** The claim that names the user. */
  readonly subjectClaim: string;
  /** The user of a subject; `undefined` if the subject has no user here. */
  readonly userOf: (subject: string) => string | undefined;
  /** The name of a client; by default, the claim `client_name` of the token. */
  readonly clientNameOf?: (clientId: string) => string | undefined;
  /** Values of `aud` that this issuer uses for a resource besides its address. */
  readonly audiencesOf?: (resource: RemoteResource) => readonly string[];
  /** Whether an otherwise valid token was revoked. */
  readonly isRevoked?: (token: GrantedToken) => boolean | Promise<boolean>;
};
