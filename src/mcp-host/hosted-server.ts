/**
 * One declared server through its life: started, checked against the manifest and its pins, called, watched, started again with
 * growing patience when it dies, and put into quarantine for good when its tools are not the agreed ones any more.
 */
import { type CallToolResult, SdkHttpError } from '@modelcontextprotocol/client';
import type { CancelTimer, Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import { bijectionDifferences } from './bijection.ts';
import { Connection, describeError } from './connection.ts';
import { Cancelled, TimedOut, withDeadline } from './deadline.ts';
import { HealthWatch } from './health-watch.ts';
import type { ServerSpec } from './manifest.ts';
import type { AnswerSlot, RawAnswer } from './raw-answers.ts';
import { restartDelayMs } from './restart-delay.ts';
import type { ServerLog } from './server-log.ts';
import { AnotherDefinition, type CallVerdict, type InBand, judgeFailure, judgeUnsent } from './tool-call-failure.ts';
import { digestOf, type ToolDefinition } from './tool-definition.ts';
import { pinDifferences, type ToolPins } from './tool-lock.ts';
import { ToolWatch } from './tool-watch.ts';

/**
 * - `starting`: for the first time
 * - `ready`: its tools can be called
 * - `down`: it is started again in the background, unless a variable is missing
 * - `quarantined`: its tools are not those that were agreed on; it is not started again
 * - `closed`: by us
 */
export type ServerState = 'starting' | 'ready' | 'down' | 'quarantined' | 'closed';

export type HostedServerOptions = {
  spec: ServerSpec;
  pins: ToolPins | undefined;
  cwd: string | undefined;
  clock: Clock;
  log: Logger;
  output: ServerLog;
  /** From the start of the process or the connection to the list of tools. */
  startTimeoutMs: number;
  /** Between two looks at a server that nobody calls. */
  healthIntervalMs: number;
  healthTimeoutMs: number;
  /** State, tools or problem have changed. */
  onChange(): void;
};

/** What became of the first start. */
export type StartOutcome = { ready: true } | { ready: false; why: string; differences?: readonly string[] };

export type CallOptions = {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** The definition that the caller knows: another one is not called. */
  definitionSha256?: string | undefined;
  /** Exactly one request is sent, and the digest of its answer is wanted. */
  once?: boolean | undefined;
};

/** What came of a call; `raw` where a digest was wanted and an answer came. */
export type CallOutcome = ({ result: CallToolResult } | InBand) & { raw?: RawAnswer };

/** A server that ran for so long has not failed in a row. */
const STEADY_MS = 60_000;

class Mismatch extends Error {
  readonly differences: readonly string[];

  constructor(differences: readonly string[]) {
    super(differences.join('; '));
    this.differences = differences;
  }
}

export class HostedServer {
  readonly spec: ServerSpec;
  readonly #options: HostedServerOptions;
  readonly #stop = new AbortController();
  readonly #calls = new Set<Promise<unknown>>();
  readonly #health: HealthWatch;
  readonly #tools: ToolWatch;
  #state: ServerState = 'starting';
  #problem: string | undefined;
  #definitions: readonly ToolDefinition[] = [];
  /** The one that was opened last. */
  #connection: Connection | undefined;
  /** The same, while its tools can be called. */
  #live: Connection | undefined;
  #liveSince = 0;
  #failures = 0;
  #restarts = 0;
  #cancelRestart: CancelTimer = () => {};

  constructor(options: HostedServerOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#health = new HealthWatch({
      clock: options.clock,
      intervalMs: options.healthIntervalMs,
      timeoutMs: options.healthTimeoutMs,
      isBusy: () => this.#calls.size > 0,
      signal: this.#stop.signal,
    });
    this.#tools = new ToolWatch({
      clock: options.clock,
      signal: this.#stop.signal,
      isLive: (connection) => connection === this.#live,
      onListed: (connection, tools) => this.#onListed(connection, tools),
    });
  }

  get state(): ServerState {
    return this.#state;
  }

  /** What is wrong with it, in words that finish the sentence "server … "; `undefined` when nothing is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** What it offers; nothing unless it is ready. */
  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  /** How often it was started again. */
  get restarts(): number {
    return this.#restarts;
  }

  /** What it calls its own version. */
  get serverVersion(): string | undefined {
    return this.#live?.serverVersion;
  }

  /** The process of a server that runs as a child. */
  get pid(): number | undefined {
    return this.#live?.pid;
  }

  /** The first start. A server that fails is tried again in the background; one with the wrong tools is not. */
  async start(): Promise<StartOutcome> {
    const { missing } = this.spec;
    if (missing.length > 0) {
      const why = `refers to ${missing.join(', ')}, which ${missing.length > 1 ? 'are' : 'is'} not set`;
      this.#become('down', `is not started: it ${why}`);
      return { ready: false, why };
    }
    try {
      await this.#attempt();
      return { ready: true };
    } catch (thrown) {
      const why = describeError(thrown);
      if (thrown instanceof Mismatch) {
        this.#become('quarantined', `has other tools than the agreed ones: ${why}`);
        return { ready: false, why, differences: thrown.differences };
      }
      this.#failed(`did not start: ${why}`);
      return { ready: false, why };
    }
  }

  /**
   * Calls one of its tools.
   *
   * @returns the result, or words for the model
   * @throws ToolCallFailure
   */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    if (this.#state === 'quarantined') return this.#quarantined(tool);
    const { timeoutMs, signal, definitionSha256, once } = options;
    const slot: AnswerSlot | undefined = once ? {} : undefined;
    let begun: Connection | undefined;
    const running = withDeadline(this.#options.clock, timeoutMs, signal, async (inner) => {
      // It may just have changed its tools: nothing is called before they have been looked at.
      if (this.#tools.looking) await this.#tools.looking;
      const connection = this.#live;
      if (!connection || inner.aborted || this.#state !== 'ready') throw new Error('not connected');
      const definition = this.#definitions.find(({ name }) => name === tool);
      if (!definition) throw new Error('the tool is gone');
      const live = definitionSha256 === undefined ? undefined : digestOf(definition);
      if (live !== definitionSha256) throw new AnotherDefinition(definitionSha256!, live!);
      begun = connection;
      return connection.call(definition, args, inner, slot);
    });
    this.#calls.add(running);
    try {
      const result = await running;
      return { result, ...slot };
    } catch (thrown) {
      const verdict = this.#judge(tool, thrown, begun);
      if ('inBand' in verdict) return { ...verdict, ...slot };
      throw verdict.failure;
    } finally {
      this.#calls.delete(running);
    }
  }

  /** Nobody calls its tools any more, until a person has looked at them and the host is started again. */
  quarantine(differences: readonly string[]): void {
    if (this.#isOver) return;
    this.#live = undefined;
    const { log } = this.#options;
    log.error({ server: this.spec.alias, differences }, 'a server has changed its tools and is put into quarantine');
    this.#become(
      'quarantined',
      `is in quarantine, because it has other tools than the agreed ones: ${differences.join('; ')}`,
    );
    // A process that is not trusted does not go on running.
    void this.#connection?.close();
  }

  /** Lets calls that are under way end, for so long at most, and ends the server. */
  async close(drainMs: number): Promise<void> {
    const drained = Promise.allSettled(this.#calls);
    this.#become('closed', undefined, this.#definitions);
    this.#cancelRestart();
    this.#health.stop();
    if (this.#calls.size > 0)
      await withDeadline(this.#options.clock, drainMs, undefined, () => drained).catch(() => undefined);
    this.#stop.abort();
    await this.#connection?.close();
    this.#live = undefined;
    this.#definitions = [];
  }

  /** Opens a connection and checks what is there. */
  async #attempt(): Promise<void> {
    const { spec, cwd, clock, output, startTimeoutMs } = this.#options;
    const connection: Connection = new Connection({
      spec,
      cwd,
      clock,
      output,
      onClosed: (ending) => this.#onClosed(connection, ending),
      onToolsChanged: () => this.#tools.changed(connection),
      onTrouble: () => void this.#health.check(connection, spec.link.kind === 'http'),
    });
    this.#connection = connection;
    this.#tools.begin();
    try {
      const tools = await withDeadline(clock, startTimeoutMs, this.#stop.signal, async (signal) => {
        await connection.open();
        return connection.listTools(signal);
      });
      const differences = this.#differences(tools);
      if (differences.length > 0) throw new Mismatch(differences);
      if (connection.ending !== undefined) throw new Error(`it ${connection.ending}`);
      this.#live = connection;
      this.#liveSince = clock.monotonic();
      this.#become('ready', undefined, tools);
      this.#health.watch(connection);
      this.#tools.catchUp(connection);
    } catch (thrown) {
      const said = output.lastWords;
      // Before another one is started, this one must be gone: it may hold files or ports.
      await connection.close();
      if (!(thrown instanceof TimedOut)) throw thrown;
      throw new Error(`it was not ready within ${startTimeoutMs} ms${said === '' ? '' : `; it said: ${said}`}`);
    }
  }

  #differences(tools: readonly ToolDefinition[]): string[] {
    return [...bijectionDifferences(this.spec.tools, tools), ...pinDifferences(this.#options.pins, tools)];
  }

  #become(state: ServerState, problem: string | undefined, definitions: readonly ToolDefinition[] = []): void {
    // The ends of its life: nothing that was still under way brings it back.
    if (this.#isOver) return;
    this.#state = state;
    this.#problem = problem;
    this.#definitions = definitions;
    if (state !== 'ready') this.#health.stop();
    this.#options.onChange();
  }

  get #isOver(): boolean {
    return this.#state === 'closed' || this.#state === 'quarantined';
  }

  /** It is not there, and will be tried again. */
  #failed(problem: string): void {
    if (this.#isOver) return;
    this.#failures++;
    const delayMs = restartDelayMs(this.#failures);
    this.#options.log.warn({ server: this.spec.alias, problem, retry_in_ms: delayMs }, 'an MCP server is not there');
    this.#become('down', `${problem}; it is started again in the background`);
    this.#cancelRestart = this.#options.clock.after(delayMs, () => void this.#restart());
  }

  async #restart(): Promise<void> {
    await this.#connection?.close();
    if (this.#state !== 'down') return;
    this.#restarts++;
    try {
      await this.#attempt();
      this.#options.log.info({ server: this.spec.alias, restarts: this.#restarts }, 'an MCP server is there again');
    } catch (thrown) {
      if (thrown instanceof Mismatch) this.quarantine(thrown.differences);
      else if (!(thrown instanceof Cancelled)) this.#failed(`did not start: ${describeError(thrown)}`);
    }
  }

  #onClosed(connection: Connection, ending: string): void {
    if (connection !== this.#live) return;
    this.#live = undefined;
    const { clock, output } = this.#options;
    if (clock.monotonic() - this.#liveSince >= STEADY_MS) this.#failures = 0;
    const said = output.lastWords;
    this.#failed(said === '' ? ending : `${ending}; it said: ${said}`);
  }

  /** A fresh listing, made because the server said that its tools have changed. */
  #onListed(connection: Connection, tools: readonly ToolDefinition[]): void {
    const differences = this.#differences(tools);
    if (differences.length > 0) {
      this.quarantine(differences);
      return;
    }
    this.#become('ready', undefined, tools);
    this.#health.watch(connection);
  }

  /** @param begun the connection that the call was sent over, if it was */
  #judge(tool: string, thrown: unknown, begun: Connection | undefined): CallVerdict {
    const { alias } = this.spec;
    if (begun) {
      // One that gave no answer in time may never give one again. The call itself must be over before that is looked at.
      if (thrown instanceof TimedOut) queueMicrotask(() => void this.#health.check(begun));
      const verdict = judgeFailure(`${alias}/${tool}`, thrown, begun.ending);
      // What MCP says of a session that the server does not know any more; only a new one will do.
      if (thrown instanceof SdkHttpError && thrown.status === 404) begun.fail('has forgotten the session');
      return verdict;
    }
    if (this.#state === 'quarantined') return this.#quarantined(tool);
    const isThere = this.#state === 'ready' && this.#live !== undefined;
    const why = this.#state === 'closed' ? 'is being stopped' : (this.#problem ?? 'is not ready');
    return judgeUnsent(alias, tool, thrown, isThere ? undefined : why);
  }

  #quarantined(tool: string): InBand {
    const { alias } = this.spec;
    return {
      inBand: `${alias}/${tool} is not available: server "${alias}" ${this.#problem}`,
      withoutResult: 'unsent',
    };
  }
}
