/**
 * `reveille/client`: the typed clients of chronosd, the router and the executor, as the command line and the daemons use
 * them. Every method rejects with `ReveilleError`, whose `code` and `retryable` say what to do.
 *
 * The clients of the installation on this machine, as whoever `reveille up` runs for:
 *
 * ```ts
 * import { localClients } from 'reveille/client';
 *
 * const { chronos } = await localClients();
 * const { id } = await chronos.createAlarm({
 *   kind: 'once', delay_seconds: 600, wake_message: 'Look whether the build is green.', conversation_id: 'builds',
 * });
 * await chronos.cancelAlarm(id);
 * ```
 *
 * Those of a server, with what it was started with: `createChronosClient({ url, token, identity })`, where an identity
 * is a label and the key in a file, `agentIdentity('build-agent', readKeyFile('agent.key'))`.
 */
import type { ChronosClient } from '../chronos/client.ts';
import { alarmClient } from '../cli/access/chronos.ts';
import { executorClient } from '../cli/access/executor.ts';
import { routerClient } from '../cli/access/router.ts';
import { createContext } from '../cli/context.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { RouterClient } from '../router/client.ts';

export {
  type AlarmCreateBody,
  type AlarmPage,
  type AlarmPatchBody,
  type AlarmQuery,
  type ChronosClient,
  type ChronosClientOptions,
  createChronosClient,
  eachAlarm,
  type FirePage,
  type FireQuery,
  firesSince,
  holdPrincipal,
  type Prover,
} from '../chronos/client.ts';
export {
  createExecutorAdmin,
  createExecutorClient,
  digestsOf,
  type ExecutorAdmin,
  type ExecutorClient,
  type ExecutorClientOptions,
} from '../executor/client.ts';
export { type AgentIdentity, agentIdentity } from '../kit/identity/agent.ts';
export { generateKey, readKeyFile, writeKeyFile } from '../kit/identity/keys.ts';
export { createRouterClient, type RouterClient } from '../router/client.ts';
export { ReveilleError } from '../wire/errors.ts';
export { RawJson } from '../wire/json.ts';

export type LocalClients = {
  /** Speaks as this machine's agent: the alarms are its own. */
  readonly chronos: ChronosClient;
  readonly router: RouterClient;
  /** For the intents of this machine's user. It submits and looks; what approves is a key of the person's own. */
  readonly executor: ExecutorClient;
};

/**
 * The clients of the installation on this machine, by the environment and `REVEILLE_HOME`, as each command finds it. A
 * `reveille up` must have run there once.
 *
 * @param settings variables that count instead of those of the environment, such as `REVEILLE_HOME`
 * @throws ReveilleError `unavailable` or `not_found` with a remedy, where nothing was set up
 */
export async function localClients(settings: Readonly<Record<string, string>> = {}): Promise<LocalClients> {
  const context = await createContext(process, {}, settings);
  return { chronos: alarmClient(context), router: routerClient(context), executor: executorClient(context, undefined) };
}
