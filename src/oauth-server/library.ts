/**
 * The library of the authorization server, `oidc-provider` (https://github.com/panva/node-oidc-provider). It is an
 * optional peer dependency, because few installations need it, and is loaded only if the server is on. It has no type
 * declarations: this file declares the used parts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import { parseOauthServerConfig } from './config.ts';

/** Metadata of a client (RFC 7591), as the client sends them. */
export type ClientMetadata = {
  redirect_uris?: unknown;
  application_type?: string;
  [name: string]: unknown;
};

export type Client = {
  readonly clientId: string;
  readonly clientName?: string;
  readonly clientUri?: string;
  readonly clientAuthMethod: string;
  /** Only of a client with a metadata document. */
  readonly clientIdMetadataDocument?: true;
  grantTypeAllowed(type: string): boolean;
};

export type Grant = {
  readonly jti: string;
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  rejectResourceScope(resource: string, scope: string): void;
  /** @returns its id */
  save(): Promise<string>;
};

/** A token, code or other artifact that belongs to an account. */
export type TokenSource = { readonly amr?: readonly string[]; readonly grantId?: string };

export type Session = { readonly state?: { readonly secret: string } };

/** A request that waits for the user's sign-in or consent. */
export type Interaction = {
  readonly uid: string;
  readonly prompt: { readonly name: string };
  readonly params: Readonly<Record<string, unknown>>;
  readonly session?: { readonly accountId: string; readonly amr?: readonly string[] };
  /** The id of a device code; absent in a browser's own request. */
  readonly deviceCode?: string;
};

export type InteractionResult =
  | { readonly login: { readonly accountId: string; readonly amr: readonly string[]; readonly remember: boolean } }
  | { readonly consent: { readonly grantId: string } }
  | { readonly error: string; readonly error_description: string };

/** A request within the library (a context of Koa). */
export type Context = {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string | string[] | undefined>>;
  readonly req: IncomingMessage;
  readonly response: { get(header: string): string };
  remove(header: string): void;
  status: number;
  type: string;
  body: unknown;
  readonly oidc: {
    readonly route?: string;
    readonly params: Record<string, unknown>;
    readonly session?: Session;
    readonly client?: Client;
    readonly result?: { readonly login?: object; readonly consent?: { readonly grantId: string } };
    readonly provider: Provider;
  };
};

export type ErrorOut = { readonly error: string; readonly error_description?: string };

type Model<T> = { find(id: string): Promise<T | undefined> };

export type Provider = {
  /** Whether the library trusts proxy headers. `bridge.ts` sets them and drops those of the client. */
  proxy: boolean;
  callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>;
  use(middleware: (ctx: Context, next: () => Promise<void>) => Promise<void>): void;
  on(event: 'server_error', listener: (ctx: Context, error: Error) => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
  /** @throws the library's `SessionNotFound` */
  interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>;
  /** @returns the address where the request continues */
  interactionResult(req: IncomingMessage, res: ServerResponse, result: InteractionResult): Promise<string>;
  readonly Client: Model<Client>;
  readonly Grant: Model<Grant> &
    (new (of: {
      readonly jti: string;
      readonly accountId: string;
      readonly clientId: string;
    }) => Grant);
};

/** A reason to ask the user. */
type Check = object;
type Checks = { add(check: Check): void };
type Policy = { get(prompt: 'login' | 'consent'): { readonly checks: Checks } };

export type Library = {
  readonly Provider: new (issuer: string, configuration: object) => Provider;
  readonly interactionPolicy: {
    base(): Policy;
    readonly Check: new (reason: string, description: string, check: (ctx: Context) => boolean) => Check;
  };
  readonly errors: Readonly<
    Record<
      'InvalidClientMetadata' | 'InvalidGrant' | 'InvalidRequest' | 'InvalidTarget' | 'SessionNotFound',
      new (
        description?: string,
      ) => Error
    >
  >;
};

/** The only supported version: the server uses a feature that the library calls experimental. */
export const LIBRARY_VERSION = '9.13.3';
// Not a literal in the import, so that bundlers do not include the library.
const LIBRARY = 'oidc-provider';

type Located = { readonly entry: string; readonly version: string };

function locate(folder: string): Located | undefined {
  const require = createRequire(join(folder, 'package.json'));
  try {
    const { version } = require(`${LIBRARY}/package.json`) as { version: string };
    return { entry: require.resolve(LIBRARY), version };
  } catch {
    return undefined;
  }
}

/**
 * Finds the library: beside this program, or in the folder of the installation.
 *
 * @param program a folder of this program
 * @returns the file to import
 * @throws ReveilleError `unavailable` with the command that installs it
 */
export function locateLibrary(home: string | undefined, program = import.meta.dirname): string {
  const folders = [program, ...(home === undefined ? [] : [home])];
  const found = folders.map(locate).filter((located) => located !== undefined);
  const fitting = found.find(({ version }) => version === LIBRARY_VERSION);
  if (fitting) return fitting.entry;
  const where = home === undefined ? '' : ` --prefix ${home}`;
  const state = found[0] ? `but ${found[0].version} is installed` : 'which is not installed';
  const message = `ROUTER_OAUTH needs the package ${LIBRARY} ${LIBRARY_VERSION}, ${state}; install it with: npm install${where} ${LIBRARY}@${LIBRARY_VERSION}`;
  throw new ReveilleError('unavailable', message, { retryable: false });
}

/** @throws as {@link locateLibrary} */
export async function loadLibrary(home: string | undefined): Promise<Library> {
  return (await import(pathToFileURL(locateLibrary(home)).href)) as Library;
}

/** Checks the settings, and the library if the server is on. @throws ReveilleError for either */
export function checkOauthServer(settings: Settings): void {
  const config = parseOauthServerConfig(settings);
  if (config) locateLibrary(config.home);
}
