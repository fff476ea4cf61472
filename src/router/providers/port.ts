/** TCP ports for daemons on this machine. */
import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/** Listens for a moment on `port` (0: one that the system picks); `undefined` when that is not possible. */
function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      const got = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => resolve(got));
    });
  });
}

/** Whether nobody listens on a port of the loopback address. */
export async function isFree(port: number): Promise<boolean> {
  return (await tryPort(port)) !== undefined;
}

/** A port on which nobody listens, none of `taken`; `undefined` when the system has none. */
export async function freePort(taken: ReadonlySet<number>): Promise<number | undefined> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const port = await tryPort(0);
    if (port === undefined || !taken.has(port)) return port;
  }
  return undefined;
}
