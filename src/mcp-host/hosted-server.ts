/**
 * The life cycle of one declared server: start, check against the manifest and the pins, health checks, restart with a
 * growing delay. A server whose tools differ from the pinned ones is quarantined permanently.
 */
import { backoff } from '../kit/clock/backoff.ts';
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { Connection, describeError } from './connection.ts';
import { HealthWatch, ToolWatch } from './connection-watch.ts';
import { TimedOut, withDeadline } from './deadline.ts';
import type { ServerSpec } from './manifest.ts';
import { signInRequired } from './oauth/server-authorization.ts';
import type { TokenStore } from './oauth/token-store.ts';
import type { SeenTools } from './seen-tools.ts';
import type { ServerLog } from './server-log.ts';
import { type CallOptions, type CallOutcome, type CallState, ToolCalls } from './tool-calls.ts';
import type { ToolDefinition } from './tool-definition.ts';
import { PinnedTools, ToolMismatch, type ToolPins } from './tool-lock.ts';

/** A server that ran for this long resets its consecutive failures. */
const STEADY_MS = 60_000;

/** The consecutive failures of one server, and the restart delays that follow from them. */
export class RestartDelays {
  readonly #clock: Clock;
  readonly #delayMs: (failures: number) => number;
  #failures = 0;
  #readySince = 0;

  /** @param longestMs the delays double from one second up to this */
  constructor(clock: Clock, longestMs: number) {
    this.#clock = clock;
    this.#delayMs = backoff({ first: 1000, longest: longestMs });
  }

  /** The server is ready from now on. */
  ready(): void {
    this.#readySince = this.#clock.monotonic();
  }

  /**
   * A ready server has ended. This is a failure, the first of a new row if it ran long enough. {@link next} returns the
   * delay.
   */
  lost(): void {
    if (this.#clock.monotonic() - this.#readySince >= STEADY_MS) this.#failures = 0;
  }

  /** A start has failed. @returns the delay in milliseconds until the next start */
  next(): number {
    return this.#delayMs(++this.#failures);
  }
}

/**
 * - `off`: a requirement is missing; it is not started
 * - `idle`: the first call of one of its tools starts it; the tools are known from the stored definitions
 * - `starting`: first start
 * - `ready`: its tools can be called
 * - `down`: it is restarted in the background, unless a variable is missing
 * - `signed_out`: the user must sign in; the server starts after the sign-in
 * - `quarantined`: its tools differ from the pinned ones, or a name is listed twice; it is not restarted
 * - `closed`: closed by the host
 */
export type ServerState = 'off' | 'idle' | 'starting' | 'ready' | 'down' | 'signed_out' | 'quarantined' | 'closed';

/** Interval at which the host checks whether the user has signed in. */
const SIGN_IN_CHECK_MS = 2000;

export type HostedServerOptions = {
  spec: ServerSpec;
  pins: ToolPins | undefined;
  /** Its stored tool definitions, if it starts with the first call only. */
  known: readonly ToolDefinition[] | undefined;
  /** Its tools when they were first seen. */
  seen: SeenTools;
  cwd: string | undefined;
  sandbox: Sandbox | undefined;
  clock: Clock;
  log: Logger;
  output: ServerLog;
  /** The stored sign-ins. */
  signIns: TokenStore;
  /** The command with which the user signs in at the server. */
  signInCommand: string;
  /** Whether calls may ask the user. */
  asksPerson: boolean;
  /** From the start of the process or connection to the list of tools. */
  startTimeoutMs: number;
  /** Time between two health checks of an idle server. */
  healthIntervalMs: number;
  healthTimeoutMs: number;
  /** The longest delay before a restart. */
  restartDelayMs: number;
  /** State, tools or problem have changed. */
  onChange(): void;
};

/** End of the message about a server that is down, as long as the host restarts it. */
export const RESTART_NOTE = '; it is restarted in the background';

/** The outcome of the first start; `differences`: how its tools differ from the declared and pinned ones. */
export type StartOutcome = { ready: true } | { ready: false; reason: string; differences?: readonly string[] };

/** Waits for a promise, or for the signal if that comes first. */
async function untilAborted(awaited: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal?.addEventListener('abort', abort, { once: true });
  await Promise.race([awaited, aborted.promise]).finally(() => signal?.removeEventListener('abort', abort));
}

function lastOutputNote({ lastOutput }: ServerLog): string {
  return lastOutput === '' ? '' : `; its last output: ${lastOutput}`;
}

export class HostedServer {
  readonly spec: ServerSpec;
  readonly #options: HostedServerOptions;
  readonly #stop = new AbortController();
  readonly #pinnedTools: PinnedTools;
  readonly #calls: ToolCalls;
  readonly #delays: RestartDelays;
  readonly #health: HealthWatch;
  readonly #tools: ToolWatch;
  #state: ServerState = 'starting';
  #problem: string | undefined;
  #definitions: readonly ToolDefinition[] = [];
  #changes: readonly string[] = [];
  /** The connection that was opened last. */
  #connection: Connection | undefined;
  /** The same, while its tools can be called. */
  #live: Connection | undefined;
  #restarts = 0;
  #cancelRestart: CancelTimer = () => {};
  /** The start that the first call has triggered. */
  #lazyStart: Promise<unknown> | undefined;

