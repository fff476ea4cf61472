/**
 * The executor: wires journal, tools, policy, compiler, walk, outbox and HTTP server from a configuration. Nothing else
 * does.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import type { RunningServer } from '../kit/http/server.ts';
import { loadOrCreateKey } from '../kit/identity/keys.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Model } from '../kit/model/model.ts';
import type { Walls } from '../kit/process/separation.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import type { ReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import { type BackgroundToolbox, backgroundToolbox } from './background-toolbox.ts';
import { type Compiler, offlineCompiler } from './compile/compiler.ts';
import type { ExecutorConfig } from './config.ts';
import { startExecutorServer } from './http/server.ts';
import { openJournal } from './journal/journal.ts';
import { createExecutorOutbox } from './outbox/outbox.ts';
import { type ReadPolicy, readPolicy } from './policy/read-policy.ts';
import { loadSigningKey } from './receipt/signing-key.ts';
import type { Toolbox } from './tools/toolbox.ts';
import { createRail } from './walk/rail.ts';

/** How long a drain waits for calls under way; what is left is found out about at the next start. */
const DRAIN_MS = 10_000;

/** What servers have to be compared; one that hangs is no reason not to answer questions. */
const COMPARE_MS = 5_000;

type ExecutorOptions = {
  readonly config: ExecutorConfig;
  /**
   * What references in the manifest refer to, and what programs that are started get an allow-list of; nothing unless
   * told.
   */
  readonly variables?: Settings;
  /** What MCP servers that it starts must not see. */
  readonly walls?: Walls | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Compiles prose instead of the model that the configuration names. */
  readonly model?: Model;
  /**
   * When the servers of the manifest are started at the latest, in milliseconds from now; they are started sooner when
   * a task needs them. At once unless told.
   */
  readonly toolsAfterMs?: number;
  /** Told when the servers of the manifest cannot be had. The executor goes on without them unless it is closed. */
  readonly onNoTools?: (error: ReveilleError) => void;
  readonly drainMs?: number;
};

export type RunningExecutor = {
  readonly port: number;
  readonly url: string;
  /** Signs receipts, and speaks to chronosd; 64 hex digits. */
  readonly publicKey: string;
  /** By which plans set alarms of a user; `undefined` for one who can have none. */
  agentKeyOf(user: string): string | undefined;
  /** Accepts nothing more, waits for calls under way for a while, and leaves the rest to the next process. */
  close(): Promise<void>;
};

/**
 * The public key by which plans set alarms of a user: one for each user, enrolled at chronosd for that user alone, so
 * that one which leaks is one user's alarms and is revoked by itself. Its file is made when there is none; an operator
 * may put one there before.
 *
 * @returns 64 hex digits; `undefined` for a user whose name cannot stand in an identity, and who has no alarms
 * @throws ReveilleError when the folder or the file cannot be used
 */
function agentKeyOf(folder: string, user: string): string | undefined {
  if (!labelSchema.safeParse(user).success) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return loadOrCreateKey(join(folder, `${ownerOf(user)}.key`)).publicKeyHex;
}

/** What makes intents of prose. The model's client is loaded with the first task that needs it. */
function compilerOf(
  { config, model, clock, log }: ExecutorOptions,
  { toolbox, policy }: { toolbox: Toolbox; policy: ReadPolicy },
): Compiler {
  const { model: endpoint } = config;
  if (model === undefined && endpoint.kind === 'offline') return offlineCompiler;
  let compiler: Promise<Compiler> | undefined;
  const load = async (): Promise<Compiler> => {
    const [{ createCompiler }, { endpointModel }] = await Promise.all([
      import('./compile/model-compiler.ts'),
      import('../kit/model/endpoint.ts'),
    ]);
    const speaker = endpoint.kind === 'endpoint' ? endpointModel(endpoint, 'EXECUTOR', clock) : undefined;
    return createCompiler({ model: model ?? speaker!, toolbox, policy, clock, log });
  };
  return {
    async compile(draft) {
      compiler ??= load();
      return (await compiler).compile(draft);
    },
  };
}

/**
 * Finds out whether manifest, lock and registry agree before anything listens: from the files, and by starting the
 * servers that have to be started to know, for which it waits some seconds.
 *
 * @throws ReveilleError `conflict` naming each difference; `invalid_request` for a manifest that is wrong; what is told to
 *   `onNoTools`, where somebody is to be told
 */
