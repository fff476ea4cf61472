/** The crons of LangGraph's client, with the rights of this installation's user, or with those of a user's token. */
import { createChronosClient, holdPrincipal } from '../../chronos/client.ts';
import { clientProof } from '../../kit/identity/person-rights.ts';
import { createLanggraph, type LanggraphOptions } from '../../langgraph/service.ts';
import type { PublicConfig } from '../../router/config.ts';
import { langgraphClient } from '../../router/public/endings.ts';
import type { ServicesOf } from '../../router/public/listener.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { readSecrets } from '../home/home.ts';
import { findChronos, localIdentity } from './chronos.ts';
import { alarmsOf } from './fleet-console.ts';

const servicesOf =
  (
    { clock }: CliContext,
    clientFor: (users: Parameters<ServicesOf>[0]['users']) => LanggraphOptions['clientFor'],
  ): ServicesOf =>
  ({ users, enter }) => [
    createLanggraph({ authenticate: users.authenticate, enter, clientFor: clientFor(users), clock }),
  ];

/**
 * The crons at `reveille up`. Their alarms name the program as their author.
 *
 * @param owner the user of this installation, the only one whose alarms are here
 */
export function localLanggraph(context: CliContext, owner: string): ServicesOf {
  const { clock, home } = context;
  return servicesOf(context, () => async ({ user, credential }) => {
    if (user !== owner) throw new ReveilleError('forbidden', 'this token has no right to alarms here');
    // Secrets of the first start are not in its settings.
    const settings: Settings = { ...readSecrets(home), ...context.settings };
    const own = { ...context, settings };
    // The token of a user reaches all conversations anyway.
    const client = { client_id: langgraphClient(credential), name: 'LangGraph', ownsConversation: true };
    const secret = settings.CHRONOS_ADMIN_TOKEN!;
    return createChronosClient({
      ...findChronos(own),
      ...{ identity: localIdentity(own), principal: holdPrincipal(), clock },
      person: (request) => clientProof(client, request, { secret, now: clock.now() }),
    });
  });
}

/** The crons at the router of a fleet, which has no rights to alarms but those of a user's token. */
export function fleetLanggraph(context: CliContext, { console }: PublicConfig): ServicesOf {
  if (console === undefined)
    throw new ReveilleError('invalid_request', 'ROUTER_LANGGRAPH needs the console: set ROUTER_CONSOLE=1');
  return servicesOf(context, (users) => (user) => {
    const { claim } = users.externalRights(user.credential);
    const alarms = alarmsOf(context, console, { ...user, zone: undefined }, claim);
    if ('missing' in alarms) throw new ReveilleError('forbidden', alarms.missing);
    return alarms.there;
  });
}
