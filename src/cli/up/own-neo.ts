/**
 * The Neo of this installation as a machine, the return to it with `machine put --provider neo`, and its submitter's token.
 */
import { basename } from 'node:path';
import type { ExecutorAdmin } from '../../executor/client.ts';
import type { RouterClient } from '../../router/client.ts';
import {
  type MachinePut,
  type MachinePutAnswer,
  type MachineView,
  machinePutSchema,
} from '../../router/machines/machine-schema.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { labelOf, userOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { budgetOf } from '../flags/budget-flags.ts';
import { type PutFlags, refuseForeign } from '../flags/machine-flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { type Home, readRun, readSubmitter, renewNeoToken, writeSubmitter } from '../home/home.ts';
import { PROGRAM } from '../home/package-root.ts';

/** Whether a machine is the Neo of an earlier `up`, perhaps with another folder or another Node. */
export function isOwnNeo({ provider, spec }: MachineView): boolean {
  const command = Array.isArray(spec.command) ? spec.command.map(String) : [];
  return provider === 'process' && command.at(-1) === 'neo' && basename(command.at(-2) ?? '') === basename(PROGRAM);
}

/** The machine of a user before a change; `undefined` without one. */
export async function existingMachine(router: RouterClient, userId: string): Promise<MachineView | undefined> {
  try {
    return await router.show(userId);
  } catch (error) {
    if (error instanceof ReveilleError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** The running `up`'s registration of Neo. */
function registrationOf({ home }: CliContext): MachinePut {
  const registered = machinePutSchema.safeParse(readRun(home)?.neo);
  if (registered.success) return registered.data;
  const why = `the local Neo has its settings from "reveille up", which does not run in ${home.path}`;
  throw new ReveilleError('unavailable', `${why}; start it, then put Neo back`);
}

/**
 * Makes the local Neo this installation's agent again, with the settings of the running `up` and a new token: the old one
 * may have been used by the machine in between.
 *
 * @param given the user id in the command line
 * @throws UsageError for another user, and for other flags; ReveilleError `unavailable` when `up` does not run
 */
export async function putOwnNeo(
  context: CliContext,
  router: RouterClient,
  flags: PutFlags,
  given: string | undefined,
): Promise<MachinePutAnswer> {
  refuseForeign(flags, 'neo', []);
  if (flags.token !== undefined) throw new UsageError('--token is not a flag of --provider neo; Neo gets a new one');
  const own = userOf(context, undefined);
  if (userOf(context, given) !== own)
    throw new UsageError(`--provider neo is for the agent of ${labelOf(context)} only; omit the user id`);
  const registration = registrationOf(context);
  const there = await existingMachine(router, own);
  const budget = budgetOf(flags);
  const token = there && there.state !== 'deleted' && isOwnNeo(there) ? undefined : renewNeoToken(context.home);
  return await router.put(own, { ...registration, ...(budget && { budget }), ...(token !== undefined && { token }) });
}

/** The token with which Neo submits intents. It is created once, and again when the executor no longer accepts it. */
export async function ensureSubmitter(admin: ExecutorAdmin, home: Home, user: string): Promise<string> {
  const own = readSubmitter(home);
  const standing = await admin.submitters(user);
  if (own && standing.some(({ id, revoked_at }) => id === own.id && revoked_at === undefined)) return own.token;
  const { id, token } = await admin.addSubmitter(user, 'neo');
  writeSubmitter(home, { id, token });
  return token;
}
