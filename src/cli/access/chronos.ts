/** The chronosd and the identity of the commands on this computer. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import {
  type ChronosClient,
  createChronosClient,
  holdPrincipal,
  type PersonProver,
  type Prover,
} from '../../chronos/client.ts';
import { personProof } from '../../kit/identity/person-rights.ts';
import { fileIdentity } from '../../kit/identity/rotation.ts';
import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import type { EnrolledKey } from '../../wire/agent.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { setBySchema } from '../../wire/set-by.ts';
import { parseSettings, portSetting, urlSetting } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { accountName, readAccess, readLabel, readRun, readSecrets } from '../home/home.ts';
import { attend } from './unreachable.ts';

/** The chronosd of this computer; absent fields were not found. */
export type LocalChronos = { url?: string; token?: string; userId?: string; keyFile?: string };

const schema = z.object({
  MATRIX_CHRONOS_URL: urlSetting.optional(),
  MATRIX_CHRONOS_TOKEN: z.string().optional(),
  MATRIX_USER_ID: labelSchema.optional(),
  MATRIX_EXECUTOR_KEYFILE: z.string().optional(),
  CHRONOS_HOST: z.string().optional(),
  CHRONOS_PORT: portSetting.default(9096),
  CHRONOS_TLS_CERT: z.string().optional(),
  CHRONOS_ADMIN_TOKEN: z.string().optional(),
  CHRONOS_DEV: z.string().optional(),
});

/**
 * The address of a daemon that listens on `host`, from this computer. A wildcard becomes loopback.
 *
 * @param certificate the file that the daemon serves; without one it speaks plain HTTP
 */
export function localAddress(host: string | undefined, port: number, certificate: string | undefined): string {
  const wildcard = host === undefined || host === '' || host === '0.0.0.0' || /^[0:]+$/.test(host);
  const name = wildcard ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `${certificate ? 'https' : 'http'}://${name}:${port}`;
}

/** Read again on every call: a `reveille up` may have started meanwhile. */
export function localChronosDefaults({ home, settings }: Pick<CliContext, 'home' | 'settings'>): LocalChronos {
  const access = readAccess(home);
  const token = settings.CHRONOS_TOKEN ?? readSecrets(home)?.CHRONOS_TOKEN ?? access?.chronos_token;
  const userId = readLabel(home);
  // In a sandbox, neither the secrets nor the process of chronosd are visible.
  const running =
    readRun(home)?.chronos_url ?? (settings.CHRONOS_TOKEN === undefined ? access?.chronos_url : undefined);
  const { CHRONOS_HOST, CHRONOS_PORT, CHRONOS_TLS_CERT } = parseSettings(schema, settings);
  // Without a token nothing is set up here, and a guess would hide that.
  const url = running ?? (token === undefined ? undefined : localAddress(CHRONOS_HOST, CHRONOS_PORT, CHRONOS_TLS_CERT));
  return {
    ...(url === undefined ? {} : { url }),
    ...(token === undefined ? {} : { token }),
    ...(userId === undefined ? {} : { userId }),
    ...(existsSync(home.keyFile) ? { keyFile: home.keyFile } : {}),
  };
}

/** The address of chronosd and its bearer token. `local`: it is the chronosd of this computer. */
export type ChronosAddress = { url: string; token: string; local: boolean };

/**
 * Finds chronosd: from the environment, else the running one, else its default address. The token of this computer's
 * chronosd is sent to no other.
 *
 * @throws ReveilleError `unavailable` without a token for it
 */
export function findChronos(context: Pick<CliContext, 'home' | 'settings'>): ChronosAddress {
  const given = parseSettings(schema, context.settings);
  const local = localChronosDefaults(context);
  const here = local.url ?? localAddress(given.CHRONOS_HOST, given.CHRONOS_PORT, given.CHRONOS_TLS_CERT);
  const url = given.MATRIX_CHRONOS_URL ?? here;
  const isLocal = url === here;
  const token = given.MATRIX_CHRONOS_TOKEN ?? (isLocal ? (local.token ?? developmentToken(given)) : undefined);
  if (token !== undefined) return { url, token, local: isLocal };
  const remedy = isLocal
    ? 'run "reveille up" once, or set MATRIX_CHRONOS_URL and MATRIX_CHRONOS_TOKEN'
    : 'set MATRIX_CHRONOS_TOKEN, the token of the chronosd that MATRIX_CHRONOS_URL names';
  throw new ReveilleError('unavailable', `no token for chronosd at ${url}: ${remedy}`, { retryable: false });
}

