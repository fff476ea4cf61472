/** Where the Docker engine listens: the forms of `DOCKER_HOST`. */
import { bracketed } from '../../kit/http/origin.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';

export type DockerHost =
  | { kind: 'socket'; socketPath: string }
  /** `hostname` is where the ports of its containers are published, too; an IPv6 address without brackets. */
  | { kind: 'tcp'; hostname: string; port: number };

const DEFAULT_SOCKET = '/var/run/docker.sock';
const DEFAULT_PORT = 2375;

function tcpHost(text: string): DockerHost | undefined {
  let url: URL;
  try {
    url = new URL(text.replace(/^tcp:/, 'http:'));
  } catch {
    return undefined;
  }
  const bare =
    url.username === '' && url.password === '' && url.search === '' && url.hash === '' && url.pathname === '/';
  if (url.protocol !== 'http:' || !bare || url.hostname === '') return undefined;
  // `URL` leaves out the port 80, as that is what http means.
  const port = url.port !== '' ? Number(url.port) : /:80\/?$/.test(text) ? 80 : DEFAULT_PORT;
  return { kind: 'tcp', hostname: url.hostname.replace(/^\[|\]$/g, ''), port };
}

/**
 * Reads `DOCKER_HOST`: `unix:///path` or `tcp://host[:port]` (also with `http:`); without a value the usual socket.
 *
 * @throws ReveilleError `unavailable` naming the value and what is supported
 */
export function parseDockerHost(value: string | undefined): DockerHost {
  if (value === undefined || value === '') return { kind: 'socket', socketPath: DEFAULT_SOCKET };
  const socketPath = /^unix:\/\/(\/.+)$/.exec(value)?.[1];
  if (socketPath !== undefined) return { kind: 'socket', socketPath };
  const tcp = /^(tcp|http):\/\//.test(value) ? tcpHost(value) : undefined;
  if (tcp) return tcp;
  const remedy = 'for TLS or SSH, forward its socket and give the path';
  const message = `DOCKER_HOST must be unix:///path/to.sock or tcp://host:port (got ${showValue(value)}); ${remedy}`;
  throw new ReveilleError('unavailable', message);
}

export function describeDockerHost(host: DockerHost): string {
  return host.kind === 'socket' ? `unix://${host.socketPath}` : `tcp://${bracketed(host.hostname)}:${host.port}`;
}
