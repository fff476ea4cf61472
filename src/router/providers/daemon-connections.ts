/**
 * Connections to a program that the router started. Data is sent only while the program itself listens, and no other. A
 * foreign listener on the port gets only an empty connection that is closed.
 */
import type { Socket } from 'node:net';
import type { buildConnector as Connectors, Dispatcher } from 'undici';
import { Agent, buildConnector } from '../../kit/http/dispatchers.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { ListenerWatch } from './listeners.ts';

/** Another program listens on the port of a machine. */
export class PortTaken extends ReveilleError {
  constructor(port: number, owner: string) {
    super('unavailable', `port ${port} of the machine is taken by another program: ${owner} listens on it`);
  }
}

export type DaemonConnectionsOptions = {
  /** The pid of the leader of the program's process group. */
  leader: number;
  /** The most concurrent connections to the program. */
  connections: number;
  /** Called once when the system does not show the owner of the listener. */
  onUnseen?: () => void;
};

export class DaemonConnections {
  /** For wakes and their turns, which may take long. */
  readonly deliveries: Dispatcher;
  /** For health checks: hanging deliveries must not make a program seem dead. */
  readonly healthChecks: Dispatcher;
  /** For user requests: their open streams must not delay wakes. */
  readonly userRequests: Dispatcher;
  readonly #agents: readonly Agent[];
  readonly #watch: ListenerWatch;
  readonly #connector = buildConnector({ allowH2: false });
  #onUnseen: (() => void) | undefined;
  #foreignListener: PortTaken | undefined;
  #closed = false;

  constructor({ leader, connections, onUnseen }: DaemonConnectionsOptions) {
    this.#watch = new ListenerWatch(leader);
    this.#onUnseen = onUnseen;
    const connect: Connectors.connector = (options, callback) => {
      this.#connect(options).then(
        (socket) => callback(null, socket),
        (thrown: Error) => callback(thrown, null),
      );
    };
    const deliveries = new Agent({ connections, pipelining: 1, allowH2: false, connect });
    const healthChecks = new Agent({ connections: 4, pipelining: 1, allowH2: false, connect });
    const userRequests = new Agent({ connections, pipelining: 1, allowH2: false, connect });
    this.#agents = [deliveries, healthChecks, userRequests];
    this.deliveries = deliveries;
    this.userRequests = userRequests;
    this.healthChecks = healthChecks;
  }

  /** The foreign listener found at the last connection attempt, if any. */
  get foreignListener(): PortTaken | undefined {
    return this.#foreignListener;
  }

  /** Accepts no new request; requests under way continue to their end. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const agent of this.#agents) void agent.close();
  }

  /** Aborts requests under way. */
  destroy(): void {
    this.#closed = true;
    for (const agent of this.#agents) void agent.destroy();
  }

  async #connect(options: Connectors.Options): Promise<Socket> {
    const port = Number(options.port);
    // A listener that is the same before and after the connect owns the connection.
    const before = this.#watch.last(port);
    if (before !== undefined) return await this.#connectTo(before, options);
    // The first time, an empty connection shows whether a listener exists. That is cheaper than finding its owner.
    (await this.#open(options)).destroy();
    const first = await this.#ownListenersOn(port);
    if (first === undefined) throw new Error(`no program listens on port ${port} any more`);
    return await this.#connectTo(first, options);
  }

  async #connectTo(sockets: string, options: Connectors.Options): Promise<Socket> {
    const port = Number(options.port);
    const socket = await this.#open(options);
    try {
      if ((await this.#ownListenersOn(port)) !== sockets) throw new Error(`the owner of port ${port} has just changed`);
      if (socket.destroyed || socket.readyState !== 'open') throw new Error('the connection was closed at once');
      return socket;
    } catch (thrown) {
      socket.destroy();
      throw thrown;
    }
  }

  #open(options: Connectors.Options): Promise<Socket> {
    return new Promise((resolve, reject) => {
      this.#connector(options, (error, socket) => {
        if (error) reject(error);
        else resolve(socket!);
      });
    });
  }

  /**
   * Finds the owner after a connect.
   *
   * @returns the program's listening sockets; `undefined` when no program listens any more
   * @throws PortTaken
   */
  async #ownListenersOn(port: number): Promise<string | undefined> {
    const found = await this.#watch.on(port);
    if (found.seen === 'foreign') throw this.#taken(port, found.owner);
    this.#foreignListener = undefined;
    if (found.seen === 'own') return found.sockets;
    if (found.seen === 'none') {
      // Without /proc, the programs of other users are not visible.
      if (process.platform !== 'linux') throw this.#taken(port, 'a program of another user');
      return undefined;
    }
    this.#onUnseen?.();
    this.#onUnseen = undefined;
    return 'unseen';
  }

  #taken(port: number, owner: string): PortTaken {
    this.#foreignListener = new PortTaken(port, owner);
    return this.#foreignListener;
  }
}
