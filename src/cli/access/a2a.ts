/** A2A at the public listener of the router in this process: who may call, and what a caller reaches. */

import type { AlarmSetter } from '../../a2a/alarm-skill.ts';
import { A2A_SCOPES, type A2aCaller } from '../../a2a/caller.ts';
import { parseA2aConfig } from '../../a2a/config.ts';
import { createNeoClient } from '../../agents/neo/client.ts';
import { createChronosClient, type Prover } from '../../chronos/client.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { alarmKeyOf, clientProof } from '../../kit/identity/person-rights.ts';
import type { RouterConfig } from '../../router/config.ts';
import type { ServicesOf } from '../../router/public/listener.ts';
import type { Users } from '../../router/public/users.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';

/** A caller with a personal token, and the rights that are derived from it. */
type TokenHolder = { readonly caller: A2aCaller; readonly credential: string; readonly rights: string };

/** The alarms of a caller's user. @throws ReveilleError `forbidden` with the reason */
type AlarmsOf = (holder: TokenHolder, users: Users) => AlarmSetter;

/** Personal tokens are no OAuth tokens; this stands for their issuer. */
const PERSONAL = 'urn:reveille:personal-token';

type Chronosd = { url: string; token: string; adminToken: string; identity: Prover };

/** A client that sets alarms with the caller as their author. */
function alarmsBy({ clock }: CliContext, chronosd: Chronosd, { clientId, clientName }: A2aCaller): AlarmSetter {
  const { url, token, adminToken: secret, identity } = chronosd;
  const author = { client_id: clientId, name: clientName?.slice(0, 100) };
  return createChronosClient({
    ...{ url, token, identity, clock, mayPin: false },
    person: (request) => clientProof(author, request, { secret, now: clock.now() }),
  });
}

/** For the one user of this installation. @param chronosdOf with the identity of that user */
export function ownAlarms(context: CliContext, owner: string, chronosdOf: () => Chronosd): AlarmsOf {
  return ({ caller }) => {
    if (caller.userId === owner) return alarmsBy(context, chronosdOf(), caller);
    throw new ReveilleError('forbidden', 'this installation sets alarms for its own user alone');
  };
}

/** For the users of a fleet, with the key that is derived from their token. */
export function fleetAlarms(context: CliContext, settings: Settings): AlarmsOf {
  const { ROUTER_CHRONOS_URL: url, ROUTER_CHRONOS_TOKEN: token, ROUTER_CHRONOS_ADMIN_TOKEN: adminToken } = settings;
  return ({ caller, credential, rights }, users) => {
    if (!url || !token || !adminToken)
      throw new ReveilleError('forbidden', 'this router sets no alarms for other agents; ask its operator');
    if (users.externalRights(credential).claim === undefined)
      throw new ReveilleError('forbidden', 'this token has no right to the alarms of its user');
    const identity = agentIdentity(caller.userId, alarmKeyOf(rights));
    return alarmsBy(context, { url, token, adminToken, identity }, caller);
  };
}

/** @returns `undefined` where A2A is off. Otherwise its server, which is loaded now, for the router */
export async function a2aServices(
  context: CliContext,
  { settings, router, alarmsOf }: { settings: Settings; router: RouterConfig; alarmsOf: AlarmsOf },
): Promise<ServicesOf | undefined> {
  const config = parseA2aConfig(settings);
  if (!config) return undefined;
  const { openA2aServer } = await import('../../a2a/server.ts');
  const log = await context.log('a2a', 'info');
  const { clock } = context;
  return ({ publicUrl, enter, users }) => [
    openA2aServer({
      ...{ dataDir: router.dataDir, publicUrl, allow: config.allow, version: VERSION, clock, log },
      enter: (userId) => enter(userId, 'requests'),
      authenticate(token, remoteAddress) {
        const client = users.authenticate(token, remoteAddress);
        if (!client) return undefined;
        const { user: userId, credential, rights } = client;
        const caller = {
          ...{ userId, subject: userId, issuer: PERSONAL, clientId: credential },
          clientName: users.credentialName(credential),
          scopes: new Set<string>(Object.values(A2A_SCOPES)),
        };
        return {
          caller,
          isValid: () => users.isValid(credential),
          alarms: () => alarmsOf({ caller, credential, rights }, users),
        };
      },
      agentOf: (userId) =>
        createNeoClient({
          ...{ url: 'http://the-agent', token: undefined, clock, name: "the user's agent" },
          transport: users.transportTo(userId),
        }),
      onMachine: (userId, listener) => users.onMachine(userId, listener),
      async isAwake(userId) {
        const view = await users
          .machineOf(userId)
          .show(userId)
          .catch(() => undefined);
        return view?.running !== undefined;
      },
    }),
  ];
}
