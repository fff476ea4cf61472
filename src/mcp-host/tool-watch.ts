/**
 * Looking at the tools of a server anew whenever it says that they have changed: one listing after another, until none
 * is overtaken.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { type Connection, describeError } from './connection.ts';
import { withDeadline } from './deadline.ts';
import type { ToolDefinition } from './tool-definition.ts';

export type ToolWatchOptions = {
  clock: Clock;
  /** Ends a listing that is under way. */
  signal: AbortSignal;
  /** Whether the tools of this connection can be called. */
  isLive(connection: Connection): boolean;
  /**
   * The tools as they are now. When they are not to be called any more, the connection is no longer live afterwards.
   */
  onListed(connection: Connection, tools: readonly ToolDefinition[]): void;
};

const LIST_TIMEOUT_MS = 10_000;
/** So often in a row the tools are listed again because they have changed meanwhile. */
const MOST_LISTINGS = 20;

export class ToolWatch {
  readonly #options: ToolWatchOptions;
  #isStale = false;
  #looking: Promise<void> | undefined;

  constructor(options: ToolWatchOptions) {
    this.#options = options;
  }

  /** The look that is under way; nothing should be called before it is over. Never rejects. */
  get looking(): Promise<void> | undefined {
    return this.#looking;
  }

  /** A connection is about to be opened and listed: what earlier ones have said does not count. */
  begin(): void {
    this.#isStale = false;
  }

  /** The connection is live now; what it has said since its first listing is looked into. */
  catchUp(connection: Connection): void {
    if (this.#isStale) this.changed(connection);
  }

  /** The server says that its tools have changed. */
  changed(connection: Connection): void {
    this.#isStale = true;
    if (!this.#options.isLive(connection)) return;
    this.#looking ??= this.#look(connection).finally(() => {
      this.#looking = undefined;
    });
  }

  async #look(connection: Connection): Promise<void> {
    const { clock, signal: outer, isLive, onListed } = this.#options;
    for (let listings = 0; this.#isStale && isLive(connection); listings++) {
      if (listings === MOST_LISTINGS) return connection.fail('changes its tools without end');
      this.#isStale = false;
      try {
        const tools = await withDeadline(clock, LIST_TIMEOUT_MS, outer, (signal) => connection.listTools(signal));
        if (isLive(connection)) onListed(connection, tools);
      } catch (thrown) {
        return connection.fail(`said that its tools have changed, and did not list them: ${describeError(thrown)}`);
      }
    }
  }
}
