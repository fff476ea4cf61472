/** The executor and the identity of the commands on this computer. */
import { z } from 'zod';
import {
  createExecutorAdmin,
  createExecutorClient,
  type ExecutorAdmin,
  type ExecutorClient,
  type ExecutorEndpoint,
} from '../../executor/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseSettings, portSetting, urlSetting } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { readRun, readSubmitter } from '../home/home.ts';
import { localAddress, userOf } from './chronos.ts';
import { attend } from './unreachable.ts';

const schema = z.object({
  NEO_EXECUTOR_URL: urlSetting.optional(),
  NEO_EXECUTOR_TOKEN: z.string().optional(),
  EXECUTOR_HOST: z.string().optional(),
  EXECUTOR_TLS_CERT: z.string().optional(),
  EXECUTOR_PORT: portSetting.default(8081),
  EXECUTOR_TOKEN: z.string().optional(),
});

/** Finds the executor: the agent's one, else the running one, else its default address. */
export function findExecutor({
  home,
  settings,
}: Pick<CliContext, 'home' | 'settings'>): ExecutorEndpoint & { readonly isHere: boolean } {
  const given = parseSettings(schema, settings);
  const here =
    readRun(home)?.executor_url ?? localAddress(given.EXECUTOR_HOST, given.EXECUTOR_PORT, given.EXECUTOR_TLS_CERT);
  const url = given.NEO_EXECUTOR_URL ?? here;
  // The token of this computer's executor is sent to no other.
  const isHere = url === here;
  return { url, token: given.NEO_EXECUTOR_TOKEN ?? (isHere ? given.EXECUTOR_TOKEN : undefined), isHere };
}

/**
 * The executor for this user's intents, with the user's own token if there is one.
 *
 * @param here the executor of a `reveille up` in this process, which has no run record yet
 */
export function taskEndpoint(context: Pick<CliContext, 'home' | 'settings'>, here?: string): ExecutorEndpoint {
  const { url, token, isHere } = findExecutor(context);
  const isOwn = isHere || url === here;
  const own = isOwn ? readSubmitter(context.home)?.token : undefined;
  return { url: isHere && here !== undefined ? here : url, token: own ?? token };
}

/** A client for the intents of one user: the named one, or the user of this installation. */
export function executorClient(context: CliContext, user: string | undefined): ExecutorClient {
  const { home, clock } = context;
  const place = findExecutor(context);
  return createExecutorClient({
    ...place,
    userId: userOf(context, user),
    attend: attend({ url: place.url, home, clock }),
  });
}

/** An operator's client for a known address. */
export const executorAdminAt = ({ home, clock }: CliContext, url: string, adminToken: string): ExecutorAdmin =>
  createExecutorAdmin({ url, token: adminToken, attend: attend({ url, home, clock }) });

/** The admin client of the executor of these commands. @throws ReveilleError `forbidden` without its token */
export function executorAdmin(context: CliContext): ExecutorAdmin {
  const { url, isHere } = findExecutor(context);
  // The generated token of this computer's executor is sent to no other.
  const { settings, environment, home, clock } = context;
  const token = isHere ? settings.EXECUTOR_ADMIN_TOKEN : environment.EXECUTOR_ADMIN_TOKEN;
  if (token) return createExecutorAdmin({ url, token, attend: attend({ url, home, clock }) });
  throw new ReveilleError('forbidden', `EXECUTOR_ADMIN_TOKEN is not set; set it to that of the executor at ${url}`);
}
