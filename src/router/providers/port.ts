/** TCP ports for daemons on this machine. */
import { randomInt } from 'node:crypto';
import { createServer, Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

const LOOPBACK = '127.0.0.1';

/** Whether nobody listens on a port of the loopback address. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, LOOPBACK, () => server.close(() => resolve(true)));
  });
}

/**
 * From where ports are chosen: outside the range from which Linux, macOS and Windows hand out the local ports of connections, as
 * of those there may be hundreds in the second that a daemon takes to listen.
 */
const [LOWEST, ABOVE] = [20_000, 30_000];

/** A port on which nobody listens, none of `taken`; `undefined` when none of many was free. */
export async function freePort(taken: ReadonlySet<number>): Promise<number | undefined> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = randomInt(LOWEST, ABOVE);
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  return undefined;
}

const LONGEST_PORT = 5;

/**
 * Hears a daemon say where it listens: a number and a line feed, once. Whatever else is said is passed over.
 *
 * @param channel our end of its channel
 */
export function heardPort(channel: Readable | Writable | null | undefined, onPort: (port: number) => void): void {
  if (!(channel instanceof Socket)) return;
  let said = '';
  // A daemon that never says anything must not keep this process from ending, nor may the end of one be an error.
  channel.unref();
  channel.on('error', () => channel.destroy());
  channel.setEncoding('latin1').on('data', (text: string) => {
    said += text;
    const [line, rest] = said.split('\n', 2) as [string, string | undefined];
    if (rest === undefined && line.length <= LONGEST_PORT) return;
    channel.destroy();
    const port = Number(line);
    if (/^\d+$/.test(line) && port >= 1 && port <= 65_535) onPort(port);
  });
}