  constructor(options: HostedServerOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.#pinnedTools = new PinnedTools(options.spec, options.pins);
    this.#delays = new RestartDelays(options.clock, options.restartDelayMs);
    this.#calls = new ToolCalls({
      alias: options.spec.alias,
      clock: options.clock,
      callState: () => this.#callState,
      listing: () => this.#tools.listing,
      onTimeout: (connection) => void this.#health.check(connection),
      signInCommand: options.signInCommand,
    });
    this.#health = new HealthWatch({
      clock: options.clock,
      intervalMs: options.healthIntervalMs,
      timeoutMs: options.healthTimeoutMs,
      isBusy: () => this.#calls.areRunning,
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

  /** Why the server cannot be used; finishes the sentence "server … ". `undefined` when it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The tools that it offers; none unless it is ready or idle. */
  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  /** How its tools differ from the first seen ones, where they are not pinned; one sentence for each. */
  get changes(): readonly string[] {
    return this.#changes;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** The version that it reports. */
  get serverVersion(): string | undefined {
    return this.#live?.serverVersion;
  }

  /** The process id of a server that runs as a child. */
  get pid(): number | undefined {
    return this.#live?.pid;
  }

  /** The first start. A server that fails is restarted in the background, unless its tools are wrong. */
  async start(): Promise<StartOutcome> {
    const { missing, unmetNeed: lack } = this.spec;
    if (lack !== undefined) {
      this.#setState('off', `is off: ${lack}`);
      return { ready: false, reason: lack };
    }
    if (missing.length > 0) {
      const reason = `refers to ${missing.join(', ')}, which ${missing.length > 1 ? 'are' : 'is'} not set`;
      this.#setState('down', `is not started: it ${reason}`);
      return { ready: false, reason };
    }
    const { known } = this.#options;
    if (known === undefined) return this.#attempt();
    this.#setState('idle', undefined, known);
    return { ready: true };
  }

  /** Calls one of its tools like {@link ToolCalls.call}. An idle server is started and checked first. */
  async call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallOutcome> {
    if (this.#state === 'idle') {
      this.#lazyStart ??= this.#attempt();
      await untilAborted(this.#lazyStart, options.signal);
    }
    return this.#calls.call(tool, args, options);
  }

  /** Blocks calls of its tools until a person has reviewed them and the host is restarted. */
  quarantine(differences: readonly string[]): void {
    if (this.#hasEnded) return;
    this.#live = undefined;
    const { log } = this.#options;
    // The outcome of the first start reports this itself.
    if (this.#state !== 'starting') {
      log.error({ server: this.spec.alias, differences }, 'a server has changed its tools and is quarantined');
    }
    const reason = `its tools are not the declared and pinned ones: ${differences.join('; ')}`;
    this.#setState('quarantined', `is in quarantine, because ${reason}`);
    // An untrusted process must not go on running.
    void this.#connection?.close();
  }

  /** Waits for running calls, at most this long, and ends the server. */
  async close(drainMs: number): Promise<void> {
    this.#setState('closed', undefined, this.#definitions);
    this.#cancelRestart();
    this.#health.stop();
    if (this.#calls.areRunning) await this.#calls.drain(drainMs);
    this.#stop.abort();
    await this.#connection?.close();
    this.#live = undefined;
    this.#definitions = [];
  }

  /** Opens a connection and checks its tools. The result is also in the state; a restart is already scheduled. */
  async #attempt(): Promise<StartOutcome> {
    const { spec, cwd, sandbox, clock, output, startTimeoutMs, signIns, asksPerson } = this.#options;
    // Read before the attempt, so that a sign-in during the attempt is noticed.
    const token = this.#token();
    const connection: Connection = new Connection({
      ...{ signIns, asksPerson },
      spec,
      cwd,
      sandbox,
      clock,
      output,
      onClosed: (ending) => this.#onClosed(connection, ending),
      onToolsChanged: () => this.#tools.onChanged(connection),
      onSuspectedLoss: () => void this.#health.check(connection, spec.link.kind === 'http'),
    });
    this.#connection = connection;
    this.#tools.begin();
    try {
      const tools = await withDeadline(clock, startTimeoutMs, this.#stop.signal, async (signal) => {
        await connection.open();
        return connection.listTools(signal);
      });
      this.#pinnedTools.check(tools);
      if (connection.ending !== undefined) throw new Error(`it ${connection.ending}`);
      this.#delays.ready();
      this.#setReady(connection, tools);
      this.#tools.catchUp(connection);
      return { ready: true };
    } catch (thrown) {
      const outputNote = lastOutputNote(output);
      // This one must have ended before another one is started: it may hold files or ports.
      await connection.close();
      const signIn = signInRequired(thrown);
      if (signIn) return this.#signedOut(signIn.message, token);
      const isLate = thrown instanceof TimedOut;
      const reason = describeError(isLate ? `it was not ready within ${startTimeoutMs} ms${outputNote}` : thrown);
      if (!(thrown instanceof ToolMismatch)) {
        this.#failed(`did not start: ${reason}`);
        return { ready: false, reason };
      }
      const { differences } = thrown;
      this.quarantine(differences);
      return { ready: false, reason, ...(!this.#pinnedTools.isEmpty && { differences }) };
    }
  }

  #setState(state: ServerState, problem: string | undefined, definitions: readonly ToolDefinition[] = []): void {
    // Final states: a pending operation does not restart the server.
    if (this.#hasEnded) return;
    this.#state = state;
    this.#problem = problem;
    this.#definitions = definitions;
    if (state !== 'ready') this.#health.stop();
    this.#options.onChange();
  }

  #setReady(connection: Connection, tools: readonly ToolDefinition[]): void {
    // A watch that began now would not be ended while the host closes.
    if (this.#hasEnded) return;
    this.#live = connection;
    this.#health.watch(connection);
    this.#compare(tools);
    // Last: a listener may quarantine the server at once.
    this.#setState('ready', undefined, tools);
  }

  /** Detects that a server changes its tools although they are not pinned. */
  #compare(tools: readonly ToolDefinition[]): void {
    const { pins, seen, log } = this.#options;
    const { alias } = this.spec;
    if (pins !== undefined) seen.approve(alias, tools);
    const changes = pins === undefined ? seen.changes(alias, tools) : [];
    if (changes.length > 0 && changes.join() !== this.#changes.join())
      log.warn({ server: alias, changes }, 'a server that is not pinned has changed its tools');
    this.#changes = changes;
  }

  get #callState(): CallState {
    if (this.#state === 'ready' && this.#live) return { connection: this.#live, definitions: this.#definitions };
    const reason = this.#state === 'closed' ? 'is being stopped' : (this.#problem ?? 'is not ready');
    return { reason, isTrusted: this.#state !== 'quarantined' && this.#state !== 'off' };
  }

  get #hasEnded(): boolean {
    return this.#state === 'closed' || this.#state === 'quarantined';
  }

  /** The server is down and will be restarted. */
  #failed(problem: string): void {
    if (this.#hasEnded) return;
    const delayMs = this.#delays.next();
    this.#options.log.warn({ server: this.spec.alias, problem, retry_in_ms: delayMs }, 'an MCP server is down');
    this.#setState('down', `${problem}${RESTART_NOTE}`);
    this.#cancelRestart = this.#options.clock.after(delayMs, () => void this.#restart());
  }

  /** The access token at the server; `undefined` where there is none, or it cannot be read. */
  #token(): string | undefined {
    const { spec, signIns } = this.#options;
    const { alias, link } = spec;
    if (link.kind !== 'http' || link.oauth === undefined) return undefined;
    try {
      return signIns.read({ alias, url: link.url }).tokens?.access_token;
    } catch {
      // The next attempt to connect reports the error.
      return undefined;
    }
  }

  /** @param refused the token that the server refused */
  #signedOut(problem: string, refused: string | undefined): StartOutcome {
    const { spec, clock, log, signInCommand } = this.#options;
    const reason = `${problem}; run: ${signInCommand}`;
    if (this.#state !== 'signed_out') log.warn({ server: spec.alias, problem }, 'an MCP server needs sign-in');
    this.#setState('signed_out', reason);
    const check = () => {
      if (this.#state !== 'signed_out') return;
      const token = this.#token();
      if (token !== undefined && token !== refused) void this.#restart();
      else this.#cancelRestart = clock.after(SIGN_IN_CHECK_MS, check);
    };
    this.#cancelRestart = clock.after(SIGN_IN_CHECK_MS, check);
    return { ready: false, reason };
  }

  async #restart(): Promise<void> {
    await this.#connection?.close();
    if (this.#state !== 'down' && this.#state !== 'signed_out') return;
    this.#restarts++;
    const { ready } = await this.#attempt();
    if (!ready) return;
    this.#options.log.info({ server: this.spec.alias, restarts: this.#restarts }, 'an MCP server is ready again');
  }

  #onClosed(connection: Connection, ending: string): void {
    if (connection !== this.#live) return;
    this.#live = undefined;
    this.#delays.lost();
    this.#failed(`${ending}${lastOutputNote(this.#options.output)}`);
  }

  /** Handles a fresh list of tools after the server reported a change. */
  #onListed(connection: Connection, tools: readonly ToolDefinition[]): void {
    const differences = this.#pinnedTools.differences(tools);
    if (differences.length > 0) this.quarantine(differences);
    else this.#setReady(connection, tools);
  }
}
