/**
 * A TCP proxy on a link that can simulate faults while connections are open: see {@link LinkMode}.
 *
 * When the link works again, connections that lost data stay silent, like connections whose state a router forgot. If
 * one end has closed meanwhile, the other gets a reset then, as from a rebooted host.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Connection, cut } from './connection.ts';
import { type LinkMode, PASS } from './link-mode.ts';

export class TcpProxy {
  readonly port: number;
  readonly #listener: Server;
  readonly #targetPort: number;
  readonly #connections = new Set<Connection>();
  #mode: LinkMode = PASS;
  #modeChange = Promise.withResolvers<void>();
  #lostBytes = 0;

  private constructor(listener: Server, port: number, targetPort: number) {
    this.port = port;
    this.#listener = listener;
    this.#targetPort = targetPort;
    listener.on('connection', (client) => this.#accept(client));
  }

  /**
   * Starts a proxy on a free port of 127.0.0.1.
   *
   * @param targetPort its destination on 127.0.0.1; a listener is not required yet
   */
  static async open(targetPort: number): Promise<TcpProxy> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const address = listener.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    return new TcpProxy(listener, address.port, targetPort);
  }

  /** Bytes that were sent and did not arrive. */
  get lostBytes(): number {
    return this.#lostBytes;
  }

  /** Connections of which at least one end is open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Changes the link from now on, for open connections too. */
  set(mode: LinkMode): void {
    this.#mode = mode;
    this.#modeChange.resolve();
    this.#modeChange = Promise.withResolvers();
    for (const connection of this.#connections) {
      if (mode.kind === 'reset') connection.reset();
      else if (mode.kind === 'half-open' && mode.dead === 'peer') connection.losePeer();
      else connection.tell();
    }
  }

  /** Cuts all connections and stops listening. */
  async close(): Promise<void> {
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    this.set({ kind: 'reset' });
    await closed;
  }

  #accept(client: Socket): void {
    if (this.#mode.kind === 'reset') {
      client.on('error', () => {});
      cut(client);
      return;
    }
    this.#connections.add(
      new Connection({
        client,
        targetPort: this.#targetPort,
        mode: () => this.#mode,
        changed: () => this.#modeChange.promise,
        onLost: (bytes) => {
          this.#lostBytes += bytes;
        },
        onClosed: (connection) => this.#connections.delete(connection),
      }),
    );
  }
}
