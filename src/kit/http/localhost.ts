/**
 * The name `localhost` is 127.0.0.1 or [::1], and a browser may try either. Whoever listens at the other one of a port
 * has the same name there, with all that a browser keeps for it (RFC 6761 §6.3): so a server that people reach by that
 * name takes both.
 */
import type { Server } from 'node:http';
import { createServer } from 'node:net';

export type OtherLoopback = {
  /** Whether nobody else can be reached by the name at this port. */
  readonly isOurs: boolean;
  /** Takes no more connections; resolves when those that came this way are gone. */
  close(): Promise<void>;
};

/** What a system without IPv6 says. */
const NO_IPV6 = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']);

/**
 * Listens at [::1] for a server that listens at 127.0.0.1, and hands over what comes. Never rejects: where somebody else
 * is there, the server goes on without.
 *
 * @param port where the server listens
 */
export function takeOtherLoopback(server: Server, port: number): Promise<OtherLoopback> {
  const other = createServer((socket) => void server.emit('connection', socket));
  return new Promise((resolve) => {
    other.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
      resolve({ isOurs: NO_IPV6.has(code), close: () => Promise.resolve() }),
    );
    other.listen({ port, host: '::1', ipv6Only: true }, () =>
      resolve({
        isOurs: true,
        close: () => new Promise((closed) => void other.close(() => closed())),
      }),
    );
  });
}
