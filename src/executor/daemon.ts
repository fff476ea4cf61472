/** The executor: wires journal, tools, policy, compiler, execution, outbox and HTTP server from a configuration. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import { EventFeed } from '../kit/http/event-feed.ts';
import { FeedStreams } from '../kit/http/feed-stream.ts';
import type { RunningServer } from '../kit/http/server.ts';
import { loadOrCreateKey } from '../kit/identity/keys.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Model } from '../kit/model/model.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import { type BackgroundToolbox, backgroundToolbox } from './background-toolbox.ts';
import { type Compiler, offlineCompiler } from './compile/compiler.ts';
import type { ExecutorConfig } from './config.ts';
import { createRail } from './execution/rail.ts';
import { startExecutorServer } from './http/server.ts';
import { intentFeedSource } from './journal/intent-changes.ts';
import { openJournal } from './journal/journal.ts';
import { createExecutorOutbox } from './outbox/outbox.ts';
import { type ReadPolicy, readPolicy } from './policy/read-policy.ts';
import { loadSigningKey } from './receipt/chain.ts';
import type { Toolbox } from './tools/toolbox.ts';

/** How long a drain waits for calls in progress; the next start reconciles the rest. */
const DRAIN_MS = 10_000;

/**
 * How long the start waits for servers that must be compared with the lock; a hanging server must not delay answers.
 */
const COMPARE_MS = 5_000;

/** Names in a refusal of too many streams of events, and when to try again. */
const STREAM_SETTINGS = { perOwner: 'EXECUTOR_EVENT_STREAMS_PER_USER', inAll: 'EXECUTOR_EVENT_STREAMS' };
const STREAM_RETRY_SECONDS = 60;

type ExecutorOptions = {
  readonly config: ExecutorConfig;
  /**
   * The environment that references in the manifest read and from which started programs get an allow-list. Empty by
   * default.
   */
  readonly variables?: Settings;
  /** The sandbox of the MCP servers that it starts. */
  readonly sandbox?: Sandbox | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Compiles prose instead of the model that the configuration names. */
  readonly model?: Model;
  /**
   * Latest start of the manifest's servers, in milliseconds from now. A task that needs them starts them earlier.
   * Default 0.
   */
  readonly toolsAfterMs?: number;
  /** Open intents resume, and messages are sent, after this; at once by default. */
  readonly startAfter?: Promise<void>;
  /** Called when the manifest's servers cannot be started. The executor continues without them. */
  readonly onNoTools?: (error: ReveilleError) => void;
  readonly drainMs?: number;
};

export type RunningExecutor = {
  readonly port: number;
  readonly url: string;
  /** The key that signs receipts and authenticates at chronosd; 64 hex digits. */
  readonly publicKey: string;
  /** The key with which plans set alarms of a user; `undefined` for a user who cannot have alarms. */
  agentKeyOf(user: string): string | undefined;
  /** Accepts nothing new, waits a limited time for calls in progress, and leaves the rest to the next process. */
  close(): Promise<void>;
};

/**
 * The public key with which plans set alarms of a user. Each user has one, enrolled at chronosd for that user alone. A
 * leaked key affects one user's alarms and can be revoked alone. The file is created when it is missing; an operator
 * may provide one before.
 *
 * @returns 64 hex digits; `undefined` for a user whose name cannot be part of an identity; such a user has no alarms
 * @throws ReveilleError when the folder or the file cannot be used
 */
function agentKeyOf(folder: string, user: string): string | undefined {
  if (!labelSchema.safeParse(user).success) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return loadOrCreateKey(join(folder, `${ownerOf(user)}.key`)).publicKeyHex;
}

/** The compiler of prose. The model's client is loaded with the first task that needs it. */
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
    const endpointClient = endpoint.kind === 'endpoint' ? endpointModel(endpoint, 'EXECUTOR', clock) : undefined;
    return createCompiler({ model: model ?? endpointClient!, toolbox, policy, clock, log });
  };
  return {
    async compile(draft) {
      compiler ??= load();
      return (await compiler).compile(draft);
    },
  };
}

/**
 * Checks before listening that manifest, lock and registry agree: from the files, and by starting the servers that must
 * be started for it. It waits some seconds for them.
 *
 * @throws ReveilleError `conflict` naming each difference; `invalid_request` for a wrong manifest; the failure of
 *   `onNoTools`, if `onNoTools` is given
 */
