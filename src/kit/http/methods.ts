/**
 * Methods that no daemon serves: TRACE, CONNECT, those of WebDAV, and made-up ones. All are answered 405 with `Allow`
 * (RFC 9110 §15.5.6), before a route is looked for: requests with some of them have no form in the Fetch standard.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ReveilleError } from '../../wire/errors.ts';
import { failureParts } from './envelope.ts';

/** A method among these may be one of a route; whether it is, the routes say. */
const KNOWN: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) \S+ HTTP\/1\.[01]\r?\n/;

type Served = { readonly method: string; readonly path: string };

/** The methods of the routes that a path names, or of all routes where it names none. */
function allowedAt(routes: readonly Served[], target: string): string {
  const [path = ''] = target.split('?', 1);
  const given = path.split('/');
  const matches = (pattern: string) => {
    const wanted = pattern.split('/');
    return wanted.length === given.length && wanted.every((part, at) => part.startsWith(':') || part === given[at]);
  };
  const here = routes.filter((route) => matches(route.path));
  const methods = new Set((here.length > 0 ? here : routes).map(({ method }) => method));
  methods.delete('ALL');
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].sort().join(', ');
}

function refusal(method: string, allow: string): { status: number; headers: Record<string, string>; text: string } {
  const what = `the method ${method} is not served here; use one of ${allow}`;
  const error = new ReveilleError('invalid_request', what, { status: 405 });
  const { headers, text } = failureParts(error);
  return { status: 405, headers: { ...headers, allow, connection: 'close' }, text };
}

/**
 * Answers a request whose method no daemon serves.
 *
 * @param routes of this daemon, as Hono lists them
 * @returns whether it was answered
 */
export function refuseMethod(incoming: IncomingMessage, outgoing: ServerResponse, routes: readonly Served[]): boolean {
  const { method = '', url = '' } = incoming;
  if (KNOWN.has(method)) return false;
  const { status, headers, text } = refusal(method, allowedAt(routes, url));
  outgoing.writeHead(status, headers).end(text);
  return true;
}

/** Answers a request of which Node gives the connection only, and ends that. */
export function refuseOnSocket(socket: Duplex, method: string, target: string, routes: readonly Served[]): void {
  const { status, headers, text } = refusal(method, allowedAt(routes, target));
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(text)) });
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines.map(([name, value]) => `${name}: ${value}`)];
  // The peer may be gone: nobody waits for this answer.
  socket.once('error', () => socket.destroy());
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}

/** The method of a request that the parser refused for its method; `undefined` for anything else. */
export function madeUpMethod(cause: NodeJS.ErrnoException & { rawPacket?: Buffer }): string | undefined {
  if (cause.code !== 'HPE_INVALID_METHOD') return undefined;
  return REQUEST_LINE.exec(cause.rawPacket?.toString('latin1', 0, 16 * 1024) ?? '')?.[1];
}
