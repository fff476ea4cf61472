/** One connection through a proxy: the client's socket, the one to the server, and a flow each way. */
import { connect, Socket } from 'node:net';
import { Flow } from './flow.ts';
import { type LinkMode, loses } from './link-mode.ts';

export type ConnectionOptions = {
  client: Socket;
  targetPort: number;
  mode: () => LinkMode;
  changed: () => Promise<void>;
  onLost: (bytes: number) => void;
  onClosed: (connection: Connection) => void;
};

/**
 * Closes a socket, with a reset if its peer has not received the end of the stream. (In Node 24 a reset of a socket
 * whose end is in transit neither resets nor closes it, and the process cannot end.)
 */
export function cut(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

export class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #there: Flow;
  readonly #back: Flow;
  readonly #mode: () => LinkMode;

  constructor({ client, targetPort, mode, changed, onLost, onClosed }: ConnectionOptions) {
    this.#mode = mode;
    this.#client = client;
    // A link that carries nothing in either direction establishes no connection; the client just does not notice it.
    const unreachable = loses(mode(), 'there') && loses(mode(), 'back');
    this.#server = unreachable
      ? new Socket()
      : connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const flow = {
      mode,
      changed,
      onLost: (bytes: number) => {
        onLost(bytes);
        this.tell();
      },
    };
    this.#there = new Flow({ ...flow, way: 'there', from: client, to: this.#server });
    this.#back = new Flow({ ...flow, way: 'back', from: this.#server, to: client });
    if (unreachable) this.break();
    for (const socket of [client, this.#server]) {
      // Errors appear in the closing, which is passed on.
      socket.on('error', () => {});
      socket.once('close', () => {
        if (client.destroyed && (this.#server.destroyed || unreachable)) onClosed(this);
        else this.tell();
      });
    }
  }

  /** Resets both ends. */
  reset(): void {
    cut(this.#client);
    cut(this.#server);
  }

  /** The server disappears without notice to the client. */
  losePeer(): void {
    this.break();
    this.#server.destroy();
  }

  break(): void {
    this.#there.break();
    this.#back.break();
  }

  /**
   * When one end has closed, notifies the other, if the link carries that direction. After an orderly close with all
   * data delivered, the flow has done that already.
   */
  tell(): void {
    if (this.#mode().kind === 'stall') return;
    const client = this.#client;
    const server = this.#server;
    const lost = (socket: Socket, flow: Flow) => flow.endLost || (socket.destroyed && !socket.readableEnded);
    if (lost(client, this.#there) && !loses(this.#mode(), 'there')) this.reset();
    if (lost(server, this.#back) && !loses(this.#mode(), 'back')) this.reset();
  }
}
