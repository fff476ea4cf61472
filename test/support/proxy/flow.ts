/** One direction of a proxied connection: data read from one socket is written to the other, as the link allows. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Direction, type LinkMode, loses } from './link-mode.ts';

export type FlowOptions = {
  way: Direction;
  from: Socket;
  to: Socket;
  mode: () => LinkMode;
  /** Resolves when the link's mode is set the next time. */
  changed: () => Promise<void>;
  /** Called with the number of bytes that did not arrive; 0 for the end of the stream. */
  onLost: (bytes: number) => void;
};

export class Flow {
  readonly #options: FlowOptions;
  /** Once a byte is missing, no later byte may arrive: a TCP stream has no gap. */
  #broken = false;
  /** Earlier data is sent earlier, also when the mode changes in between. */
  #sent: Promise<void> = Promise.resolve();

  constructor(options: FlowOptions) {
    this.#options = options;
    const { from } = options;
    from.on('data', (chunk: Buffer) => this.#carry(chunk));
    from.once('end', () => this.#carry(undefined));
  }

  /** Whether the stream ended and the other side was not notified. */
  get endLost(): boolean {
    return this.#broken && this.#options.from.readableEnded;
  }

  /** Nothing arrives in this direction any more. */
  break(): void {
    this.#broken = true;
  }

  /** Accepts a chunk, or the end of the stream. */
  #carry(chunk: Buffer | undefined): void {
    const { from, mode } = this.#options;
    const now = mode();
    const arrival = now.kind === 'delay' ? pause(now.ms) : undefined;
    this.#sent = this.#sent.then(() => arrival).then(() => this.#deliver(chunk));
    // A slow link still accepts data; on a fast one a slow reader slows its sender down.
    if (arrival) return;
    from.pause();
    void this.#sent.then(() => from.resume());
  }

  /** A link that goes dead loses its data in transit, so the mode is read only now. */
  async #deliver(chunk: Buffer | undefined): Promise<void> {
    const { to, way, mode, changed, onLost } = this.#options;
    while (mode().kind === 'stall') await changed();
    if (loses(mode(), way)) this.#broken = true;
    if (this.#broken || !to.writable) {
      onLost(chunk?.length ?? 0);
    } else if (chunk === undefined) {
      to.end();
    } else if (!to.write(chunk)) {
      await Promise.race([once(to, 'drain'), once(to, 'close')]).catch(() => undefined);
    }
  }
}
