/** The settings of MCP over HTTP (docs/reference/settings.md). The router's process reads them. */
import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { labelSchema } from '../wire/did.ts';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import { REMOTE_RESOURCES, type RemoteResource, type TrustedIssuer } from '../wire/remote-caller.ts';
import { isOnThisComputer, parseSettings, type Settings } from '../wire/settings.ts';
import { shortText } from '../wire/text.ts';
import { parseOrThrow } from '../wire/validate.ts';

/** The variables of MCP over HTTP. */
export const mcpHttpSettingsSchema = z.object({
  /**
   * The authorization servers whose tokens count, as a JSON list or as the absolute path of a file with it. Without it
   * and without `ROUTER_OAUTH`, there is no MCP over HTTP.
   */
  ROUTER_MCP_ISSUERS: z.string().max(1_000_000).optional(),
  /**
   * Hosts of private networks from which keys of issuers may be read, `host` or `host:port`, separated by commas. The
   * hosts of the configured addresses need no entry.
   */
  ROUTER_MCP_ALLOW: z.string().optional(),
  /**
   * Hosts of private networks that callbacks of events may name, `host` or `host:port`, separated by commas. They may use
   * http://.
   */
  ROUTER_MCP_CALLBACK_ALLOW: z.string().optional(),
  /** Web pages that may call the MCP endpoints, such as `https://inspector.example.com`, separated by commas. */
  ROUTER_MCP_ORIGINS: z.string().optional(),
});

const https = 'must be an https:// address without a query; http:// is only for this computer';
const address = z
  .url({ protocol: /^https?$/, error: https })
  .max(2000)
  .refine((url) => url.startsWith('https:') || isOnThisComputer(url), https)
  .refine((url) => !/[?#]/.test(url) && URL.parse(url)?.username === '', https);

const name = shortText(100).min(1);

const issuerSchema = z.strictObject({
  issuer: address,
  /** The address of its keys; by default the one that its metadata name. */
  jwks: address.optional(),
  subject: z.string().min(1).max(100).default('sub'),
  /** `"subject"`: the subject is the user id. Use it only for an authorization server that the operator runs. */
  users: z.union([z.literal('subject'), z.record(z.string().min(1).max(500), labelSchema)], {
    error: 'must be "subject", or an object from subject to user id',
  }),
  clients: z.record(z.string().min(1).max(500), name).default({}),
  audiences: z
    .partialRecord(z.enum(Object.keys(REMOTE_RESOURCES) as [RemoteResource]), z.string().min(1).max(500))
    .default({}),
});
const issuersSchema = z.strictObject({ ROUTER_MCP_ISSUERS: z.array(issuerSchema).min(1).max(20) });

export type McpHttpConfig = Readonly<{
  issuers: readonly TrustedIssuer[];
  /** Private hosts from which keys may be read, `host:port`. */
  allow: string;
  /** Private hosts that callbacks may name, `host:port`. */
  callbackAllow: string | undefined;
  /** Accepted values of `Origin`. */
  origins: readonly string[];
}>;

/** @throws ReveilleError `invalid_request` */
function textOf(given: string): string {
  if (/^\s*\[/.test(given)) return given;
  if (!isAbsolute(given))
    throw new ReveilleError(
      'invalid_request',
      'ROUTER_MCP_ISSUERS must be a JSON list, or the absolute path of a file with it',
    );
  try {
    return readFileSync(given, 'utf8');
  } catch (cause) {
    const why = `its file cannot be read (${thrownText(cause)})`;
    throw new ReveilleError('invalid_request', `ROUTER_MCP_ISSUERS: ${why}`, { cause });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const example = '[{"issuer":"https://login.example.com","users":{"user-1":"ada"}}]';
    throw new ReveilleError('invalid_request', `ROUTER_MCP_ISSUERS must be JSON, such as ${example}`, { cause });
  }
}

type IssuerEntry = z.output<typeof issuerSchema>;

function trustedIssuer({ issuer, jwks, subject, users, clients, audiences }: IssuerEntry): TrustedIssuer {
  const known = users === 'subject' ? undefined : new Map(Object.entries(users));
  const names = new Map(Object.entries(clients));
  const own = (label: string) => (labelSchema.safeParse(label).success ? label : undefined);
  return {
    issuer,
    jwksUrl: jwks,
    subjectClaim: subject,
    userOf: (given) => (known === undefined ? own(given) : known.get(given)),
    clientNameOf: (clientId) => names.get(clientId),
    audiencesOf: (resource) => [audiences[resource] ?? []].flat(),
  };
}

const hostAndPort = (url: string) => {
  const { protocol, hostname, port } = new URL(url);
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
};

const listed = (text = '') => text.split(',').flatMap((entry) => entry.trim() || []);

/** @throws ReveilleError `invalid_request` */
function originsOf(text: string | undefined): string[] {
  return listed(text).map((entry) => {
    const origin = URL.parse(entry)?.origin;
    if (origin === entry && /^https?:/.test(entry)) return entry;
    throw new ReveilleError(
      'invalid_request',
      `ROUTER_MCP_ORIGINS must be origins, such as https://inspector.example.com (got ${JSON.stringify(entry)})`,
    );
  });
}

/**
 * Reads the settings.
 *
 * @param own issuers besides the configured ones, such as the authorization server of this installation
 * @returns `undefined` without an issuer: MCP over HTTP is disabled
 * @throws ReveilleError `invalid_request` naming the setting
 */
export function parseMcpHttpConfig(settings: Settings, own: readonly TrustedIssuer[] = []): McpHttpConfig | undefined {
  const values = parseSettings(mcpHttpSettingsSchema, settings);
  const { ROUTER_MCP_ISSUERS, ROUTER_MCP_ALLOW, ROUTER_MCP_ORIGINS } = values;
  const entries =
    ROUTER_MCP_ISSUERS === undefined
      ? []
      : parseOrThrow(issuersSchema, { ROUTER_MCP_ISSUERS: jsonOf(textOf(ROUTER_MCP_ISSUERS)) }).ROUTER_MCP_ISSUERS;
  const issuers = [...own, ...entries.map(trustedIssuer)];
  if (issuers.length === 0) return undefined;
  const twice = issuers.find(({ issuer }, at) => issuers.findIndex((other) => other.issuer === issuer) !== at);
  if (twice)
    throw new ReveilleError('invalid_request', `ROUTER_MCP_ISSUERS names ${twice.issuer} twice; remove one entry`);
  const configured = entries.flatMap(({ issuer, jwks }) => [issuer, ...(jwks === undefined ? [] : [jwks])]);
  return Object.freeze({
    issuers,
    allow: [...configured.map(hostAndPort), ...listed(ROUTER_MCP_ALLOW)].join(','),
    callbackAllow: values.ROUTER_MCP_CALLBACK_ALLOW,
    origins: originsOf(ROUTER_MCP_ORIGINS),
  });
}
