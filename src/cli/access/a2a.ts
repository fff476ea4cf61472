/** A2A at the public listener of the router in this process: who may call, and what a caller reaches. */

import { A2A_SCOPES } from '../../a2a/caller.ts';
import { parseA2aConfig } from '../../a2a/config.ts';
import { createNeoClient } from '../../agents/neo/client.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { RouterConfig } from '../../router/config.ts';
import type { ServicesOf } from '../../router/public/listener.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import type { AlarmsOf } from './public-services.ts';

/** Personal tokens are no OAuth tokens; this stands for their issuer. */
const PERSONAL = 'urn:reveille:personal-token';

export type A2aParts = {
  router: Pick<RouterConfig, 'dataDir'>;
  alarmsOf: AlarmsOf;
  /** Whether a personal token needs a granted right to alarms, as in a fleet. */
  needsGrant: boolean;
  /** Unfinished tasks continue after it; by default at once. */
  startAfter?: Promise<void>;
  /** Of its log. */
  level: 'error' | 'info';
};

/** @returns `undefined` where A2A is off. Otherwise its server, which is loaded now, for the router */
export async function a2aServices(
  context: Pick<CliContext, 'settings' | 'clock' | 'log'>,
  { router, alarmsOf, needsGrant, startAfter, level }: A2aParts,
): Promise<ServicesOf | undefined> {
  const config = parseA2aConfig(context.settings);
  if (!config) return undefined;
  const { openA2aServer } = await import('../../a2a/server.ts');
  const log = await context.log('a2a', level);
  const { clock } = context;
  return ({ publicUrl, enter, users }) => [
    openA2aServer({
      ...{ dataDir: router.dataDir, publicUrl, allow: config.allow, version: VERSION, startAfter, clock, log },
      enter: (userId) => enter(userId, 'requests'),
      authenticate(token, remoteAddress) {
        const client = users.authenticate(token, remoteAddress);
        if (!client) return undefined;
        const { user: userId, credential } = client;
        const caller = {
          ...{ userId, subject: userId, issuer: PERSONAL, clientId: credential },
          clientName: oneLine(users.credentialName(credential) ?? '').slice(0, 100) || undefined,
          scopes: new Set<string>(Object.values(A2A_SCOPES)),
        };
        const alarms = () => {
          if (!needsGrant || users.externalRights(credential).claim !== undefined) return alarmsOf(caller);
          throw new ReveilleError('forbidden', 'this token has no right to the alarms of its user');
        };
        return { caller, isValid: () => users.isValid(credential), alarms };
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