async function checkTools(toolbox: BackgroundToolbox, options: ExecutorOptions, variables: Settings): Promise<void> {
  const { config, clock, onNoTools } = options;
  const { mustStart } = await import('./tools/create-toolbox.ts');
  if (!mustStart(config.manifest, { ...variables, EXECUTOR_WORKSPACE: config.workspace })) return;
  const enough = Promise.withResolvers<void>();
  const cancel = clock.after(COMPARE_MS, enough.resolve);
  await Promise.race([toolbox.ready(), enough.promise]);
  cancel();
  const failure = toolbox.failure();
  if (failure && (failure.code !== 'unavailable' || onNoTools)) throw failure;
}

/**
 * Starts the executor; resolves when it accepts requests. Intents that the last process left behind are taken up as
 * soon as the tools are there.
 *
 * @throws ReveilleError `invalid_request` for a policy or key file that is wrong, `unavailable` when the data folder is
 *   in use or damaged or the address is taken, `conflict` when the data folder is another key's or a newer version's, or
 *   when manifest, lock and registry disagree
 */
export async function startExecutor(options: ExecutorOptions): Promise<RunningExecutor> {
  const { config, variables = {}, clock, log, toolsAfterMs = 0, onNoTools, drainMs = DRAIN_MS } = options;
  const { dataDir, manifest, workspace, reconcileMs } = config;
  for (const warning of config.warnings) log.warn(warning);
  const policy = readPolicy(config.policy);
  for (const warning of policy.warnings) log.warn(warning);
  const key = loadSigningKey(join(dataDir, 'executor.key'));
  const ofChronos = config.chronos && {
    MATRIX_CHRONOS_URL: config.chronos.url,
    MATRIX_CHRONOS_TOKEN: config.chronos.token,
  };
  const known = { ...variables, ...ofChronos, MATRIX_AGENT_KEYS: config.agentKeysDir };
  let isReady = false;
  const toolbox = backgroundToolbox({
    manifest,
    log,
    onFailure: (error) => isReady && onNoTools?.(error),
    async open(signal) {
      // The MCP host costs as much to load as the rest of the executor.
      const { createToolbox } = await import('./tools/create-toolbox.ts');
      return createToolbox({
        ...{
          manifest,
          workspace,
          limits: config.limits,
          variables: known,
          sandbox: options.walls,
          dataDir,
          clock,
          log,
          signal,
        },
        beforeUser: (user) => void agentKeyOf(config.agentKeysDir, user),
      });
    },
  });
  const journal = openJournal({
    ...{ dataDir, key, clock, log },
    ...{ bounds: config.bounds, enrollment: config.enrollment },
  });
  const compiler = compilerOf(options, { toolbox, policy });
  const canWake = config.chronos !== undefined;
  const rail = createRail({ journal, toolbox, policy, compiler, clock, log, reconcileMs, canWake });
  const outbox = createExecutorOutbox({
    ...{ messages: journal.outbox, rail, config, key, variables, clock, log },
    random: Math.random,
  });
  let server: RunningServer;
  try {
    await checkTools(toolbox, options, known);
    server = await startExecutorServer({
      ...{ config, rail, journal, publicKey: key.publicKeyHex, tools: toolbox, clock, log, drainMs },
    });
  } catch (error) {
    await toolbox.close();
    await journal.close();
    throw error;
  }
  isReady = true;
  const cancelTools = clock.after(toolsAfterMs, toolbox.start);
  outbox.start();
  const takeUp = async () => {
    const left = journal.open().length;
    if (left > 0) await toolbox.ready();
    // A manifest that is broken for a day must not fail what waits for an answer.
    if (left > 0 && toolbox.failure()) return log.error({ intents: left }, 'intents wait for the tools to be there');
    if (closed === undefined) rail.start();
  };
  let closed: Promise<void> | undefined;
  void takeUp();
  log.info({ url: server.url, data: dataDir, model: config.model.kind }, 'the executor is ready');

  const close = async () => {
    cancelTools();
    // All at once: requests that are being answered, calls that have begun, and outbox have nothing to wait for one
    // another.
    await Promise.all([server.close(), rail.close(drainMs), outbox.close()]);
    await toolbox.close();
    await journal.close();
  };
  return {
    port: server.port,
    url: server.url,
    publicKey: key.publicKeyHex,
    agentKeyOf: (user) => agentKeyOf(config.agentKeysDir, user),
    close() {
      closed ??= close();
      return closed;
    },
  };
}
