/**
 * Reads the Docker engine's description of a container (`GET /containers/{id}/json`) and the address of its daemon;
 * pure.
 */
import { z } from 'zod';
import { bracketed } from '../../kit/http/origin.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { namesSecret } from './redaction.ts';

const endpoint = z.object({ IPAddress: z.string().optional(), GlobalIPv6Address: z.string().optional() });
const binding = z.object({ HostIp: z.string().optional(), HostPort: z.string().optional() });

/** The members that the router reads; engines differ in the others. */
export const containerSchema = z.object({
  State: z.object({
    Status: z.string(),
    ExitCode: z.number().optional(),
    OOMKilled: z.boolean().optional(),
    Error: z.string().optional(),
    Health: z.object({ Status: z.string().optional() }).nullish(),
  }),
  Config: z.object({ Env: z.array(z.string()).nullish(), Tty: z.boolean().optional() }).nullish(),
  HostConfig: z.object({ NetworkMode: z.string().optional() }).nullish(),
  NetworkSettings: z
    .object({
      IPAddress: z.string().optional(),
      Ports: z.record(z.string(), z.array(binding).nullable()).nullish(),
      Networks: z.record(z.string(), endpoint.nullable()).nullish(),
    })
    .nullish(),
});
export type Container = z.output<typeof containerSchema>;

/** Addresses that mean every address of the engine's machine. */
const ANY = new Set(['', '0.0.0.0', '::']);
const LOOPBACK = /^(127\.|::1$|localhost$)/;

/**
 * The base address of the daemon in a running container. It is the port published on the engine's machine. If the
 * container shares the network of that machine, it is the port itself. Otherwise it is the container's own address,
 * which only a router on that machine reaches.
 *
 * @returns nothing when the daemon cannot be reached
 */
export function addressOf(container: Container, port: number, host: DockerHost): string | undefined {
  const hostname = host.kind === 'tcp' ? host.hostname : '127.0.0.1';
  const isLocal = LOOPBACK.test(hostname);
  const { Ports, Networks, IPAddress } = container.NetworkSettings ?? {};
  for (const { HostIp = '', HostPort = '' } of Ports?.[`${port}/tcp`] ?? []) {
    if (!/^[1-9]\d{0,4}$/.test(HostPort)) continue;
    if (ANY.has(HostIp)) return `http://${bracketed(hostname)}:${HostPort}`;
    // Published for programs on the engine's own machine.
    if (LOOPBACK.test(HostIp) && !isLocal) continue;
    return `http://${bracketed(HostIp)}:${HostPort}`;
  }
  if (container.HostConfig?.NetworkMode === 'host') return `http://${bracketed(hostname)}:${port}`;
  if (!isLocal) return undefined;
  const endpoints = Object.values(Networks ?? {}).flatMap((one) => [one?.IPAddress, one?.GlobalIPv6Address]);
  const address = [IPAddress, ...endpoints].find((one) => one !== undefined && one !== '');
  return address === undefined ? undefined : `http://${bracketed(address)}:${port}`;
}

/** The values of the container's variables with secret-like names. */
export function secretsIn({ Config }: Container): string[] {
  return (Config?.Env ?? []).flatMap((assignment) => {
    const at = assignment.indexOf('=');
    return at > 0 && namesSecret(assignment.slice(0, at)) ? [assignment.slice(at + 1)] : [];
  });
}

/** How a stopped container ended, to follow its name; `said` is the engine's own error. */
export function endingOf({ State }: Container, error: string): string {
  const { ExitCode, OOMKilled } = State;
  const how = ExitCode === undefined ? 'ended' : `exited with code ${ExitCode}`;
  return `${how}${OOMKilled ? ', out of memory' : ''}${error === '' ? '' : ` (${error})`}`;
}

/**
 * The text of a container's log. The engine sends frames with a header of eight bytes: one for the stream, three zeros,
 * the length. A container with a terminal has no frames.
 */
export function logText(body: Buffer, tty: boolean): string {
  if (tty) return body.toString('utf8');
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= body.length; ) {
    const length = body.readUInt32BE(at + 4);
    parts.push(body.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).toString('utf8');
}

export type DockerHost =
  | { kind: 'socket'; socketPath: string }
  /** Container ports are published on `hostname`; an IPv6 address has no brackets. */
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
  // `URL` omits port 80, the default of http.
  const port = url.port !== '' ? Number(url.port) : /:80\/?$/.test(text) ? 80 : DEFAULT_PORT;
  return { kind: 'tcp', hostname: url.hostname.replace(/^\[|\]$/g, ''), port };
}

/**
 * Parses `DOCKER_HOST`: `unix:///path` or `tcp://host[:port]` (also with `http:`); without a value the usual socket.
 *
 * @throws ReveilleError `unavailable` with the value and the supported forms
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
