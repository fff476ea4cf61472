/** A2A at the public listener of the router in this process: who may call, and what a caller reaches. */

import { A2A_SCOPES, type Authenticate, PERSONAL_ISSUER } from '../../a2a/caller.ts';
import { parseA2aConfig } from '../../a2a/config.ts';
import { createNeoClient } from '../../agents/neo/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { McpHttpConfig } from '../../mcp-http/config.ts';
import type { RouterConfig } from '../../router/config.ts';
import type { ServicesOf } from '../../router/public/listener.ts';
import type { Users } from '../../router/public/users.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import type { AlarmsOf } from './public-services.ts';

export type A2aParts = {
  router: Pick<RouterConfig, 'dataDir'>;
  alarmsOf: AlarmsOf;
  /** Whether a personal token needs a granted right to alarms, as in a fleet. */
  needsGrant: boolean;
  /** The trusted issuers of access tokens, which are accepted in addition to personal tokens. */
  issuers: McpHttpConfig | undefined;
  /** Unfinished tasks continue after it; by default at once. */
  startAfter?: Promise<void>;
  /** Of its log. */
  level: 'error' | 'info';
};

type AlarmParts = Pick<A2aParts, 'alarmsOf'>;

/** Callers with a personal token of the user. */
function personalTokens(
  users: Users,
  { alarmsOf, needsGrant }: AlarmParts & Pick<A2aParts, 'needsGrant'>,
): Authenticate {
  return (token, remoteAddress) => {
    const client = users.authenticate(token, remoteAddress);
    if (!client) return undefined;
    const { user: userId, credential } = client;
    const caller = {
      ...{ userId, subject: userId, issuer: PERSONAL_ISSUER, clientId: credential },
      clientName: oneLine(users.credentialName(credential) ?? '').slice(0, 100) || undefined,
      scopes: new Set<string>(Object.values(A2A_SCOPES)),
    };
    const alarms = () => {
      if (!needsGrant || users.externalRights(credential).claim !== undefined)
        return alarmsOf({ ...caller, ownsConversation: true });
      throw new ReveilleError('forbidden', 'this token has no right to the alarms of its user');
    };
    return { caller, isValid: () => users.isValid(credential), alarms };
  };
}

/** Callers with an access token for `/a2a`. The verifier is loaded with the first one. */
function accessTokens(
  { issuers, allow }: McpHttpConfig,
  { alarmsOf, publicUrl, clock }: AlarmParts & { publicUrl: () => string; clock: Clock },
): Authenticate {
  const open = async () => {
    const [{ createVerifier }, { IssuerKeys }] = await Promise.all([
      import('../../mcp-http/oauth/verifier.ts'),
      import('../../mcp-http/oauth/issuer-keys.ts'),
    ]);
    return createVerifier({ issuers, keys: new IssuerKeys({ allow, clock }), publicUrl, clock });
  };
  let verifier: ReturnType<typeof open> | undefined;
  return async (token) => {
    verifier ??= open();
    const { verify, isRevoked } = await verifier;
    const verdict = await verify(token, 'a2a');
    if ('refused' in verdict && verdict.refused === 'issuer_unavailable')
      throw new ReveilleError('unavailable', 'the issuer of the token did not answer', { retryAfterSeconds: 5 });
    if ('refused' in verdict) return undefined;
    const { caller } = verdict;
    const isValid = async () => clock.now() < caller.expiresAt && !(await isRevoked(caller));
    return { caller, isValid, alarms: () => alarmsOf({ ...caller, ownsConversation: true }) };
  };
}

/** Personal tokens have a form of their own: no other token is looked up among them, and none of them elsewhere. */
function authenticateWith(personal: Authenticate, access: Authenticate | undefined): Authenticate {
  return (token, remoteAddress) =>
    access === undefined || token.startsWith('rvp_') ? personal(token, remoteAddress) : access(token, remoteAddress);
}

/** @returns `undefined` where A2A is off. Otherwise its server, which is loaded now, for the router */
export async function a2aServices(
  context: Pick<CliContext, 'settings' | 'clock' | 'log'>,
  { router, alarmsOf, needsGrant, issuers, startAfter, level }: A2aParts,
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
      issuers: () => issuers?.issuers.map(({ issuer }) => issuer) ?? [],
      authenticate: authenticateWith(
        personalTokens(users, { alarmsOf, needsGrant }),
        issuers && accessTokens(issuers, { alarmsOf, publicUrl, clock }),
      ),
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
