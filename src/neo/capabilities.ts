/**
 * What a turn has besides its model: tools, memory, and the executor behind `core_execute`. Started in the background,
 * for Neo has to accept wakes before the last MCP server is up; a turn waits for it, as long as a server may take to
 * start.
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Walls } from '../kit/process/separation.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import type { SurfaceView } from '../wire/tool-surface.ts';
import type { NeoConfig } from './config.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { Approvers } from './delegate/approvers.ts';
import type { ExecutorAddress, ExecutorLink } from './delegate/delegate.ts';
import type { ConversationSource } from './delegate/evidence.ts';
import type { Memory } from './memory/open-memory.ts';
import { chooseModel } from './model.ts';
import type { Remembrance } from './prompt.ts';
import { noTools, StoppedWhileStarting, type ToolSurface } from './tools/surface.ts';
import type { Turn } from './turn.ts';

export type CapabilitiesOptions = {
  config: NeoConfig;
  /** What references in the manifest refer to. */
  variables: Settings;
  /** What servers that run as children must not see. */
  walls?: Walls | undefined;
  store: Pick<ConversationStore, 'turn' | 'newestDone'> & ConversationSource;
  approvers: Approvers;
  clock: Clock;
  log: Logger;
  /** Told once when the tools are not what the manifest says, or cannot be had at all: Neo must not go on. */
  onFatal: (error: ReveilleError) => void;
};

export type Capabilities = {
  /**
   * Finds out whether manifest, lock, registry and skill agree: from the files at once, and by starting the servers that
   * have to be started to know, for which it waits some seconds. One that takes longer is compared when it is there.
   *
   * @throws ReveilleError `conflict` naming each difference, or as `spawnTools`
   */
  check(): Promise<void>;
  /** Begins to start, unless that has happened. */
  start(): void;
  /**
   * Starts if need be; resolves when every server has had its time. Rejects with `StoppedWhileStarting` when that came
   * to nothing.
   */
  ready(): Promise<ToolSurface>;
  describe(): Promise<SurfaceView>;
  /** Empty until the capabilities are ready. */
  readonly memory: Remembrance;
  /** A turn has ended; what can be learned from it is learned in the background. */
  learnFrom(turn: Turn): void;
  readonly executor: Pick<ExecutorLink, 'answer' | 'openGates' | 'receipt'> | undefined;
  /** Calls a start off that is under way: nobody is to wait for it any more. */
  stopStarting(): void;
  close(): Promise<void>;
};

/** The models that memory uses, where real ones are configured. */
async function memoryModels({ model, cheapModel, embedModel }: NeoConfig, clock: Clock) {
  if (model.kind === 'offline') return {};
  const [{ askModel }, { embeddingEndpoint }] = await Promise.all([
    import('./memory/learner.ts'),
    import('./memory/embedding-endpoint.ts'),
  ]);
  const { baseUrl, apiKey } = model;
  return {
    ...(cheapModel === null
      ? {}
      : { ask: askModel(chooseModel({ ...model, model: cheapModel ?? model.model }, clock)) }),
    ...(embedModel === undefined
      ? {}
      : { embedding: { model: embedModel, embed: embeddingEndpoint({ baseUrl, apiKey, model: embedModel }, clock) } }),
  };
}

/** The way to the executor. */
async function linkExecutor(executor: ExecutorAddress, { store, approvers, clock, log }: CapabilitiesOptions) {
  const [{ createExecutorLink }, { conversationsOf }] = await Promise.all([
    import('./delegate/delegate.ts'),
    import('./delegate/evidence.ts'),
  ]);
  return createExecutorLink({ executor, approvers, conversations: conversationsOf(store, log), clock, log });
}

/** What servers have to be compared before Neo says that it is ready; one that hangs is no reason not to take wakes. */
const COMPARE_MS = 5_000;

/** Makes the capabilities; nothing is started before `check` or `start`. */
export async function createCapabilities(options: CapabilitiesOptions): Promise<Capabilities> {
  const { config, variables, walls, store, clock, log, onFatal } = options;
  const { tools, dataDir } = config;
  const stopping = new AbortController();
  let memory: Memory | undefined;
  let starting: Promise<ToolSurface> | undefined;
  let isReady = false;
  /** What goes wrong now is told by the check. */
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
      walls,
      dataDir,
      warnings,
      delegate: executor?.delegate,
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
      const { checkFiles } = await import('./tools/agreed.ts');
      if (!checkFiles(tools, variables, dataDir)) return;
      isChecking = true;
      const enough = Promise.withResolvers<void>();
      const cancel = clock.after(COMPARE_MS, () => {
        log.warn({ after_ms: COMPARE_MS }, 'MCP servers are still starting; they are compared when they are there');
        enough.resolve();
      });
      try {
        await Promise.race([start(), enough.promise]);
      } finally {
        cancel();
        isChecking = false;
      }
    },

    start: () => void start().catch(() => {}),

    // Were the turn told why, it would fail for good; the next Neo may be able to run it.
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
