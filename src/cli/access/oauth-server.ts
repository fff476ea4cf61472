/**
 * The authorization server of this installation, for the listener, the console and the resource servers of the same
 * process. Its code and its library are loaded with the first request.
 */
import type { ConnectedClient, ConnectedClients } from '../../console/backend.ts';
import { hostOfClient } from '../../oauth-server/client-metadata.ts';
import { type OauthServerConfig, parseOauthServerConfig } from '../../oauth-server/config.ts';
import type { Connection } from '../../oauth-server/connections.ts';
import type { SignedIn } from '../../oauth-server/interactions.ts';
import { locateLibrary } from '../../oauth-server/library.ts';
import { isOfOauthServer, OAUTH_BODY_BYTES, OAUTH_PATH } from '../../oauth-server/paths.ts';
import type { OauthServer } from '../../oauth-server/server.ts';
import { hasStore } from '../../oauth-server/store.ts';
import type { PublicConfig } from '../../router/config.ts';
import type { PublicService, ServiceParts } from '../../router/public/listener.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { TrustedIssuer } from '../../wire/remote-caller.ts';
import type { CliContext } from '../context.ts';
import { accountName } from '../home/home.ts';

/** Why a console shows no connected clients. */
export const NO_OAUTH =
  'The authorization server for MCP clients is off. The operator turns it on with ROUTER_OAUTH=1.';

/** Uses a one-time code of the console; `undefined` for an invalid one. */
export type RedeemCode = (code: string) => Promise<SignedIn | undefined>;

export const connectedClient = (connection: Connection): ConnectedClient => {
  const { id, clientId, clientName: name, redirectHost: goesTo, scopes, createdAt, usedAt } = connection;
  return { id, clientId, host: hostOfClient(clientId), name, goesTo, scopes, createdAt, usedAt };
};

/** Maximum length of a user's name in alarms. */
const NAME_MAX = 100;
const shortHostOf = (clientId: string): string | undefined => {
  const host = hostOfClient(clientId);
  return host !== undefined && host.length <= NAME_MAX ? host : undefined;
};

export class OauthAccess {
  /** Trusted by the resource servers of this process. */
  readonly issuer: TrustedIssuer;
  readonly #context: CliContext;
  readonly #config: OauthServerConfig;
  readonly #redeem: RedeemCode | undefined;
  #parts: ServiceParts | undefined;
  #server: Promise<OauthServer> | undefined;

  /** @param redeem the codes of a console that signs them itself */
  constructor(context: CliContext, config: OauthServerConfig, redeem?: RedeemCode) {
    this.#context = context;
    this.#config = config;
    this.#redeem = redeem;
    this.issuer = this.#issuer();
  }

  /** The service at the listener. */
  service(parts: ServiceParts): PublicService {
    this.#parts = parts;
    return {
      ...{ name: 'oauth', bodyBytes: OAUTH_BODY_BYTES, owns: isOfOauthServer },
      answer: async (request, info) => (await this.#open()).answer(request, info),
      figures: () => this.#figures(),
      disconnect: async (userId, credential) => this.#disconnect(userId, credential),
      close: async () => (await this.#server)?.close(),
    };
  }

  /** The connected clients of a user, for the console. */
  connectionsOf(user: string): ConnectedClients {
    return {
      list: async () => (await this.#open()).connectionsOf(user).map(connectedClient),
      revoke: async (id) => {
        const { connections } = await this.#open();
        const client = connectedClient(await connections.revoke(user, id));
        const isLeft = connections.list(user).some(({ clientId }) => clientId === client.clientId);
        const ended = isLeft ? undefined : await this.#parts!.endings().ofClients(user, [client.clientId]);
        return { client, ended };
      },
    };
  }

  /** Ends the connections that were made with a personal token. @returns the clients that have none left */
  async #disconnect(user: string, credential: string): Promise<string[]> {
    if (!hasStore(this.#config.dataDir)) return [];
    const { connections } = await this.#open();
    const those = connections.list(user).filter((one) => one.credential === credential);
    for (const { id } of those) await connections.revoke(user, id);
    const left = new Set(connections.list(user).map(({ clientId }) => clientId));
    return those.map(({ clientId }) => clientId).filter((clientId) => !left.has(clientId));
  }

  #figures: () => Readonly<Record<string, number>> = () => ({});

  #open(): Promise<OauthServer> {
    this.#server ??= this.#make().catch((thrown: unknown) => {
      // The next request tries again.
      this.#server = undefined;
      throw thrown;
    });
    return this.#server;
  }

  async #make(): Promise<OauthServer> {
    if (!this.#parts) throw new ReveilleError('unavailable', 'the public listener does not listen yet');
    const { users, publicUrl, isShared } = this.#parts;
    const { clock } = this.#context;
    const [{ createOauthServer }, { loadAssets, outsidePage }, { HEADERS }, log] = await Promise.all([
      import('../../oauth-server/server.ts'),
      import('../../console/page.ts'),
      import('../../console/request-guard.ts'),
      this.#context.log('oauth', 'error'),
    ]);
    const assets = loadAssets();
    const server = await createOauthServer({
      ...{ config: this.#config, publicUrl, isShared, clock, log },
      persons: {
        authenticate: users.authenticate,
        isValid: users.isValid,
        redeem: this.#redeem ?? users.redeem,
        // The only user of this computer has a random id.
        nameOf: this.#redeem && accountName,
      },
      look: { headers: HEADERS, page: (title, main, leadsTo) => outsidePage(title, main, assets, leadsTo) },
    });
    this.#figures = server.figures;
    return server;
  }

  #issuer(): TrustedIssuer {
    const address = () => `${this.#parts?.publicUrl() ?? ''}${OAUTH_PATH}`;
    return {
      // The port is known once the listener listens.
      get issuer() {
        return address();
      },
      keys: async () => (await this.#open()).publicKeys(),
      subjectClaim: 'sub',
      userOf: (subject) => subject,
      clientNameOf: shortHostOf,
      isRevoked: async (token) => (await this.#open()).isRevoked(token),
    };
  }
}

/**
 * The server of an installation; `undefined` when it is off.
 *
 * @throws ReveilleError `unavailable` without its library, `invalid_request` for a wrong setting
 */
export function oauthAccess(context: CliContext, redeem?: RedeemCode): OauthAccess | undefined {
  const config = parseOauthServerConfig(context.settings);
  if (!config) return undefined;
  locateLibrary(config.home);
  return new OauthAccess(context, config, redeem);
}

/**
 * The server of a fleet; `undefined` when it is off.
 *
 * @throws ReveilleError as {@link oauthAccess}, `invalid_request` without a console
 */
export function fleetOauth(context: CliContext, { console }: Pick<PublicConfig, 'console'>): OauthAccess | undefined {
  const oauth = oauthAccess(context);
  if (!oauth || console) return oauth;
  const message = 'ROUTER_OAUTH needs the console, where users sign in and end access: set ROUTER_CONSOLE=1';
  throw new ReveilleError('invalid_request', message);
}
