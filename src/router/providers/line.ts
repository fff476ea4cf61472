/**
 * The line to a program that the router started: connections that are made only when the program, and nobody else,
 * listens. What a stranger who took the port would get is an empty connection that is closed.
 */
import type { Socket } from 'node:net';
import type { buildConnector as Connectors, Dispatcher } from 'undici';
import { Agent, buildConnector } from '../../kit/http/dispatchers.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { ListenerWatch } from './listeners.ts';

/** Somebody else listens where a program of ours should. */
export class PortTaken extends ReveilleError {
  constructor(port: number, who: string) {
    super('unavailable', `port ${port} of the machine is taken by another program: ${who} listens on it`);
  }
}

export type LineOptions = {
  /** The pid that leads the program's group. */
  leader: number;
  /** At once, to the program. */
  connections: number;
  /** Told once when the system does not show who listens. */
  onUnseen?: () => void;
};

export class Line {
  /** For what may take long. */
  readonly deliveries: Dispatcher;
  /** For looks at health: deliveries that hang must not make a program seem dead. */
  readonly looks: Dispatcher;
  /** For people: streams that they leave open must not keep wakes waiting. */
  readonly people: Dispatcher;
  readonly #agents: readonly Agent[];
  readonly #watch: ListenerWatch;
  readonly #connector = buildConnector({ allowH2: false });
  #onUnseen: (() => void) | undefined;
  #stranger: PortTaken | undefined;
  #closed = false;

  constructor({ leader, connections, onUnseen }: LineOptions) {
    this.#watch = new ListenerWatch(leader);
    this.#onUnseen = onUnseen;
    const connect: Connectors.connector = (options, callback) => {
      this.#connect(options).then(
        (socket) => callback(null, socket),
        (thrown: Error) => callback(thrown, null),
      );
    };
    const deliveries = new Agent({ connections, pipelining: 1, allowH2: false, connect });
    const looks = new Agent({ connections: 4, pipelining: 1, allowH2: false, connect });
    const people = new Agent({ connections, pipelining: 1, allowH2: false, connect });
    this.#agents = [deliveries, looks, people];
    this.deliveries = deliveries;
    this.people = people;
    this.looks = looks;
  }

  /** Who else was found at the last attempt to connect, if somebody was. */
  get stranger(): PortTaken | undefined {
    return this.#stranger;
  }

  /** Takes nothing more; what is under way ends by itself. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const agent of this.#agents) void agent.close();
  }

  /** Ends what is under way. */
  destroy(): void {
    this.#closed = true;
    for (const agent of this.#agents) void agent.destroy();
  }

  async #connect(options: Connectors.Options): Promise<Socket> {
    const port = Number(options.port);
    // A listener that was there before and after a connection was made is the one that has it.
    const before = this.#watch.last(port);
    if (before !== undefined) return await this.#connectTo(before, options);
    // For the first time an empty connection tells that somebody listens, which is cheaper to ask than who.
    (await this.#open(options)).destroy();
    const first = await this.#ownOn(port);
    if (first === undefined) throw new Error(`nobody listens on port ${port} any more`);
    return await this.#connectTo(first, options);
  }

  async #connectTo(sockets: string, options: Connectors.Options): Promise<Socket> {
    const port = Number(options.port);
    const socket = await this.#open(options);
    try {
      if ((await this.#ownOn(port)) !== sockets) throw new Error(`port ${port} has just changed hands`);
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
   * Asked when a connection was made.
   *
   * @returns what of the program listens on a port; `undefined` when nobody does any more
   * @throws PortTaken
   */
  async #ownOn(port: number): Promise<string | undefined> {
    const found = await this.#watch.on(port);
    if (found.seen === 'stranger') throw this.#taken(port, found.who);
    this.#stranger = undefined;
    if (found.seen === 'own') return found.sockets;
    if (found.seen === 'nobody') {
      // Where there is no /proc, the programs of other users are not shown.
      if (process.platform !== 'linux') throw this.#taken(port, 'a program of another user');
      return undefined;
    }
    this.#onUnseen?.();
    this.#onUnseen = undefined;
    return 'unseen';
  }

  #taken(port: number, who: string): PortTaken {
    this.#stranger = new PortTaken(port, who);
    return this.#stranger;
  }
}
