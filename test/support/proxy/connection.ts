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
 * Cuts a socket off, with a reset where its peer has not been told of the end already. (Node 24 must not be asked to
 * reset a socket whose end is on its way: it then neither resets nor closes it, and the process cannot end.)
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
    // A link that carries nothing in either direction lets no connection come about; the client just does not learn it.
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
      // What went wrong shows in the closing, which is passed on.
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

  /** The server goes without a word to the client. */
  losePeer(): void {
    this.break();
    this.#server.destroy();
  }

  break(): void {
    this.#there.break();
    this.#back.break();
  }

  /**
   * Where one end has gone, tells the other, if the link carries that way. An end that closed in order, all it sent
   * having arrived, needs no telling: its flow did that.
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