/** A chronosd in development mode without a token accepts any. */
function developmentToken({ CHRONOS_DEV }: { CHRONOS_DEV?: string | undefined }): string | undefined {
  return CHRONOS_DEV === '1' || CHRONOS_DEV === 'true' ? 'development' : undefined;
}

/** The file of this agent's key, existing or not. */
export function keyFileOf({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string {
  return settings.MATRIX_EXECUTOR_KEYFILE || home.keyFile;
}

/** The label of this agent, if it has one. */
export function labelOf({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string | undefined {
  return parseSettings(schema, settings).MATRIX_USER_ID ?? readLabel(home);
}

/**
 * The identity of this computer's agent.
 *
 * @throws ReveilleError `not_found` without a label or key, or as `readKeyFile`
 */
export function localIdentity(context: Pick<CliContext, 'home' | 'settings'>): Prover & { owner: string } {
  const label = labelOf(context);
  if (label !== undefined) return fileIdentity(label, keyFileOf(context));
  const remedy = 'run "reveille up" or "reveille agent whoami" to create one, or set MATRIX_USER_ID';
  throw new ReveilleError('not_found', `there is no agent identity in ${context.home.path}: ${remedy}`);
}

/**
 * The author of a message: the logged-in user, or the name of `--as`. Below an agent there is no author, because the
 * shell is the agent's.
 */
export function personOf(
  { environment }: Pick<CliContext, 'environment'>,
  { as }: { readonly as?: string | undefined } = {},
): string | undefined {
  if (environment[SPAWN_ID_VARIABLE] !== undefined) return undefined;
  const name = as ?? accountName();
  const parsed = setBySchema.safeParse({ kind: 'person', name });
  if (parsed.success) return name;
  throw new UsageError('--as must be a name of 1 to 100 characters without NUL');
}

/**
 * A client with the identity of this computer's agent; one proof of identity serves the whole command.
 *
 * @param person the author of alarms. Only the operator's token of this computer's chronosd proves an author. A program
 *   that an agent runs does not have that token, so its alarms are the agent's own.
 */
export function alarmClient(context: CliContext, person?: string): ChronosClient {
  const { url, token, local } = findChronos(context);
  const secret = local ? parseSettings(schema, context.settings).CHRONOS_ADMIN_TOKEN : undefined;
  const prove: PersonProver | undefined =
    person === undefined || secret === undefined
      ? undefined
      : (request) => personProof(person, request, { secret, now: context.clock.now() });
  return createChronosClient({
    person: prove,
    url,
    token,
    identity: localIdentity(context),
    principal: holdPrincipal(),
    clock: context.clock,
    attend: attend({ url, home: context.home, clock: context.clock }),
  });
}

/** Whether {@link alarmClient} proves a person: chronosd is on this computer, with its operator's token. */
export function provesPerson(context: Pick<CliContext, 'home' | 'settings'>, person: string | undefined): boolean {
  if (person === undefined || parseSettings(schema, context.settings).CHRONOS_ADMIN_TOKEN === undefined) return false;
  try {
    return findChronos(context).local;
  } catch (error) {
    // Without a token for chronosd, no alarm can be set either.
    if (error instanceof ReveilleError) return true;
    throw error;
  }
}

/** Every key that chronosd accepts. */
export async function* eachKey(client: Pick<ChronosClient, 'listAgents'>): AsyncGenerator<EnrolledKey> {
  let cursor: string | undefined;
  do {
    const page = await client.listAgents(cursor === undefined ? {} : { cursor });
    yield* page.agents;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/** A client for the operator's routes. */
export function adminClient(context: CliContext): ChronosClient {
  const { url, token } = findChronos(context);
  const adminToken = parseSettings(schema, context.settings).CHRONOS_ADMIN_TOKEN;
  const { home, clock } = context;
  return createChronosClient({ url, token, adminToken, clock, attend: attend({ url, home, clock }) });
}

/** The named user, or the user of this installation. */
export function userOf(context: CliContext, given: string | undefined): string {
  const label = given ?? labelOf(context);
  if (label === undefined)
    throw new UsageError('the user id is missing, and this home has no identity; give a user id');
  if (!labelSchema.safeParse(label).success)
    throw new UsageError(
      `the user id must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone (got ${JSON.stringify(label)})`,
    );
  return ownerOf(label);
}
