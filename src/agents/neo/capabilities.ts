/**
 * The capabilities of a turn besides its model: tools, memory, and the executor for `core_execute`. They start in the
 * background, because Neo must accept wakes before the last MCP server is ready. A turn waits for them, as long as a
 * server may take to start.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Sandbox } from '../../kit/process/isolation.ts';
import type { Turn } from '../../turns/turn.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import type { NeoConfig } from './config.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { Approvers } from './delegate/approvers.ts';
import type { ExecutorAddress, ExecutorLink } from './delegate/delegate.ts';
import type { ConversationSource } from './delegate/evidence.ts';
import type { Memory } from './memory/open-memory.ts';
import { chooseModel } from './model.ts';
import type { TurnMemory } from './prompt.ts';
import type { Questions } from './questions.ts';
import { noTools, StoppedWhileStarting, type ToolSurface } from './tools/surface.ts';

export type CapabilitiesOptions = {
  config: NeoConfig;
  /** The values for references in the manifest. */
  variables: Settings;
  /** Paths that child servers must not see. */
  sandbox?: Sandbox | undefined;
  store: Pick<ConversationStore, 'turn' | 'newestDone'> & ConversationSource;
  approvers: Approvers;
  /** The questions of MCP servers to the person. */
  questions?: Pick<Questions, 'ofCall'> | undefined;
  clock: Clock;
  log: Logger;
  /** Called once when the tools differ from the manifest or cannot be started: Neo must stop. */
  onFatal: (error: ReveilleError) => void;
};

export type Capabilities = {
  /**
   * Checks whether manifest, lock, registry and skill agree. Files are compared at once. Servers whose tools are
   * unknown before a start are started, and the check waits some seconds for them. A slower server is compared when it
   * is ready.
   *
   * @throws ReveilleError `conflict` naming each difference, or as `spawnTools`
   */
  check(): Promise<void>;
  /** Begins to start, unless that has happened. */
  start(): void;
  /**
   * Starts if needed; resolves when every server had time to start. Rejects with `StoppedWhileStarting` when the start
   * was cancelled.
   */
  ready(): Promise<ToolSurface>;
  describe(): Promise<SurfaceView>;
  /** Empty until the capabilities are ready. */
  readonly memory: TurnMemory;
  /** Reports the end of a turn; learning from it runs in the background. */
  learnFrom(turn: Turn): void;
  readonly executor: Pick<ExecutorLink, 'answer' | 'openGates' | 'receipt' | 'watchGates'> | undefined;
  /** Cancels a running start; no caller may wait for it any more. */
  stopStarting(): void;
  close(): Promise<void>;
};

/** The models for memory, where real ones are configured. */
async function memoryModels({ model, cheapModel, embedModel }: NeoConfig, clock: Clock) {
  if (model.kind === 'offline') return {};
  const [{ modelQuery }, { embeddingEndpoint }] = await Promise.all([
    import('./memory/learner.ts'),
    import('./memory/embedding-endpoint.ts'),
  ]);
  const { baseUrl, apiKey } = model;
  return {
    ...(cheapModel === null
      ? {}
      : { queryModel: modelQuery(chooseModel({ ...model, model: cheapModel ?? model.model }, clock)) }),
    ...(embedModel === undefined
      ? {}
      : { embedding: { model: embedModel, embed: embeddingEndpoint({ baseUrl, apiKey, model: embedModel }, clock) } }),
  };
}

async function linkExecutor(executor: ExecutorAddress, { store, approvers, clock, log }: CapabilitiesOptions) {
  const [{ createExecutorLink }, { conversationsOf }] = await Promise.all([
    import('./delegate/delegate.ts'),
    import('./delegate/evidence.ts'),
  ]);
  return createExecutorLink({ executor, approvers, conversations: conversationsOf(store, log), clock, log });
}

/** How long Neo waits for the comparison of servers before it reports ready. A hanging server must not block wakes. */
const COMPARE_MS = 5_000;

/** Creates the capabilities; nothing is started before `check` or `start`. */
export async function createCapabilities(options: CapabilitiesOptions): Promise<Capabilities> {
  const { config, variables, sandbox, store, clock, log, onFatal } = options;
  const { tools, dataDir } = config;
  const stopping = new AbortController();
  let memory: Memory | undefined;
  let starting: Promise<ToolSurface> | undefined;
  let isReady = false;
  /** The check reports errors from now on. */
  let isChecking = false;
  const executor = tools?.executor && (await linkExecutor(tools.executor, options));

  async function startMemory(): Promise<readonly string[]> {
    const [{ openMemoryOrWarn }, models] = await Promise.all([
      import('./memory/open-memory.ts'),
      memoryModels(config, clock),
    ]);
    const opened = openMemoryOrWarn({ dataDir, clock, log, turns: store, ...models });
    memory = opened.memory;
    return opened.warnings;
  }

  async function startAll(): Promise<ToolSurface> {
    if (!tools) return noTools;
    const [{ spawnTools }, warnings] = await Promise.all([import('./tools/start-host.ts'), startMemory()]);
    const surface = await spawnTools({
      config: tools,
      variables,
      sandbox,
      dataDir,
      warnings,
      delegate: executor?.delegate,
      questions: options.questions,
      recall: memory && ((query) => memory!.digest(query)),
      signal: stopping.signal,
      clock,
      log,
    });
    const withMemory: ToolSurface = {
      ...surface,
      warnings: () => [...surface.warnings(), ...(memory?.warnings() ?? [])],
      describe: () => ({ ...surface.describe(), warnings: [...withMemory.warnings()] }),
    };
    for (const warning of withMemory.warnings()) log.warn(warning);
    return withMemory;
  }

  function start(): Promise<ToolSurface> {
    if (!starting) {
      starting = startAll();
      starting.then(
        () => {
          isReady = true;
        },
        (thrown: unknown) => {
          if (!stopping.signal.aborted && !isChecking) onFatal(toReveilleError(thrown));
        },
      );
    }
    return starting;
  }

  return {
    async check() {
      if (!tools) return;
      const { checkFiles } = await import('./tools/file-check.ts');
      if (!checkFiles(tools, variables, dataDir)) return;
      isChecking = true;
      const deadline = Promise.withResolvers<void>();
      const cancel = clock.after(COMPARE_MS, () => {
        log.warn({ after_ms: COMPARE_MS }, 'MCP servers are still starting; they are compared when they are ready');
        deadline.resolve();
      });
      try {
        await Promise.race([start(), deadline.promise]);
      } finally {
        cancel();
        isChecking = false;
      }
    },

    start: () => void start().catch(() => {}),

    // With an error the turn would fail permanently, although the next Neo may be able to run it.
    ready: () =>
      start().catch((cause: unknown) => {
        throw new StoppedWhileStarting('Neo stops before its tools are ready', { cause });
      }),

    describe: async () => (await start()).describe(),

    memory: {
      profile: () => memory?.profile(),
      relevantTo: async (turn, limit) => memory?.relevantTo(turn, limit),
    },

    learnFrom(turn) {
      void memory?.learner?.offer(turn);
    },

    executor,

    stopStarting() {
      if (!isReady) stopping.abort(new ReveilleError('unavailable', 'Neo stops'));
    },

    async close() {
      stopping.abort(new ReveilleError('unavailable', 'Neo stops'));
      const surface = await starting?.catch(() => undefined);
      await Promise.all([surface?.close(), executor?.close()]);
      await memory?.close();
    },
  };
}
