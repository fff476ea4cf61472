/**
 * The connections of a server: how many there may be, which one makes room for a new one, and that none stays which is
 * over. A peer decides when it closes its end, so nothing here waits for it: what was refused, ran out of time or half
 * closed is destroyed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type ConnectionLimits = {
  /** Connections at a time; another one takes the place of one without a request, or is refused. */
  connections: number;
  /**
   * Connections of one address at a time. Loopback is one address that everybody on this machine has; this does not
   * hold for it.
   */
  connectionsPerAddress: number;
  /** Requests of one connection whose answers are not sent yet. */
  pipelined: number;
  /** How long a connection may stay that is closed on one side and has nothing left to send. */
  lingerMs: number;
  /** How long a peer may leave an answer unread. */
  stallMs: number;
};

/** Why connections were closed that did not end by themselves. */
export const CLOSE_REASONS = ['evicted', 'refused', 'half_closed', 'overdue', 'not_reading', 'pipelining'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

export type ConnectionFigures = { open: number; closed: Readonly<Record<CloseReason, number>> };

export type Connections = {
  figures(): ConnectionFigures;
  /** Whether part of an answer may already be on its way to the peer. */
  isAnswering(socket: Duplex): boolean;
  /** Counts a connection that is being closed because its request took too long. */
  overdue(): void;
  /** Closes connections without a request in flight, now and, from now on, as soon as their request is answered. */
  closeIdle(): void;
  /** Closes every connection, whatever it is doing. */
  destroyAll(): void;
};

type Connection = {
  /** What is destroyed; with TLS the socket below it. */
  readonly socket: Socket;
  /** What requests name; with TLS the socket above it, once there is one. */
  stream: Socket;
  readonly address: string;
  readonly requests: Map<ServerResponse, IncomingMessage>;
  /** Whether a request of it was answered. */
  proven: boolean;
  /** Looks at which it was closed on one side. */
  looks: number;
};

/** Whether an address, as {@link addressOf} gives it, is of this computer. */
export const isLoopback = (address: string): boolean => /^(?:127\.|::1$)/.test(address);

/** IPv6 hosts choose among the 2^64 addresses of their network, so these count as one. */
export function addressOf(socket: Socket): string {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
  if (!address.includes(':') || address === '::1') return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const rest = tail === undefined ? [] : tail.split(':');
  const all = [...groups, ...Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0'), ...rest];
  return `${all.slice(0, 4).join(':')}::/64`;
}

/**
 * How far a connection is from being somebody's who behaves; the lowest makes room first. `undefined`: it makes no
 * room.
 */
function rankOf({ stream, requests, proven, looks }: Connection): number | undefined {
  if (looks > 0 || stream.writableEnded) return 0;
  if (requests.size === 0) return proven ? 2 : 1;
  // A body that has not arrived completely is no work that would be lost.
  return [...requests.values()].some(({ complete }) => complete) ? undefined : 3;
}

/**
 * Follows a server's connections. A request is in flight from its last header line until its answer is sent or given
 * up.
 *
 * @param isShared whether an address stands for any number of peers
 */
export function trackConnections(
  server: Server,
  limits: ConnectionLimits,
  isShared: (address: string) => boolean = (address) => isLoopback(address),
): Connections {
  /** In the order in which they last became idle. */
  const connections = new Map<Duplex, Connection>();
  /** By remote address and port, for as long as there is no socket above the first one. */
  const byPeer = new Map<string, Connection>();
  const counts = new Map<string, number>();
  const closed = Object.fromEntries(CLOSE_REASONS.map((reason) => [reason, 0])) as Record<CloseReason, number>;
  let closing = false;

  const destroy = (connection: Connection, reason: CloseReason) => {
    closed[reason]++;
    connection.stream.destroy();
    connection.socket.destroy();
  };

  /** Whether there is room for one more among those that `isRival` selects, after the least deserving was closed. */
  const makeRoom = (isRival: (connection: Connection) => boolean): boolean => {
    let chosen: Connection | undefined;
    let best = 4;
    for (const connection of connections.values()) {
      if (!isRival(connection)) continue;
      const rank = rankOf(connection) ?? 4;
      if (rank < best) [chosen, best] = [connection, rank];
      if (best === 0) break;
    }
    if (!chosen) return false;
    forget(chosen);
    destroy(chosen, 'evicted');
    return true;
  };

  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

  const forget = (connection: Connection) => {
    if (!connections.delete(connection.stream)) return;
    byPeer.delete(peerOf(connection.socket));
    const left = (counts.get(connection.address) ?? 1) - 1;
    if (left > 0) counts.set(connection.address, left);
    else counts.delete(connection.address);
  };

  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket);
    const ofAddress = counts.get(address) ?? 0;
    const fitsAddress =
      ofAddress < limits.connectionsPerAddress || isShared(address) || makeRoom((other) => other.address === address);
    const fits = fitsAddress && (connections.size < limits.connections || makeRoom(() => true));
    if (!fits || socket.destroyed) {
      closed.refused++;
      socket.destroy();
      return;
    }
    const connection: Connection = { socket, stream: socket, address, requests: new Map(), proven: false, looks: 0 };
    connections.set(socket, connection);
    byPeer.set(peerOf(socket), connection);
    counts.set(address, (counts.get(address) ?? 0) + 1);
    socket.once('close', () => forget(connection));
  });
  server.on('secureConnection', (stream: Socket) => {
    const connection = byPeer.get(peerOf(stream));
    if (!connection) {
      stream.destroy();
      return;
    }
    connections.delete(connection.stream);
    connection.stream = stream;
    connections.set(stream, connection);
    stream.once('close', () => forget(connection));
  });

  server.prependListener('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const connection = connections.get(incoming.socket);
    if (!connection) return;
    connection.requests.set(outgoing, incoming);
    if (connection.requests.size > limits.pipelined) {
      destroy(connection, 'pipelining');
      return;
    }
    outgoing.once('close', () => {
      connection.requests.delete(outgoing);
      connection.proven ||= outgoing.writableFinished;
      // Ends after what is still in the socket's buffer has been sent.
      if (closing && connection.requests.size === 0) connection.stream.destroySoon();
      // The longest idle stand first.
      else if (connections.delete(connection.stream)) connections.set(connection.stream, connection);
    });
  });

  // Fires when nothing moved for a while, in either direction.
  server.setTimeout(limits.stallMs, (stream) => {
    const connection = connections.get(stream);
    if (!connection) stream.destroy();
    else if (stream.writableLength > 0) destroy(connection, 'not_reading');
    // Otherwise a handler takes its time, or a stream of events has nothing to tell.
    else if (connection.requests.size === 0) stream.destroy();
  });

  // Counting looks needs no clock: a process that stood still has not looked.
  const everyMs = Math.max(20, limits.lingerMs / 2);
  const looking = setInterval(() => {
    for (const connection of connections.values()) {
      const { stream } = connection;
      const isOver = (stream.writableEnded || stream.readableEnded) && stream.writableLength === 0;
      connection.looks = isOver ? connection.looks + 1 : 0;
      if (connection.looks > 2) destroy(connection, 'half_closed');
    }
  }, everyMs).unref();
  server.once('close', () => clearInterval(looking));

  return {
    figures: () => ({ open: connections.size, closed: { ...closed } }),
    isAnswering: (socket) =>
      [...(connections.get(socket)?.requests.keys() ?? [])].some(({ headersSent }) => headersSent),
    overdue: () => void closed.overdue++,
    closeIdle() {
      closing = true;
      for (const { stream, requests } of connections.values()) {
        if (requests.size === 0) stream.destroy();
        for (const outgoing of requests.keys()) if (!outgoing.headersSent) outgoing.setHeader('connection', 'close');
      }
    },
    destroyAll() {
      for (const { stream } of connections.values()) stream.destroy();
    },
  };
}
