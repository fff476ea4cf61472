/**
 * The connections of a server: their limits, which one is evicted for a new one, and the end of finished ones. A peer
 * decides when it closes its end. The server therefore destroys refused, overdue and half-closed connections without
 * waiting for it.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type ConnectionLimits = {
  /** Maximum of open connections. A new one beyond it evicts one without a request, or is refused. */
  connections: number;
  /** Maximum of open connections per address. Loopback is exempt, because all programs of this machine share it. */
  connectionsPerAddress: number;
  /** Maximum of a connection's requests whose answers are not sent yet. */
  pipelined: number;
  /** How long a half-closed connection with nothing left to send may stay. */
  lingerMs: number;
  /** How long a peer may leave an answer unread. */
  stallMs: number;
};

/** Reasons for which the server closes connections. */
export const CLOSE_REASONS = ['evicted', 'refused', 'half_closed', 'overdue', 'not_reading', 'pipelining'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];

export type ConnectionFigures = { open: number; closed: Readonly<Record<CloseReason, number>> };

export type Connections = {
  figures(): ConnectionFigures;
  /** Whether part of an answer may have been sent. */
  isAnswering(socket: Duplex): boolean;
  /** Counts a connection that is closed because its request took too long. */
  overdue(): void;
  /** Closes connections without a request now, and the others as soon as their request is answered. */
  closeIdle(): void;
  /** Closes every connection at once. */
  destroyAll(): void;
};

type Connection = {
  /** The socket to destroy; with TLS, the underlying one. */
  readonly socket: Socket;
  /** The socket of requests; with TLS, the encrypted one, once it exists. */
  stream: Socket;
  readonly address: string;
  readonly requests: Map<ServerResponse, IncomingMessage>;
  /** Whether one of its requests was answered. */
  wasServed: boolean;
  /** Number of checks that found it half closed. */
  halfClosedChecks: number;
};

/** Whether an address in the form of {@link addressOf} is a loopback address. */
export const isLoopback = (address: string): boolean => /^(?:127\.|::1$)/.test(address);

/**
 * The address of a peer, as it is counted. An IPv6 host can use all 2^64 addresses of its network, so these count as
 * one.
 */
export function addressOf(socket: Socket): string {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
  if (!address.includes(':') || address === '::1') return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const rest = tail === undefined ? [] : tail.split(':');
  const all = [...groups, ...Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0'), ...rest];
  return `${all.slice(0, 4).join(':')}::/64`;
}

/** Eviction order: lowest first. `undefined`: the connection is not evicted. */
function rankOf({ stream, requests, wasServed, halfClosedChecks }: Connection): number | undefined {
  if (halfClosedChecks > 0 || stream.writableEnded) return 0;
  if (requests.size === 0) return wasServed ? 2 : 1;
  // A request whose body is incomplete has no work that would be lost.
  return [...requests.values()].some(({ complete }) => complete) ? undefined : 3;
}

/**
 * Tracks a server's connections. A request is in flight from its last header line until its answer is sent or aborted.
 *
 * @param isShared whether any number of peers share an address
 */
export function trackConnections(
  server: Server,
  limits: ConnectionLimits,
  isShared: (address: string) => boolean = (address) => isLoopback(address),
): Connections {
  /** In the order in which they last became idle. */
  const connections = new Map<Duplex, Connection>();
  /** By remote address and port, until the TLS socket exists. */
  const byPeer = new Map<string, Connection>();
  const counts = new Map<string, number>();
  const closed = Object.fromEntries(CLOSE_REASONS.map((reason) => [reason, 0])) as Record<CloseReason, number>;
  let closing = false;

  const destroy = (connection: Connection, reason: CloseReason) => {
    closed[reason]++;
    connection.stream.destroy();
    connection.socket.destroy();
  };

  /** Evicts the lowest-ranked of the connections that `isRival` selects; false if there is none. */
  const evictOne = (isRival: (connection: Connection) => boolean): boolean => {
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
      ofAddress < limits.connectionsPerAddress || isShared(address) || evictOne((other) => other.address === address);
    const fits = fitsAddress && (connections.size < limits.connections || evictOne(() => true));
    if (!fits || socket.destroyed) {
      closed.refused++;
      socket.destroy();
      return;
    }
    const connection: Connection = {
      socket,
      stream: socket,
      address,
      requests: new Map(),
      wasServed: false,
      halfClosedChecks: 0,
    };
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
      connection.wasServed ||= outgoing.writableFinished;
      // destroySoon first sends the data that is still in the socket's buffer.
      if (closing && connection.requests.size === 0) connection.stream.destroySoon();
      // The longest idle connections come first.
      else if (connections.delete(connection.stream)) connections.set(connection.stream, connection);
    });
  });

  // Fires when nothing moved for a while, in either direction.
  server.setTimeout(limits.stallMs, (stream) => {
    const connection = connections.get(stream);
    if (!connection) stream.destroy();
    else if (stream.writableLength > 0) destroy(connection, 'not_reading');
    // Otherwise a handler is still working, or an event stream has no event to send.
    else if (connection.requests.size === 0) stream.destroy();
  });

  // Counting checks instead of time: a process that was suspended has not checked.
  const everyMs = Math.max(20, limits.lingerMs / 2);
  const timer = setInterval(() => {
    for (const connection of connections.values()) {
      const { stream } = connection;
      const isFinished = (stream.writableEnded || stream.readableEnded) && stream.writableLength === 0;
      connection.halfClosedChecks = isFinished ? connection.halfClosedChecks + 1 : 0;
      if (connection.halfClosedChecks > 2) destroy(connection, 'half_closed');
    }
  }, everyMs).unref();
  server.once('close', () => clearInterval(timer));

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