async function checkTools(toolbox: BackgroundToolbox, options: ExecutorOptions, variables: Settings): Promise<void> {
  const { config, clock, onNoTools } = options;
  const { mustStart } = await import('./tools/create-toolbox.ts');
  if (!mustStart(config.manifest, { ...variables, EXECUTOR_WORKSPACE: config.workspace })) return;
  const timeout = Promise.withResolvers<void>();
  const cancel = clock.after(COMPARE_MS, timeout.resolve);
  await Promise.race([toolbox.ready(), timeout.promise]);
  cancel();
  const failure = toolbox.failure();
  if (failure && (failure.code !== 'unavailable' || onNoTools)) throw failure;
}

/**
 * Starts the executor; resolves when it accepts requests. Open intents of the last process resume as soon as the tools
 * are available.
 *
 * @throws ReveilleError `invalid_request` for a wrong policy or key file, `unavailable` when the data folder is in use
 *   or damaged or the address is taken. Throws `conflict` when the data folder belongs to another key or a newer
 *   version, or when manifest, lock and registry disagree
 */
export async function startExecutor(options: ExecutorOptions): Promise<RunningExecutor> {
  const { config, variables = {}, clock, log, toolsAfterMs = 0, startAfter, onNoTools, drainMs = DRAIN_MS } = options;
  const { dataDir, manifest, workspace, reconcileMs } = config;
  for (const warning of config.warnings) log.warn(warning);
  const policy = readPolicy(config.policy);
  for (const warning of policy.warnings) log.warn(warning);
  const key = loadSigningKey(join(dataDir, 'executor.key'));
  const chronosVariables = config.chronos && {
    MATRIX_CHRONOS_URL: config.chronos.url,
    MATRIX_CHRONOS_TOKEN: config.chronos.token,
  };
  const toolVariables = { ...variables, ...chronosVariables, MATRIX_AGENT_KEYS: config.agentKeysDir };
  let isReady = false;
  const toolbox = backgroundToolbox({
    manifest,
    log,
    onFailure: (error) => isReady && onNoTools?.(error),
    async open(signal) {
      // Loading the MCP host takes as long as loading the rest of the executor.
      const { createToolbox } = await import('./tools/create-toolbox.ts');
      return createToolbox({
        ...{ manifest, workspace, limits: config.limits, variables: toolVariables, sandbox: options.sandbox },
        ...{ dataDir, clock, log, signal },
        beforeUser: (user) => void agentKeyOf(config.agentKeysDir, user),
      });
    },
  });
  const { bounds, enrollment } = config;
  const journal = openJournal({ dataDir, key, clock, log, bounds, enrollment });
  const compiler = compilerOf(options, { toolbox, policy });
  const canWake = config.chronos !== undefined;
  const rail = createRail({ journal, toolbox, policy, compiler, clock, log, reconcileMs, canWake });
  const feed = new EventFeed({ source: intentFeedSource(journal), clock, name: 'the executor' });
  const streams = new FeedStreams({
    ...{ feed, clock, limits: config.streams, settings: STREAM_SETTINGS, figures: { open: 0, sent: 0 } },
    refusal: (message) => new ReveilleError('rate_limited', message, { retryAfterSeconds: STREAM_RETRY_SECONDS }),
  });
  const outbox = createExecutorOutbox({
    ...{ messages: journal.outbox, rail, config, key, variables, clock, log },
    random: Math.random,
  });
  let server: RunningServer;
  try {
    await checkTools(toolbox, options, toolVariables);
    const parts = { config, rail, streams, journal, publicKey: key.publicKeyHex, tools: toolbox };
    server = await startExecutorServer({ ...parts, clock, log, drainMs });
  } catch (error) {
    await toolbox.close();
    await journal.close();
    throw error;
  }
  isReady = true;
  const cancelTools = clock.after(toolsAfterMs, toolbox.start);
  const resumeIntents = async () => {
    await startAfter;
    if (closed !== undefined) return;
    outbox.start();
    const openIntents = journal.open().length;
    if (openIntents > 0) await toolbox.ready();
    // A broken manifest must not fail intents that wait for an answer.
    if (openIntents > 0 && toolbox.failure()) return log.error({ intents: openIntents }, 'intents wait for the tools');
    if (closed === undefined) rail.start();
  };
  let closed: Promise<void> | undefined;
  void resumeIntents();
  log.info({ url: server.url, data: dataDir, model: config.model.kind }, 'the executor is ready');

  const close = async () => {
    cancelTools();
    feed.close();
    // Concurrently: requests, calls in progress and outbox do not depend on each other.
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
