/**
 * The console of a fleet, at the router's public listener: for each person a desk that has that person's own rights,
 * which came with their token, and no other.
 */
import { createChronosClient, holdPrincipal } from '../../chronos/client.ts';
import type { ConsoleApp } from '../../console/console.ts';
import type { Check, Desk, Part } from '../../console/desk.ts';
import type { Entry } from '../../console/sessions.ts';
import { createExecutorClient } from '../../executor/client.ts';
import { machineZone } from '../../kit/clock/machine-zone.ts';
import { isZone } from '../../kit/clock/zone.ts';
import { hostNames } from '../../kit/http/door.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { alarmKeyOf, taskTokenOf } from '../../kit/identity/person-rights.ts';
import { createNeoClient } from '../../neo/client.ts';
import type { ConsoleConfig, PublicConfig } from '../../router/config.ts';
import type { Pages, PagesOf } from '../../router/public/listener.ts';
import type { People } from '../../router/public/people.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import { lastLines, ringsOf, seriesOf, verifyReceipt } from './desk.ts';

/** So many desks are ready; the one that was used longest ago is made anew when its person comes back. */
const MOST_DESKS = 2000;
/** Without a request for so long, nothing of a person's rights stays in memory. */
const KEPT_MS = 30 * 60_000;

type Comer = Entry & { readonly credential: string; readonly rights: string };

const PASSKEY_NEEDED =
  'Your approver’s key is not on this side, so that an answer in this page needs a passkey for this address: add one (Approvals, Passkeys), or answer where your key is, with: reveille intent approve';
const VOUCHED_ELSEWHERE =
  'Your approver’s key is not on this side: passkeys are vouched for and revoked where it is, with: reveille approver';

/** Alarms, under the key that follows from the person's token. */
function alarmsOf({ clock }: CliContext, { chronosUrl, chronosToken }: ConsoleConfig, comer: Comer, mark?: string) {
  if (mark === undefined) {
    const missing =
      'This token was made without a right to your alarms. Ask whoever runs this router for another one, made where CHRONOS_ADMIN_TOKEN is set: reveille user token';
    return { missing };
  }
  const { user, rights } = comer;
  const client = createChronosClient({
    ...{ url: chronosUrl, token: chronosToken, clock, mayPin: false },
    identity: agentIdentity(user, alarmKeyOf(rights)),
    principal: holdPrincipal(),
    person: () => mark,
  });
  return { there: client };
}

function intentsOf({ executorUrl }: ConsoleConfig, { user, rights }: Comer, submitter: boolean): Desk['intents'] {
  if (executorUrl === undefined)
    return { missing: 'This router knows no executor; whoever runs it names one with ROUTER_EXECUTOR_URL.' };
  if (!submitter) {
    const missing =
      'This token was made without a right to your tasks. Ask whoever runs this router for another one, made where EXECUTOR_ADMIN_TOKEN is set: reveille user token';
    return { missing };
  }
  return { there: createExecutorClient({ url: executorUrl, token: taskTokenOf(rights), userId: user }) };
}

/** What concerns the person: whether what they use answers them. */
async function checksOf(desk: Pick<Desk, 'user' | 'alarms' | 'machines' | 'intents'>): Promise<readonly Check[]> {
  const check = async <T>(name: string, part: Part<T>, ask: (there: T) => Promise<string>): Promise<Check> => {
    if ('missing' in part) return { name, status: 'note', detail: part.missing };
    try {
      return { name, status: 'ok', detail: await ask(part.there) };
    } catch (thrown) {
      return { name, status: 'broken', detail: toReveilleError(thrown).message };
    }
  };
  return Promise.all([
    check('alarms', desk.alarms, async (alarms) => {
      await alarms.listAlarms({ limit: 1 });
      return 'chronosd answers, and takes your key';
    }),
    check('machine', desk.machines, async (machines) => {
      const { state, running } = await machines.show(desk.user);
      return running === undefined ? state : `${state}, ${running}`;
    }),
    check('tasks', desk.intents, async (intents) => {
      await intents.list({ limit: 1 });
      return 'the executor answers, and takes your token';
    }),
    check('version', { there: VERSION }, async (version) => `the router runs ${version}`),
  ]);
}

function deskFor(context: CliContext, config: ConsoleConfig, people: People, comer: Comer): Desk {
  const { user, credential, zone } = comer;
  const { clock, settings } = context;
  const machines = people.machineOf(user);
  const { mark, submitter } = people.rightsElsewhere(credential);
  const own = {
    user,
    alarms: alarmsOf(context, config, comer, mark),
    machines: { there: machines },
    intents: intentsOf(config, comer, submitter),
  };
  return {
    ...own,
    ...{ name: user, zone: zone !== undefined && isZone(zone) ? zone : (machineZone(settings.TZ) ?? 'UTC') },
    ...{ ringsOf, seriesOf },
    machineLog: { there: () => lastLines(context, user) },
    agent: {
      there: createNeoClient({
        ...{ url: 'http://your-agent', token: undefined, clock, name: 'your agent', transport: people.lineTo(user) },
      }),
    },
    approver: { missing: PASSKEY_NEEDED },
    passkeys: { missing: VOUCHED_ELSEWHERE },
    verifyReceipt: (receipt) => verifyReceipt(receipt, undefined),
    health: { there: () => checksOf(own) },
    notices: {
      missing:
        'You are told by a notifier of your own, which has your keys: run "reveille notifier" where they are, and say where to with "reveille notify add".',
    },
    places: [],
    day: {
      missing:
        'Sessions and breaks are kept on the computer where you work, and go to no router. See them there with: reveille time',
    },
    onHint: () => () => {},
  };
}

/** Desks of the people who are here, by what let them in. */
class Desks {
  readonly #kept = new Map<string, { desk: Desk; usedAt: number }>();
  readonly #make: (comer: Comer) => Desk;
  readonly #now: () => number;

  constructor(make: (comer: Comer) => Desk, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  of({ user, credential, rights, zone }: Entry): Desk {
    if (credential === undefined || rights === undefined)
      throw new ReveilleError('unauthorized', 'this session has no rights; sign in anew');
    const key = `${credential} ${zone ?? ''}`;
    const now = this.#now();
    const desk = this.#kept.get(key)?.desk ?? this.#make({ user, credential, rights, zone });
    this.#kept.delete(key);
    this.#kept.set(key, { desk, usedAt: now });
    // In the order of their last use.
    for (const [oldest, { usedAt }] of this.#kept) {
      if (now - usedAt < KEPT_MS && this.#kept.size <= MOST_DESKS) break;
      this.#kept.delete(oldest);
    }
    return desk;
  }
}

/** What answers the pages of a router that has a console; made with the first request for one. */
export function fleetConsole(context: CliContext, { host, isTls, console, allowedHosts }: PublicConfig): PagesOf {
  return (people): Pages => {
    let app: Promise<ConsoleApp> | undefined;
    const make = async (): Promise<ConsoleApp> => {
      const { createConsole } = await import('../../console/console.ts');
      const { clock } = context;
      const desks = new Desks(
        (comer) => deskFor(context, console!, people, comer),
        () => clock.monotonic(),
      );
      return createConsole({
        clock,
        log: await context.log('console', 'info'),
        cookie: isTls ? 'host' : 'path',
        hosts: [...hostNames(host), ...allowedHosts],
        people: {
          signIn: people.come,
          redeem: people.redeem,
          stands: people.stands,
          sessions: people.sessions,
        },
        deskOf: (entry) => desks.of(entry),
      });
    };
    return async (request, info) => {
      app ??= make();
      return (await app).fetch(request, info);
    };
  };
}
