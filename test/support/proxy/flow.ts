/** One way of a proxied connection: what is read from one socket is written to the other, as the link allows. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type LinkMode, loses, type Way } from './link-mode.ts';

export type FlowOptions = {
  way: Way;
  from: Socket;
  to: Socket;
  mode: () => LinkMode;
  /** Resolves when the link's mode is set the next time. */
  changed: () => Promise<void>;
  /** Told of bytes that did not arrive; 0 for the end of the stream. */
  onLost: (bytes: number) => void;
};

export class Flow {
  readonly #options: FlowOptions;
  /** Once a byte is missing, nothing behind it may arrive: no TCP stream has a gap. */
  #broken = false;
  /** What was read earlier goes out earlier, however the mode changes in between. */
  #sent: Promise<void> = Promise.resolve();

  constructor(options: FlowOptions) {
    this.#options = options;
    const { from } = options;
    from.on('data', (chunk: Buffer) => this.#carry(chunk));
    from.once('end', () => this.#carry(undefined));
  }

  /** Whether the stream ended and the other side has not heard of it. */
  get endLost(): boolean {
    return this.#broken && this.#options.from.readableEnded;
  }

  /** Nothing arrives this way any more. */
  break(): void {
    this.#broken = true;
  }

  /** Takes over a chunk, or the end of the stream. */
  #carry(chunk: Buffer | undefined): void {
    const { from, mode } = this.#options;
    const now = mode();
    const arrival = now.kind === 'delay' ? pause(now.ms) : undefined;
    this.#sent = this.#sent.then(() => arrival).then(() => this.#deliver(chunk));
    // A slow link still takes what is sent; on a quick one a slow reader holds up whoever sends to it.
    if (arrival) return;
    from.pause();
    void this.#sent.then(() => from.resume());
  }

  /** What is under way when a link goes dead is lost with it, so it is only now that the mode decides. */
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
