/**
 * The services at the router's public listener for programs with access tokens: MCP over HTTP, if an issuer is
 * configured. Their backends act for this installation's user, or for all users of a fleet.
 */
import { join } from 'node:path';
import { type ChronosClient, createChronosClient, holdPrincipal, type PrincipalHolder } from '../../chronos/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { type AgentKey, loadOrCreateKey } from '../../kit/identity/keys.ts';
import { clientProof } from '../../kit/identity/person-rights.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { AlarmCaller, RemoteBackends } from '../../mcp-http/backends.ts';
import { type McpHttpConfig, parseMcpHttpConfig } from '../../mcp-http/config.ts';
import { EventsHost } from '../../mcp-http/events/host.ts';
import { createMcpHttp } from '../../mcp-http/service.ts';
import { type RouterConfig, routerSettingsSchema } from '../../router/config.ts';
import type { RouterOptions } from '../../router/daemon.ts';
import type { EndClient } from '../../router/public/endings.ts';
import type { ServicesOf } from '../../router/public/listener.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { TrustedIssuer } from '../../wire/remote-caller.ts';
import { parseSettings, type Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { readSecrets } from '../home/home.ts';
import type { OauthAccess } from './oauth-server.ts';

/** The alarms of a caller's user; new ones have the caller's client as author. */
export type AlarmsOf = (caller: AlarmCaller) => Promise<ChronosClient>;

/** The author of alarms that a caller sets. */
function proverOf({ clientId, clientName, ownsConversation }: AlarmCaller, secret: string, now: () => number) {
  const client = {
    client_id: clientId,
    ...(clientName !== undefined && { name: clientName }),
    ...(ownsConversation && { ownsConversation }),
  };
  return (request: { method: string; path: string; body: string }) =>
    clientProof(client, request, { secret, now: now() });
}

/** The rights of this installation's user, which `reveille up` has. */
async function localBackends(context: CliContext): Promise<RemoteBackends> {
  const { home, clock } = context;
  // Secrets of the first start are not in its settings.
  const settings: Settings = { ...readSecrets(home), ...context.settings };
  const own = { ...context, settings };
  const [{ findChronos, localIdentity }, { executorClient }, { zoneOfUser }] = await Promise.all([
    import('./chronos.ts'),
    import('./executor.ts'),
    import('./chronometric.ts'),
  ]);
  const principal = holdPrincipal();
  let time: ReturnType<NonNullable<RemoteBackends['time']>> | undefined;
  const openTime = async () => {
    const [{ openChronometric }, { machineZone }] = await Promise.all([
      import('../../chronometric/daemon.ts'),
      import('../../kit/clock/zone.ts'),
    ]);
    return openChronometric({
      ...{ dataDir: settings.CHRONOMETRIC_DATA_DIR!, environment: settings, clock },
      machineZone: () => machineZone(settings.TZ),
      log: await context.log('chronometric', 'warn'),
      presence: 'calls',
    });
  };
  return {
    alarms(caller) {
      const { url, token, local } = findChronos(own);
      // Without a proof of the author, the alarm would count as the agent's own.
      if (!local || settings.CHRONOS_ADMIN_TOKEN === undefined)
        throw new ReveilleError('unavailable', 'clients can set alarms only if chronosd runs in this installation');
      const identity = localIdentity(own);
      const person = proverOf(caller, settings.CHRONOS_ADMIN_TOKEN, () => clock.now());
      return createChronosClient({ url, token, identity, principal, person, clock });
    },
    zone: () => zoneOfUser(own),
    time() {
      time ??= openTime();
      return time;
    },
    intents: () => executorClient(own, undefined),
    async close() {
      await (await time)?.close();
    },
  };
}

/** Only the user of this installation exists here. */
function forOwner(issuer: TrustedIssuer, owner: string): TrustedIssuer {
  const userOf = (subject: string) => {
    const user = issuer.userOf(subject);
    return user !== undefined && ownerOf(user) === owner ? user : undefined;
  };
  // Its address may not be known yet.
  return Object.defineProperty({ ...issuer, userOf }, 'issuer', { get: () => issuer.issuer, enumerable: true });
}

/** The issuers whose tokens are accepted for the user of this installation; `undefined` without any. */
export function localIssuers(context: CliContext, owner: string, oauth?: OauthAccess): McpHttpConfig | undefined {
  const given = fleetIssuers(context, oauth);
  return given && { ...given, issuers: given.issuers.map((issuer) => forOwner(issuer, owner)) };
}

/** The same for all users. */
export const fleetIssuers = ({ settings }: CliContext, oauth?: OauthAccess): McpHttpConfig | undefined =>
  parseMcpHttpConfig(settings, oauth && [oauth.issuer]);

/** The services of the router for clients with access tokens. */
export type RemoteAccess = Pick<RouterOptions, 'servicesOf' | 'subscribers'>;

type Opened = { backends: RemoteBackends; log: Logger };

type RemoteParts = {
  config: McpHttpConfig;
  /** The authorization server of this installation, if it is on. Its service comes first. */
  oauth: OauthAccess | undefined;
  /** The folder of the router. */
  dataDir: string;
  clock: Clock;
  open: () => Promise<Opened>;
};

/** MCP over HTTP with its events, to which the router reports due alarms. */
function remoteAccess({ config, oauth, dataDir, clock, open }: RemoteParts): RemoteAccess {
  let opened: Promise<Opened> | undefined;
  const once = () => {
    opened ??= open();
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  const { issuers, callbackAllow } = config;
  const events = new EventsHost({ dataDir, issuers, allow: callbackAllow, clock, open: once });
  return {
    subscribers: events,
    servicesOf: (parts) => {
      const withEvents = async () => ({ ...(await once()), extensions: [events.extension] });
      const service = createMcpHttp({ config, ...parts, open: withEvents, clock });
      events.start();
      const close = async () => {
        await events.close();
        await service.close();
      };
      const endClient: EndClient = async (userId, clientId) => ({
        subscriptions: await events.endClient(userId, clientId),
      });
      return [...(oauth ? [oauth.service(parts)] : []), { ...service, endClient, close }];
    },
  };
}

/**
 * The services of `reveille up`.
 *
 * @param owner the user of this installation
 * @param oauth its own authorization server
 * @throws ReveilleError `invalid_request` for a wrong setting
 */
export function localServices(
  context: CliContext,
  owner: string,
  dataDir: string,
  oauth?: OauthAccess,
): RemoteAccess | undefined {
  const { clock } = context;
  const config = localIssuers(context, owner, oauth);
  if (!config) return undefined;
  const open = async () => ({ backends: await localBackends(context), log: await context.log('mcp', 'error') });
  return remoteAccess({ config, oauth, dataDir, clock, open });
}

const fleetSchema = routerSettingsSchema.pick({
  ROUTER_CHRONOS_URL: true,
  ROUTER_CHRONOS_TOKEN: true,
  ROUTER_CHRONOS_ADMIN_TOKEN: true,
  ROUTER_EXECUTOR_URL: true,
  ROUTER_EXECUTOR_TOKEN: true,
});
type FleetSettings = ReturnType<typeof parseSettings<typeof fleetSchema>>;
const NEEDED = ['ROUTER_CHRONOS_URL', 'ROUTER_CHRONOS_TOKEN', 'ROUTER_CHRONOS_ADMIN_TOKEN'] as const;

/** Users whose proofs of identity are kept. */
const MOST_USERS = 2000;

/** Alarms of any user: this router has a key of its own, which is enrolled for a user with the first call. */
class FleetAlarms {
  readonly #context: CliContext;
  readonly #settings: FleetSettings;
  readonly #key: AgentKey;
  readonly #users = new Map<string, Promise<PrincipalHolder>>();

  constructor(context: CliContext, settings: FleetSettings, key: AgentKey) {
    this.#context = context;
    this.#settings = settings;
    this.#key = key;
  }

  async of(caller: AlarmCaller): Promise<ChronosClient> {
    const { userId } = caller;
    const { clock } = this.#context;
    const person = proverOf(caller, this.#settings.ROUTER_CHRONOS_ADMIN_TOKEN!, () => clock.now());
    const principal = await this.#enrolled(userId);
    const identity = agentIdentity(userId, this.#key);
    return createChronosClient({ ...this.#place, identity, principal, person, mayPin: false, clock });
  }

  get #place() {
    return { url: this.#settings.ROUTER_CHRONOS_URL!, token: this.#settings.ROUTER_CHRONOS_TOKEN! };
  }

  #enrolled(user: string): Promise<PrincipalHolder> {
    const known = this.#users.get(user);
    const holder = known ?? this.#enrol(user);
    // Ordered by last use.
    this.#users.delete(user);
    this.#users.set(user, holder);
    if (this.#users.size > MOST_USERS) this.#users.delete(this.#users.keys().next().value!);
    if (!known) holder.catch(() => this.#users.delete(user));
    return holder;
  }

  async #enrol(user: string): Promise<PrincipalHolder> {
    const { clock } = this.#context;
    const identity = agentIdentity(user, this.#key);
    const adminToken = this.#settings.ROUTER_CHRONOS_ADMIN_TOKEN!;
    const client = createChronosClient({ ...this.#place, adminToken, identity, mayPin: false, clock });
    try {
      await client.authenticate();
    } catch (thrown) {
      // Enrolling a key again would undo its revocation by the operator.
      const { code, message } = toReveilleError(thrown);
      if (code !== 'forbidden' || message.includes('was revoked')) throw thrown;
      await client.enrollAgent({ label: user, public_key: this.#key.publicKeyHex });
    }
    return holdPrincipal();
  }
}

/** The alarms of callers of this installation, for A2A. @throws ReveilleError `forbidden` for another user */
export function localAlarms(context: CliContext, owner: string): AlarmsOf {
  let backends: Promise<RemoteBackends> | undefined;
  return async (caller) => {
    if (caller.userId !== owner)
      throw new ReveilleError('forbidden', 'this installation sets alarms only for its own user');
    backends ??= localBackends(context);
    return (await backends).alarms!(caller);
  };
}

/** The same for the users of a fleet. @throws ReveilleError `forbidden` where the settings for it are missing */
export function fleetAlarms(context: CliContext, { dataDir }: Pick<RouterConfig, 'dataDir'>): AlarmsOf {
  let backends: Promise<RemoteBackends> | undefined;
  return async (caller) => {
    const settings = parseSettings(fleetSchema, context.settings);
    if (NEEDED.some((name) => settings[name] === undefined))
      throw new ReveilleError('forbidden', 'this router sets no alarms for other agents; ask its operator');
    backends ??= fleetBackends(context, settings, dataDir);
    return (await backends).alarms!(caller);
  };
}

/** Ends the alarms of clients, as their author. A chronosd that no client can reach has none. */
export const endAlarmsBy =
  (alarmsOf: AlarmsOf): EndClient =>
  async (userId, clientId) => {
    try {
      return await (await alarmsOf({ userId, clientId })).endClient(clientId);
    } catch (thrown) {
      if (thrown instanceof ReveilleError && thrown.code === 'forbidden') return {};
      throw thrown;
    }
  };

async function fleetBackends(context: CliContext, settings: FleetSettings, dataDir: string): Promise<RemoteBackends> {
  const { createExecutorClient } = await import('../../executor/client.ts');
  const { ROUTER_EXECUTOR_URL: url, ROUTER_EXECUTOR_TOKEN: token } = settings;
  const alarms = new FleetAlarms(context, settings, loadOrCreateKey(join(dataDir, 'remote-clients.key')));
  return {
    alarms: (caller) => alarms.of(caller),
    ...(url !== undefined &&
      token !== undefined && { intents: ({ userId }) => createExecutorClient({ url, token, userId }) }),
  };
}

/**
 * The services of `reveille router`.
 *
 * @throws ReveilleError `invalid_request` for a wrong or missing setting
 */
export function fleetServices(
  context: CliContext,
  { dataDir }: Pick<RouterConfig, 'dataDir'>,
  oauth?: OauthAccess,
): RemoteAccess | undefined {
  const { clock } = context;
  const config = fleetIssuers(context, oauth);
  if (!config) return undefined;
  const settings = parseSettings(fleetSchema, context.settings);
  const missing = NEEDED.filter((name) => settings[name] === undefined);
  if (missing.length > 0) {
    const name = oauth ? 'ROUTER_OAUTH' : 'ROUTER_MCP_ISSUERS';
    const message = `${name} is set, but clients cannot reach alarms: also set ${missing.join(' and ')}, or unset ${name}`;
    throw new ReveilleError('invalid_request', message);
  }
  const open = async () => ({
    backends: await fleetBackends(context, settings, dataDir),
    log: await context.log('mcp', 'info'),
  });
  return remoteAccess({ config, oauth, dataDir, clock, open });
}

/** Several services as one; `undefined` without any. */
export function joinedServices(...all: readonly (ServicesOf | undefined)[]): ServicesOf | undefined {
  const given = all.filter((servicesOf) => servicesOf !== undefined);
  return given.length === 0 ? undefined : (parts) => given.flatMap((servicesOf) => servicesOf(parts));
}
