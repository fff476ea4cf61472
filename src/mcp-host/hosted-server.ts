/**
 * One declared server through its life: started, checked against the manifest and its pins, watched, started again with
 * growing patience when it dies, and put into quarantine for good when its tools are not the agreed ones any more.
 */

import { backoff } from '../kit/clock/backoff.ts';
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Walls } from '../kit/process/separation.ts';
import { Agreement, Mismatch } from './agreement.ts';
import { Connection, describeError } from './connection.ts';
import { TimedOut, withDeadline } from './deadline.ts';
import { HealthWatch } from './health-watch.ts';
import type { ServerSpec } from './manifest.ts';
import type { SeenTools } from './seen-tools.ts';
import type { ServerLog } from './server-log.ts';
import { type CallOptions, type CallOutcome, type Standing, ToolCalls } from './tool-calls.ts';
import type { ToolDefinition } from './tool-definition.ts';
import type { ToolPins } from './tool-lock.ts';
import { ToolWatch } from './tool-watch.ts';

/** A server that ran for so long has not failed in a row. */
const STEADY_MS = 60_000;

/** The failures of one server in a row, and the delays that follow from them. */
export class RestartDelays {
  readonly #clock: Clock;
  readonly #delayMs: (failures: number) => number;
  #failures = 0;
  #readySince = 0;

  /** @param longestMs the pauses double from one second to this */
  constructor(clock: Clock, longestMs: number) {
    this.#clock = clock;
    this.#delayMs = backoff({ first: 1000, longest: longestMs });
  }

  /** It is ready from now on. */
  ready(): void {
    this.#readySince = this.#clock.monotonic();
  }

  /**
   * It was ready and is gone: a failure, the first of a new row if it ran for long. {@link next} tells what follows.
   */
  lost(): void {
    if (this.#clock.monotonic() - this.#readySince >= STEADY_MS) this.#failures = 0;
  }

  /** It has failed. @returns in how many milliseconds it is to be started again */
  next(): number {
    return this.#delayMs(++this.#failures);
  }
}

/**
 * - `off`: something that it needs is not there; it is not started
 * - `idle`: it is started by the first call of one of its tools, which are known from what is written down of them
 * - `starting`: for the first time
 * - `ready`: its tools can be called
 * - `down`: it is started again in the background, unless a variable is missing
 * - `quarantined`: its tools are not those that were agreed on, or one is there twice; it is not started again
 * - `closed`: by us
 */
export type ServerState = 'off' | 'idle' | 'starting' | 'ready' | 'down' | 'quarantined' | 'closed';

export type HostedServerOptions = {
  spec: ServerSpec;
  pins: ToolPins | undefined;
  /** Its tools as they are written down, where it is to start with the first call only. */
  known: readonly ToolDefinition[] | undefined;
  /** What its tools were when they were first seen. */
  seen: SeenTools;
  cwd: string | undefined;
  walls: Walls | undefined;
  clock: Clock;
  log: Logger;
  output: ServerLog;
  /** From the start of the process or the connection to the list of tools. */
  startTimeoutMs: number;
  /** Between two looks at a server that nobody calls. */
  healthIntervalMs: number;
  healthTimeoutMs: number;
  /** The longest pause before it is started again. */
  restartDelayMs: number;
  /** State, tools or problem have changed. */
  onChange(): void;
};

/** Ends what is said of a server that is not there, as long as somebody is there to start it again. */
export const TRIED_AGAIN = '; it is started again in the background';

/** What became of the first start; `differences`: how its tools differ from those that were agreed on. */
export type StartOutcome = { ready: true } | { ready: false; why: string; differences?: readonly string[] };

/** Waits for something, or for the signal if that comes first. */
async function untilAborted(awaited: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal?.addEventListener('abort', abort, { once: true });
  await Promise.race([awaited, aborted.promise]).finally(() => signal?.removeEventListener('abort', abort));
}

function wordsOf({ lastWords }: ServerLog): string {
  return lastWords === '' ? '' : `; it said: ${lastWords}`;
}

export class HostedServer {
  readonly spec: ServerSpec;
  readonly #options: HostedServerOptions;
  readonly #stop = new AbortController();
  readonly #agreement: Agreement;
  readonly #calls: ToolCalls;
  readonly #delays: RestartDelays;
  readonly #health: HealthWatch;
  readonly #tools: ToolWatch;
  #state: ServerState = 'starting';
  #problem: string | undefined;
  #definitions: readonly ToolDefinition[] = [];
  #changes: readonly string[] = [];
  /** The one that was opened last. */
  #connection: Connection | undefined;
  /** The same, while its tools can be called. */
  #live: Connection | undefined;
  #restarts = 0;
  #cancelRestart: CancelTimer = () => {};
  /** The start that the first call has begun. */
  #waking: Promise<unknown> | undefined;

  constructor(options: HostedServerOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#agreement = new Agreement(options.spec, options.pins);
    this.#delays = new RestartDelays(options.clock, options.restartDelayMs);
    this.#calls = new ToolCalls({
      alias: options.spec.alias,
      clock: options.clock,
      standing: () => this.#standing,
      looking: () => this.#tools.looking,
      onSilence: (connection) => void this.#health.check(connection),
    });
    this.#health = new HealthWatch({
      clock: options.clock,
      intervalMs: options.healthIntervalMs,
      timeoutMs: options.healthTimeoutMs,
      isBusy: () => this.#calls.areUnderWay,
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

