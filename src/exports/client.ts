/**
 * `reveille/client`: the typed clients of chronosd, the router and the executor. Every method rejects with
 * `ReveilleError`, whose `code` and `retryable` describe the error.
 *
 * The clients of the installation on this computer, for its user:
 *
 * ```ts
 * import { localClients } from 'reveille/client';
 *
 * const { chronos } = await localClients();
 * const { id } = await chronos.createAlarm({
 *   kind: 'once', delay_seconds: 600, wake_message: 'Check whether the build is green.', conversation_id: 'builds',
 * });
 * await chronos.cancelAlarm(id);
 * ```
 *
 * An alarm that waits for an event; the answer has the address and the secret of its webhook. One that is checked
 * before each wake:
 *
 * ```ts
 * const { hook } = await chronos.createAlarm({
 *   event: { source: 'webhook', verify: 'github', quiet_for: 'PT30S', repeat: 'always' }, wake_message: 'Review it.',
 * });
 * await chronos.createAlarm({
 *   when: 'every 15 minutes', check: { http: { url: 'https://example.com/feed', etag: 'changed' } },
 *   wake_message: 'Read the feed.',
 * });
 * ```
 *
 * The clients of a server: `createChronosClient({ url, token, identity })`. An identity is a label and a key from a file:
 * `agentIdentity('build-agent', readKeyFile('agent.key'))`.
 */
import type { ChronosClient } from '../chronos/client.ts';
import { alarmClient } from '../cli/access/chronos.ts';
import { executorClient } from '../cli/access/executor.ts';
import { routerClient } from '../cli/access/router.ts';
import { createContext } from '../cli/context.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { RouterClient } from '../router/client.ts';

export {
  type AlarmBackfillBody,
  type AlarmCreateBody,
  type AlarmPage,
  type AlarmPatchBody,
  type AlarmPreviewBody,
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
  /** With the identity of this computer's agent: the alarms are its own. */
  readonly chronos: ChronosClient;
  readonly router: RouterClient;
  /** For the intents of this computer's user. It submits and reads intents; approvals need the user's own key. */
  readonly executor: ExecutorClient;
};

/**
 * The clients of the installation on this computer, found as every command finds it, by the environment and
 * `REVEILLE_HOME`. `reveille up` must have run there once.
 *
 * @param settings override variables of the environment, such as `REVEILLE_HOME`
 * @throws ReveilleError `unavailable` or `not_found` with a remedy, without an installation
 */
export async function localClients(settings: Readonly<Record<string, string>> = {}): Promise<LocalClients> {
  const context = await createContext(process, {}, settings);
  return { chronos: alarmClient(context), router: routerClient(context), executor: executorClient(context, undefined) };
}
