/**
 * An HTTP proxy on loopback with the address rules of {@link WebAccess}. It resolves and checks every address that the
 * browser requests, and connects to the checked address. Encrypted connections pass through unchanged.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { guardedLookup, hostOf, type Resolve, resolveBySystem } from '../kit/http/guarded-lookup.ts';
import type { WebAccess } from '../kit/http/web-access.ts';

const CONNECT_MS = 15_000;
const IDLE_MS = 120_000;

export type GuardProxy = { readonly url: string; close(): void };

/** Starts the proxy. @param web decides which addresses may be reached */
export async function startGuardProxy(web: WebAccess, resolve: Resolve = resolveBySystem): Promise<GuardProxy> {
  const sockets = new Set<Duplex>();
  const tracked = <S extends Duplex>(socket: S): S => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  /** Why a host may not be reached, if this is known without a lookup. */
  const refusalOf = (host: string, port: string) => (isIP(host) ? web.refusalOf(host, port, host) : undefined);
  const lookupFor = (port: string): LookupFunction =>
    guardedLookup(resolve, (name, address) => web.refusalOf(name, port, address));

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const fail = (status: number, why: string) => {
      if (!outgoing.headersSent) outgoing.writeHead(status, { 'content-type': 'text/plain' });
      outgoing.end(`${why}\n`);
    };
    const url = URL.parse(incoming.url ?? '');
    if (url?.protocol !== 'http:') return fail(400, 'only http:// and https:// addresses are reached');
    const host = hostOf(url);
    const port = url.port || '80';
    const refusal = refusalOf(host, port);
    if (refusal !== undefined) return fail(403, refusal);
    const { 'proxy-connection': _, 'proxy-authorization': __, ...headers } = incoming.headers;
    const { method } = incoming;
    const upstream = request(
      {
        host,
        port,
        path: url.pathname + url.search,
        headers,
        lookup: lookupFor(port),
        agent: false,
        ...(method && { method }),
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    upstream.setTimeout(IDLE_MS, () => upstream.destroy());
    upstream.once('error', (error) => fail(403, error.message));
    outgoing.once('close', () => upstream.destroy());
    incoming.pipe(upstream);
  };

  const tunnel = (incoming: IncomingMessage, client: Duplex, head: Buffer): unknown => {
    tracked(client).on('error', () => client.destroy());
    const fail = (why: string) =>
      client.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${Buffer.byteLength(why)}\r\n\r\n${why}`);
    const target = URL.parse(`http://${incoming.url ?? ''}`);
    if (target === null) return fail('the target must be a host and a port');
    const host = hostOf(target);
    const port = target.port || '80';
    const refusal = refusalOf(host, port);
    if (refusal !== undefined) return fail(refusal);
    const server = tracked(connect({ host, port: Number(port), lookup: lookupFor(port), timeout: CONNECT_MS }));
    server.once('error', (error) => fail(error.message));
    server.once('timeout', () => server.destroy(new Error('it did not answer in time')));
    server.once('connect', () => {
      server.setTimeout(IDLE_MS);
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) server.write(head);
      server.pipe(client);
      client.pipe(server);
    });
    server.once('close', () => client.destroy());
    return client.once('close', () => server.destroy());
  };

  const proxy = createServer(forward);
  proxy.on('connect', tunnel);
  // Browsers tunnel unencrypted web sockets with CONNECT, so an upgrade request is refused.
  proxy.on('upgrade', (_request, socket: Duplex) => socket.destroy());
  await new Promise<void>((listening, failed) => {
    proxy.once('error', failed);
    proxy.listen(0, '127.0.0.1', listening);
  });
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}