  /** What it offers; nothing unless it is ready or idle. */
  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  /** How its tools differ from those that were first seen, where nobody pinned them; a sentence about each. */
  get changes(): readonly string[] {
    return this.#changes;
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
    const { missing, lack } = this.spec;
    if (lack !== undefined) {
      this.#become('off', `is off: ${lack}`);
      return { ready: false, why: lack };
    }
    if (missing.length > 0) {
      const why = `refers to ${missing.join(', ')}, which ${missing.length > 1 ? 'are' : 'is'} not set`;
      this.#become('down', `is not started: it ${why}`);
      return { ready: false, why };
    }
    const { known } = this.#options;
    if (known === undefined) return this.#attempt();
    this.#become('idle', undefined, known);
    return { ready: true };
  }

  /** Calls one of its tools, as {@link ToolCalls.call}; one that is idle is started first, and looked at. */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    if (this.#state === 'idle') {
      this.#waking ??= this.#attempt();
      await untilAborted(this.#waking, options.signal);
    }
    return this.#calls.call(tool, args, options);
  }

  /** Nobody calls its tools any more, until a person has looked at them and the host is started again. */
  quarantine(differences: readonly string[]): void {
    if (this.#isOver) return;
    this.#live = undefined;
    const { log } = this.#options;
    // Of the first start, its outcome tells.
    if (this.#state !== 'starting') {
      log.error({ server: this.spec.alias, differences }, 'a server has changed its tools and is put into quarantine');
    }
    const why = `its tools are not as they should be: ${differences.join('; ')}`;
    this.#become('quarantined', `is in quarantine, because ${why}`);
    // A process that is not trusted does not go on running.
    void this.#connection?.close();
  }

  /** Lets calls that are under way end, for so long at most, and ends the server. */
  async close(drainMs: number): Promise<void> {
    this.#become('closed', undefined, this.#definitions);
    this.#cancelRestart();
    this.#health.stop();
    if (this.#calls.areUnderWay) await this.#calls.drain(drainMs);
    this.#stop.abort();
    await this.#connection?.close();
    this.#live = undefined;
    this.#definitions = [];
  }

  /**
   * Opens a connection and checks what is there. What comes of it the state tells too, and what follows is on its way.
   */
  async #attempt(): Promise<StartOutcome> {
    const { spec, cwd, walls, clock, output, startTimeoutMs } = this.#options;
    const connection: Connection = new Connection({
      spec,
      cwd,
      walls,
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
      this.#agreement.check(tools);
      if (connection.ending !== undefined) throw new Error(`it ${connection.ending}`);
      this.#delays.ready();
      this.#becomeReady(connection, tools);
      this.#tools.catchUp(connection);
      return { ready: true };
    } catch (thrown) {
      const said = wordsOf(output);
      // Before another one is started, this one must be gone: it may hold files or ports.
      await connection.close();
      const isLate = thrown instanceof TimedOut;
      const why = describeError(isLate ? `it was not ready within ${startTimeoutMs} ms${said}` : thrown);
      if (!(thrown instanceof Mismatch)) {
        this.#failed(`did not start: ${why}`);
        return { ready: false, why };
      }
      const { differences } = thrown;
      this.quarantine(differences);
      return { ready: false, why, ...(!this.#agreement.isEmpty && { differences }) };
    }
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

  #becomeReady(connection: Connection, tools: readonly ToolDefinition[]): void {
    // Nobody would end the watch over one that is listed, or listed anew, while we close.
    if (this.#isOver) return;
    this.#live = connection;
    this.#health.watch(connection);
    this.#compare(tools);
    // Last: whoever hears of it may put it into quarantine at once.
    this.#become('ready', undefined, tools);
  }

  /** Notices when it changes its tools although nobody pinned them. */
  #compare(tools: readonly ToolDefinition[]): void {
    const { pins, seen, log } = this.#options;
    const { alias } = this.spec;
    if (pins !== undefined) seen.agree(alias, tools);
    const changes = pins === undefined ? seen.changes(alias, tools) : [];
    if (changes.length > 0 && changes.join() !== this.#changes.join())
      log.warn({ server: alias, changes }, 'a server that is not pinned has changed its tools');
    this.#changes = changes;
  }

  get #standing(): Standing {
    if (this.#state === 'ready' && this.#live) return { connection: this.#live, definitions: this.#definitions };
    const why = this.#state === 'closed' ? 'is being stopped' : (this.#problem ?? 'is not ready');
    return { why, isTrusted: this.#state !== 'quarantined' && this.#state !== 'off' };
  }

  get #isOver(): boolean {
    return this.#state === 'closed' || this.#state === 'quarantined';
  }

  /** It is not there, and will be tried again. */
  #failed(problem: string): void {
    if (this.#isOver) return;
    const delayMs = this.#delays.next();
    this.#options.log.warn({ server: this.spec.alias, problem, retry_in_ms: delayMs }, 'an MCP server is not there');
    this.#become('down', `${problem}${TRIED_AGAIN}`);
    this.#cancelRestart = this.#options.clock.after(delayMs, () => void this.#restart());
  }

  async #restart(): Promise<void> {
    await this.#connection?.close();
    if (this.#state !== 'down') return;
    this.#restarts++;
    const { ready } = await this.#attempt();
    if (!ready) return;
    this.#options.log.info({ server: this.spec.alias, restarts: this.#restarts }, 'an MCP server is there again');
  }

  #onClosed(connection: Connection, ending: string): void {
    if (connection !== this.#live) return;
    this.#live = undefined;
    this.#delays.lost();
    this.#failed(`${ending}${wordsOf(this.#options.output)}`);
  }

  /** A fresh listing, made because the server said that its tools have changed. */
  #onListed(connection: Connection, tools: readonly ToolDefinition[]): void {
    const differences = this.#agreement.differences(tools);
    if (differences.length > 0) this.quarantine(differences);
    else this.#becomeReady(connection, tools);
  }
}
