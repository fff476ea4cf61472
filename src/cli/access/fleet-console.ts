/**
 * The console of a fleet at the router's public listener: one backend per user. It has the rights that are derived from
 * the user's token, and no others.
 */
import { createNeoClient } from '../../agents/neo/client.ts';
import { NO_CALENDARS } from '../../chronos/alarm/holidays.ts';
import { createChronosClient, holdPrincipal } from '../../chronos/client.ts';
import type { Check, ConsoleBackend, Part } from '../../console/backend.ts';
import type { ConsoleApp } from '../../console/console.ts';
import type { SignedInUser } from '../../console/sessions.ts';
import { createExecutorClient } from '../../executor/client.ts';
import { isZone, machineZone } from '../../kit/clock/zone.ts';
import { hostNames } from '../../kit/http/listener-settings.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { alarmKeyOf, taskTokenOf } from '../../kit/identity/person-rights.ts';
import type { ConsoleConfig, PublicConfig } from '../../router/config.ts';
import type { Pages, PagesOf } from '../../router/public/listener.ts';
import type { Users } from '../../router/public/users.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import { lastLines, scheduleEngine, verifyReceipt } from './console-backend.ts';
import { NO_OAUTH, type OauthAccess } from './oauth-server.ts';
import { remoteCalendars } from './remote-calendars.ts';

/** Number of cached backends. The least recently used one is recreated on its next request. */
const MOST_DESKS = 2000;
/** After this time without a request, the rights of a user are removed from memory. */
const KEPT_MS = 30 * 60_000;

type ConnectingClient = SignedInUser & { readonly credential: string; readonly rights: string };

const PASSKEY_NEEDED =
  'This server does not have your approver’s key. To answer on this page, add a passkey for this address (Approvals, Passkeys), or answer on the computer with your key: reveille intent approve';
const VOUCHED_ELSEWHERE =
  'This server does not have your approver’s key: vouch for and revoke passkeys on the computer with your key: reveille approver';

/** Alarms, with the key that is derived from the user's token. */
export function alarmsOf(
  { clock }: CliContext,
  { chronosUrl, chronosToken }: ConsoleConfig,
  person: ConnectingClient,
  mark?: string,
) {
  if (mark === undefined) {
    const missing =
      'This token has no right to your alarms. Ask the operator for another one, created where CHRONOS_ADMIN_TOKEN is set: reveille user token';
    return { missing };
  }
  const { user, rights } = person;
  const client = createChronosClient({
    ...{ url: chronosUrl, token: chronosToken, clock, mayPin: false },
    identity: agentIdentity(user, alarmKeyOf(rights)),
    principal: holdPrincipal(),
    person: () => mark,
  });
  return { there: client };
}

function intentsOf(
  { executorUrl }: ConsoleConfig,
  { user, rights }: ConnectingClient,
  submitter: boolean,
): ConsoleBackend['intents'] {
  if (executorUrl === undefined)
    return { missing: 'This router has no executor; the operator sets ROUTER_EXECUTOR_URL.' };
  if (!submitter) {
    const missing =
      'This token has no right to your intents. Ask the operator for another one, created where EXECUTOR_ADMIN_TOKEN is set: reveille user token';
    return { missing };
  }
  return { there: createExecutorClient({ url: executorUrl, token: taskTokenOf(rights), userId: user }) };
}

/** Checks for the user: whether the daemons answer. */
async function checksOf(
  backend: Pick<ConsoleBackend, 'user' | 'alarms' | 'machines' | 'intents'>,
): Promise<readonly Check[]> {
  const check = async <T>(name: string, part: Part<T>, ask: (there: T) => Promise<string>): Promise<Check> => {
    if ('missing' in part) return { name, status: 'note', detail: part.missing };
    try {
      return { name, status: 'ok', detail: await ask(part.there) };
    } catch (thrown) {
      return { name, status: 'broken', detail: toReveilleError(thrown).message };
    }
  };
  return Promise.all([
    check('alarms', backend.alarms, async (alarms) => {
      await alarms.listAlarms({ limit: 1 });
      return 'chronosd answers and accepts your key';
    }),
    check('machine', backend.machines, async (machines) => {
      const { state, running } = await machines.show(backend.user);
      return running === undefined ? state : `${state}, ${running}`;
    }),
    check('tasks', backend.intents, async (intents) => {
      await intents.list({ limit: 1 });
      return 'the executor answers and accepts your token';
    }),
    check('version', { there: VERSION }, async (version) => `the router runs ${version}`),
  ]);
}

