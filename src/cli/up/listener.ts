/** The program that listens at an address, and the error of a start with a port in use. */
import { systemClock } from '../../kit/clock/clock.ts';
import { codeOf, exchange, joinUrl } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import { foreignListenerOn } from '../../router/providers/listeners.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { orUndefined } from '../access/unreachable.ts';

export type Listener =
  /** A daemon of Reveille, of this installation or another. */
  | { kind: 'daemon'; name: string; version: string }
  /** Another program that answers. */
  | { kind: 'other' }
  | { kind: 'silent'; reason: string };

const ASK_MS = 1500;
/** Time limit for naming the other program. */
const ASK_BEFORE_REFUSAL_MS = 4000;
const MOST_BYTES = 64 * 1024;

/** The name of a listener with the console as its front page, which has no name and version. */
const PAGES = 'public listener';

/** Name and version in a response of ours; `undefined` for any other body. */
function dataOf(answer: { body: Buffer; status: number }, url: string): object | undefined {
  const data = orUndefined(() => openEnvelope(answer.body.toString('utf8'), answer.status, url).value());
  return typeof data === 'object' && data !== null ? data : undefined;
}

/** One request for a small public page of a listener. */
export function askListener(url: string, path: string, ms: number) {
  const limit = { clock: systemClock, ms };
  return exchange(plainTransport, { method: 'GET', url: joinUrl(url, path), maxBytes: MOST_BYTES, limit });
}

/** Asks which program listens at a daemon's address. */
export async function listenerAt(url: string, timeoutMs = ASK_MS): Promise<Listener> {
  const root = await askListener(url, '/', timeoutMs);
  if (root.result !== 'answered') return { kind: 'silent', reason: codeOf(root.error) };
  const data = dataOf(root, url);
  if (data !== undefined && 'name' in data)
    return { kind: 'daemon', name: String(data.name), version: 'version' in data ? String(data.version) : 'unknown' };
  const health = await askListener(url, '/healthz', timeoutMs);
  const isOurs = health.result === 'answered' && 'status' in (dataOf(health, url) ?? {});
  return isOurs ? { kind: 'daemon', name: PAGES, version: 'unknown' } : { kind: 'other' };
}

/** The program at an address, as text; `undefined` when unknown. */
async function wordsFor(url: string): Promise<string | undefined> {
  const [listener, process] = await Promise.all([
    listenerAt(url, ASK_BEFORE_REFUSAL_MS),
    foreignListenerOn(Number(new URL(url).port)),
  ]);
  const as = process === undefined ? '' : `: ${process}`;
  if (listener.kind === 'daemon') {
    const version = listener.version === 'unknown' ? '' : ` (${listener.version})`;
    return `the ${listener.name} of another Reveille${version}${as}`;
  }
  return listener.kind === 'other' ? `a program that is not Reveille${as}` : process;
}

/** The prefixes of each daemon's variables. */
export const PREFIXES = { chronosd: 'CHRONOS', router: 'ROUTER', executor: 'EXECUTOR', neo: 'NEO' } as const;
export type DaemonName = keyof typeof PREFIXES;

/** Further listeners of a daemon, by the names of their servers. */
const MORE_PREFIXES: Readonly<Record<string, string>> = { 'router-public': 'ROUTER_PUBLIC' };

type BindError = NodeJS.ErrnoException & { address?: string; port?: number; listener?: string };

/**
 * Starts a daemon. The error of an unavailable address names the variable to change and, if known, the program that
 * listens there.
 */
export async function namingPort<T>(name: DaemonName, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const cause = error instanceof ReveilleError ? (error.cause as BindError | undefined) : undefined;
    if (cause?.syscall !== 'listen' && cause?.syscall !== 'getaddrinfo') throw error;
    throw new ReveilleError('unavailable', await refusal(name, cause), { retryable: false, cause });
  }
}

async function refusal(name: DaemonName, error: BindError): Promise<string> {
  const { code, message, address = '', port, listener = name } = error;
  const host = address.includes(':') ? `[${address}]` : address;
  const prefix = MORE_PREFIXES[listener] ?? PREFIXES[name];
  const variable = `${prefix}_PORT`;
  if (code === 'EADDRINUSE') {
    const reached = /^(0\.0\.0\.0|\[[0:]+\])$/.test(host) ? '127.0.0.1' : host;
    const who = await wordsFor(`http://${reached}:${port}`);
    const what = who === undefined ? 'another program listens there' : `another program listens there, ${who}`;
    return `${name} cannot listen on ${host}:${port}: ${what}; stop it, or choose another port with ${variable} (0 picks a free one)`;
  }
  if (code === 'EACCES')
    return `${name} cannot listen on ${host}:${port}: this user may not; choose a port above 1023 with ${variable}`;
  return `${name} cannot listen on the address in ${prefix}_HOST: ${message}; choose an address of this computer, such as 127.0.0.1`;
}
