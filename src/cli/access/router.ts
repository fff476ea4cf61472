/**
 * The router: its admin interface on this computer, and the address and credential with which the user reaches their
 * agent.
 */
import { z } from 'zod';
import { createNeoClient, type NeoClient } from '../../agents/neo/client.ts';
import { createRouterClient, type RouterClient } from '../../router/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseSettings, portSetting, urlSetting } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { type Home, readCredential, readRun, writeCredential } from '../home/home.ts';
import { localAddress } from './chronos.ts';
import { attend } from './unreachable.ts';

const adminSettings = z.object({
  ROUTER_HOST: z.string().optional(),
  ROUTER_PORT: portSetting.default(8088),
  ROUTER_TLS_CERT: z.string().optional(),
});

/** The address of this computer's router, running or not. */
export function routerUrl({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string {
  const { ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT } = parseSettings(adminSettings, settings);
  return readRun(home)?.router_url ?? localAddress(ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT);
}

/** A client for this machine's router. */
export function routerClient(context: Pick<CliContext, 'home' | 'settings' | 'clock'>): RouterClient {
  const { home, clock, settings } = context;
  const url = routerUrl(context);
  return createRouterClient({ url, token: settings.ROUTER_ADMIN_TOKEN, attend: attend({ url, home, clock }) });
}

const personSettings = z.object({
  REVEILLE_URL: urlSetting.optional(),
  REVEILLE_TOKEN: z.string().optional(),
  ROUTER_PUBLIC_HOST: z.string().optional(),
  ROUTER_PUBLIC_PORT: portSetting.default(8087),
  ROUTER_PUBLIC_TLS_CERT: z.string().optional(),
});

/** `isHere`: it is the router of this computer. */
type RouterAccess = { url: string; token: string; isHere: boolean };

/**
 * Finds the public listener: from `REVEILLE_URL`, else the running one, else its default address. The credential of this
 * installation is sent to no other router.
 *
 * @throws ReveilleError `unauthorized` without a credential for it
 */
export function findPerson({ home, settings }: Pick<CliContext, 'home' | 'settings'>): RouterAccess {
  const given = parseSettings(personSettings, settings);
  const { ROUTER_PUBLIC_HOST, ROUTER_PUBLIC_PORT, ROUTER_PUBLIC_TLS_CERT } = given;
  const here =
    readRun(home)?.public_url ?? localAddress(ROUTER_PUBLIC_HOST, ROUTER_PUBLIC_PORT, ROUTER_PUBLIC_TLS_CERT);
  const url = given.REVEILLE_URL ?? here;
  const isHere = url === here;
  const token = given.REVEILLE_TOKEN ?? (isHere ? readCredential(home)?.token : undefined);
  if (token !== undefined) return { url, token, isHere };
  const remedy = isHere
    ? 'run "reveille up" to create one, or set REVEILLE_URL and REVEILLE_TOKEN'
    : 'set REVEILLE_TOKEN to the token that "reveille user add" printed there';
  throw new ReveilleError('unauthorized', `no credential for your agent at ${url}: ${remedy}`);
}

/** A client that speaks to the agent of the person whose command this is. A call may have to wake a machine. */
export function personClient(context: Pick<CliContext, 'home' | 'settings' | 'clock'>): NeoClient & RouterAccess {
  const place = findPerson(context);
  const { home, clock } = context;
  const client = createNeoClient({
    ...place,
    clock,
    name: 'your agent',
    tokenName: 'REVEILLE_TOKEN',
    attend: attend({ url: place.url, home, clock }),
    explain: (error) => (error.status === 401 ? refused(place) : error),
  });
  return { ...client, ...place };
}

function refused({ url, isHere }: RouterAccess): ReveilleError {
  const remedy = isHere
    ? 'restart "reveille up", which creates another one, or set REVEILLE_TOKEN'
    : 'it may have expired or been revoked; ask for another one, and set REVEILLE_TOKEN to it';
  return new ReveilleError('unauthorized', `the router at ${url} does not accept this credential: ${remedy}`);
}

/** Creates the credential of this installation's user, and a new one when the router no longer accepts it. */
export async function ensureCredential(router: RouterClient, home: Home, userId: string): Promise<void> {
  const own = readCredential(home);
  const all = await router.users(userId);
  if (own?.user_id === userId && all.some(({ id, state }) => id === own.id && state === 'active')) return;
  const given = { name: 'this computer' };
  const { user_id, id, token } =
    all.length === 0 ? await router.addUser(userId, given) : await router.addUserToken(userId, given);
  writeCredential(home, { user_id, id, token });
}

/** The public listener, as far as this computer knows it: of `REVEILLE_URL`, else of the running `reveille up`. */
export const publicUrl = ({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string | undefined =>
  settings.REVEILLE_URL ?? readRun(home)?.public_url;