function backendFor(
  context: CliContext,
  config: ConsoleConfig,
  users: Users,
  oauth: OauthAccess | undefined,
  person: ConnectingClient,
): ConsoleBackend {
  const { user, credential, zone } = person;
  const { clock, settings } = context;
  const machines = users.machineOf(user);
  const { claim: mark, submitter } = users.externalRights(credential);
  const own = {
    user,
    alarms: alarmsOf(context, config, person, mark),
    machines: { there: machines },
    intents: intentsOf(config, person, submitter),
  };
  const calendars = 'there' in own.alarms ? remoteCalendars(own.alarms.there, clock) : undefined;
  return {
    ...own,
    ...{ name: user, zone: zone !== undefined && isZone(zone) ? zone : (machineZone(settings.TZ) ?? 'UTC') },
    ...scheduleEngine(calendars?.lookup ?? NO_CALENDARS),
    ...(calendars && { readCalendars: calendars.readCalendars }),
    machineLog: { there: () => lastLines(context, user) },
    agent: {
      there: createNeoClient({
        ...{ url: 'http://your-agent', token: undefined, clock, name: 'your agent' },
        transport: users.transportTo(user),
      }),
    },
    approver: { missing: PASSKEY_NEEDED },
    passkeys: { missing: VOUCHED_ELSEWHERE },
    verifyReceipt: (receipt) => verifyReceipt(receipt, undefined),
    health: { there: () => checksOf(own) },
    notices: {
      missing:
        'Your own notifier sends notifications, because it has your keys: run "reveille notifier" where they are, and add channels with "reveille notify add".',
    },
    clients: oauth ? { there: oauth.connectionsOf(user) } : { missing: NO_OAUTH },
    places: [],
    day: {
      missing: 'Sessions and breaks are stored on the computer where you work. See them there with: reveille time',
    },
    onHint: (listener) => users.onMachine(user, () => listener('machines')),
  };
}

/** Backends of signed-in users, by their credentials. */
class Backends {
  readonly #kept = new Map<string, { backend: ConsoleBackend; usedAt: number }>();
  readonly #make: (person: ConnectingClient) => ConsoleBackend;
  readonly #now: () => number;

  constructor(make: (person: ConnectingClient) => ConsoleBackend, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  of({ user, credential, rights, zone }: SignedInUser): ConsoleBackend {
    if (credential === undefined || rights === undefined)
      throw new ReveilleError('unauthorized', 'this session has no rights; sign in again');
    const key = `${credential} ${zone ?? ''}`;
    const now = this.#now();
    const backend = this.#kept.get(key)?.backend ?? this.#make({ user, credential, rights, zone });
    this.#kept.delete(key);
    this.#kept.set(key, { backend, usedAt: now });
    // Ordered by last use.
    for (const [oldest, { usedAt }] of this.#kept) {
      if (now - usedAt < KEPT_MS && this.#kept.size <= MOST_DESKS) break;
      this.#kept.delete(oldest);
    }
    return backend;
  }
}

/** Serves the console's pages of a router; created with the first request. */
export function fleetConsole(
  context: CliContext,
  { host, isTls, console, allowedHosts }: PublicConfig,
  oauth?: OauthAccess,
): PagesOf {
  return (users): Pages => {
    let app: Promise<ConsoleApp> | undefined;
    const make = async (): Promise<ConsoleApp> => {
      const { createConsole } = await import('../../console/console.ts');
      const { clock } = context;
      const backends = new Backends(
        (client) => backendFor(context, console!, users, oauth, client),
        () => clock.monotonic(),
      );
      return createConsole({
        clock,
        log: await context.log('console', 'info'),
        cookie: isTls ? 'host' : 'path',
        hosts: [...hostNames(host), ...allowedHosts],
        users: {
          signIn: users.authenticate,
          redeem: users.redeem,
          isValid: users.isValid,
          sessions: users.sessions,
        },
        backendOf: (entry) => backends.of(entry),
      });
    };
    return async (request, info) => {
      app ??= make();
      return (await app).fetch(request, info);
    };
  };
}
