/** Lists a server's tools again whenever it reports a change, until a listing is not followed by another change. */
import type { Clock } from '../kit/clock/clock.ts';
import { type Connection, describeError } from './connection.ts';
import { withDeadline } from './deadline.ts';
import type { ToolDefinition } from './tool-definition.ts';

export type ToolWatchOptions = {
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
