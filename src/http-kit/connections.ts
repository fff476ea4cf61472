/** Which connections are in the middle of a request, so that a drain can tell the idle from the busy. */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type Connections = {
  count(): number;
  /** Whether part of an answer may already be on its way to the peer. */
  isAnswering(socket: Duplex): boolean;
  /** Closes connections without a request in flight, now and, from now on, as soon as their request is answered. */
  closeIdle(): void;
  /** Closes every connection, whatever it is doing. */
  destroyAll(): void;
};

/** Follows a server's connections. A request is in flight from its last header line until its answer is sent or given up. */
export function trackConnections(server: Server): Connections {
  const inFlight = new Map<Duplex, Set<ServerResponse>>();
  let closing = false;
  server.on('connection', (socket: Socket) => {
    inFlight.set(socket, new Set());
    socket.once('close', () => inFlight.delete(socket));
  });
  server.prependListener('request', ({ socket }, outgoing) => {
    const answers = inFlight.get(socket);
    answers?.add(outgoing);
    outgoing.once('close', () => {
      answers?.delete(outgoing);
      // Ends after what is still in the socket's buffer has been sent.
      if (closing && answers?.size === 0) socket.destroySoon();
    });
  });
  return {
    count: () => inFlight.size,
    isAnswering: (socket) => [...(inFlight.get(socket) ?? [])].some(({ headersSent }) => headersSent),
    closeIdle() {
      closing = true;
      for (const [socket, answers] of inFlight) {
        if (answers.size === 0) socket.destroy();
        for (const outgoing of answers) if (!outgoing.headersSent) outgoing.setHeader('connection', 'close');
      }
    },
    destroyAll() {
      for (const socket of inFlight.keys()) socket.destroy();
    },
  };
}
