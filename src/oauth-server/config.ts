/** The settings of the authorization server (docs/reference/settings.md). The router's process reads them. */
import { join } from 'node:path';
import { z } from 'zod';
import { isLoopback } from '../kit/http/listener-settings.ts';
import { ReveilleError } from '../wire/errors.ts';
import { isOnThisComputer, parseSettings, type Settings, switchSetting } from '../wire/settings.ts';

/** The variables of the authorization server. */
export const oauthServerSettingsSchema = z.object({
  /** Serves the authorization server for MCP clients at `/oauth` of the public listener. */
  ROUTER_OAUTH: switchSetting.default(false),
  /** Lets any client register itself there (RFC 7591), for clients that have no metadata document. */
  ROUTER_OAUTH_REGISTRATION: switchSetting.default(false),
  /** Hosts of private networks from which documents of clients may be read, `host` or `host:port`, separated by commas. */
  ROUTER_OAUTH_ALLOW: z.string().optional(),
});

export type OauthServerConfig = Readonly<{
  /** The folder of its database and its keys. */
  dataDir: string;
  /** The folder of the installation, where its library may be. */
  home: string | undefined;
  /** Whether clients may register themselves. */
  registration: boolean;
  /** Private hosts of client documents. */
  allow: string | undefined;
}>;

/** The folder of the database, also while the server is off. @throws ReveilleError `invalid_request` */
export function oauthDataDir({ ROUTER_DATA_DIR, REVEILLE_HOME }: Settings): string {
  if (ROUTER_DATA_DIR) return ROUTER_DATA_DIR;
  if (REVEILLE_HOME) return join(REVEILLE_HOME, 'router');
  throw new ReveilleError('invalid_request', 'ROUTER_DATA_DIR or REVEILLE_HOME must be set');
}

/** Why clients cannot use the public address; completes the sentence "ROUTER_OAUTH is on, and …". */
function problemOf(settings: Settings): string | undefined {
  const { ROUTER_PUBLIC_URL: url, ROUTER_PUBLIC_HOST: host, ROUTER_PUBLIC_TLS: proxy } = settings;
  if (!url) {
    if (!proxy && !settings.ROUTER_PUBLIC_TLS_CERT && (!host || isLoopback(host))) return undefined;
    return 'tokens contain the public address: set ROUTER_PUBLIC_URL, such as https://reveille.example.com';
  }
  const { protocol, pathname } = URL.parse(url) ?? {};
  if (protocol === 'http:' && !isOnThisComputer(url))
    return `clients need TLS: ROUTER_PUBLIC_URL must begin with https:// (got ${url})`;
  return pathname === '/'
    ? undefined
    : `its metadata are at the root of the host: ROUTER_PUBLIC_URL must have no path (got ${url})`;
}

/**
 * Reads the settings.
 *
 * @returns `undefined` when the server is off
 * @throws ReveilleError `invalid_request` naming the setting
 */
export function parseOauthServerConfig(settings: Settings): OauthServerConfig | undefined {
  const values = parseSettings(oauthServerSettingsSchema, settings);
  if (!values.ROUTER_OAUTH) return undefined;
  const problem = problemOf(settings);
  if (problem !== undefined) throw new ReveilleError('invalid_request', `ROUTER_OAUTH is on, and ${problem}`);
  const { REVEILLE_HOME: home } = settings;
  return Object.freeze({
    dataDir: oauthDataDir(settings),
    home,
    registration: values.ROUTER_OAUTH_REGISTRATION,
    allow: values.ROUTER_OAUTH_ALLOW,
  });
}
