/**
 * Ports for processes that must know each other's address before they start, or that must come back at the same one.
 * A process that neither needs binds port 0 and reports its port.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Above the default ports of the product and of most services, below the ephemeral ports of Linux, macOS and Windows. */
const RANGE = { first: 12_000, end: 32_000 };

/**
 * The end of the range. A system may assign lower ephemeral ports than usual; connections of other tests would take
 * such a port while its process restarts.
 */
function endOfRange(): number {
  try {
    const [least] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/, 1);
    return Math.min(RANGE.end, Number(least));
  } catch {
    return RANGE.end;
  }
}

/** Whether no program listens on the port, on any address. */
function isVacant(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, () => probe.close(() => resolve(true)));
  });
}

/** Takes the UDP port of the same number until this process ends, so that no other test process gets this number. */
function claim(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const token = createSocket('udp4');
    token.once('error', () => {
      token.close();
      resolve(false);
    });
    token.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
    token.unref();
  });
}

/** A TCP port that no other test gets while this process lives, and that the system assigns to no connection. */
export async function reservePort(): Promise<number> {
  const end = endOfRange();
  for (;;) {
    const port = randomInt(RANGE.first, end);
    if ((await claim(port)) && (await isVacant(port))) return port;
  }
}
