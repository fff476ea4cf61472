/** Watches the connection of a hosted server: whether it is healthy, and whether its tools have changed. */
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { type Connection, describeError } from './connection.ts';
import { Cancelled, withDeadline } from './deadline.ts';
import type { ToolDefinition } from './tool-definition.ts';

type HealthWatchOptions = {
  clock: Clock;
  /** Time between two checks. */
  intervalMs: number;
  /** How long a server has to answer a check. */
  timeoutMs: number;
  /** Whether calls are running. */
  isBusy(): boolean;
  /** Aborts a running check. */
  signal: AbortSignal;
};

/** Checks a connection's health periodically, and at once when there is reason to believe that the server is gone. */
export class HealthWatch {
  readonly #options: HealthWatchOptions;
  #watched: Connection | undefined;
  #isChecking = false;
  #cancel: CancelTimer = () => {};

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Checks this connection from now on, in place of the previous one. */
  watch(connection: Connection): void {
    this.stop();
    this.#watched = connection;
    this.#cancel = this.#options.clock.after(this.#options.intervalMs, () => {
      void this.check(connection).then(() => {
        if (connection === this.#watched) this.watch(connection);
      });
    });
  }

  stop(): void {
    this.#cancel();
    this.#watched = undefined;
  }

  /**
   * Checks now if this connection is the current one; ends it when it does not answer.
   *
   * @param evenBusy also while calls are running: a child that handles one request at a time is not dead
   */
  async check(connection: Connection, evenBusy = false): Promise<void> {
    const { clock, timeoutMs, isBusy, signal: outer } = this.#options;
    if (connection !== this.#watched || this.#isChecking || (isBusy() && !evenBusy)) return;
    this.#isChecking = true;
    try {
      await withDeadline(clock, timeoutMs, outer, (signal) => connection.check(signal));
    } catch (thrown) {
      if (!(thrown instanceof Cancelled)) connection.fail(`does not answer: ${describeError(thrown)}`);
    } finally {
      this.#isChecking = false;
    }
  }
}

type ToolWatchOptions = {
  clock: Clock;
  /** Aborts a running listing. */
  signal: AbortSignal;
  /** Whether the tools of this connection can be called. */
  isLive(connection: Connection): boolean;
  /** Receives the current tools. If they must not be called any more, the connection is no longer live afterwards. */
  onListed(connection: Connection, tools: readonly ToolDefinition[]): void;
};

const LIST_TIMEOUT_MS = 10_000;
/** The most listings in a row because of changes meanwhile. */
const MOST_LISTINGS = 20;

/** Lists a server's tools again whenever it reports a change, until a listing is not followed by another change. */
export class ToolWatch {
  readonly #options: ToolWatchOptions;
  #isStale = false;
  #listing: Promise<void> | undefined;

  constructor(options: ToolWatchOptions) {
    this.#options = options;
  }

  /** The running listing; no call may be sent before it has ended. Never rejects. */
  get listing(): Promise<void> | undefined {
    return this.#listing;
  }

  /** A connection is about to be opened and listed; reports of earlier ones are dropped. */
  begin(): void {
    this.#isStale = false;
  }

  /** The connection is live now; a change that it reported since its first listing is handled. */
  catchUp(connection: Connection): void {
    if (this.#isStale) this.onChanged(connection);
  }

  /** The server reports that its tools have changed. */
  onChanged(connection: Connection): void {
    this.#isStale = true;
    if (!this.#options.isLive(connection)) return;
    this.#listing ??= this.#list(connection).finally(() => {
      this.#listing = undefined;
    });
  }

  async #list(connection: Connection): Promise<void> {
    const { clock, signal: outer, isLive, onListed } = this.#options;
    for (let listings = 0; this.#isStale && isLive(connection); listings++) {
      if (listings === MOST_LISTINGS) return connection.fail('changes its tools without end');
      this.#isStale = false;
      try {
        const tools = await withDeadline(clock, LIST_TIMEOUT_MS, outer, (signal) => connection.listTools(signal));
        if (isLive(connection)) onListed(connection, tools);
      } catch (thrown) {
        return connection.fail(`reported changed tools, but did not list them: ${describeError(thrown)}`);
      }
    }
  }
}
