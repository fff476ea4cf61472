/**
 * Methods that no daemon serves: TRACE, CONNECT, WebDAV, and invented ones. They get 405 with `Allow` (RFC 9110
 * §15.5.6) before routing, because some of them have no representation in the Fetch standard.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ReveilleError } from '../../wire/errors.ts';
import { failureParts } from './envelope.ts';

/** Methods that routes may have. The routes decide which of them are served. */
const KNOWN: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) \S+ HTTP\/1\.[01]\r?\n/;

type Served = { readonly method: string; readonly path: string };

/** The methods of the routes that match a path, or of all routes if none matches. */
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
 * @param routes this daemon's routes, as Hono lists them
 * @returns whether it was answered
 */
export function refuseMethod(incoming: IncomingMessage, outgoing: ServerResponse, routes: readonly Served[]): boolean {
  const { method = '', url = '' } = incoming;
  if (KNOWN.has(method)) return false;
  const { status, headers, text } = refusal(method, allowedAt(routes, url));
  outgoing.writeHead(status, headers).end(text);
  return true;
}

/** Answers a request for which Node provides only the socket, and closes the socket. */
export function refuseOnSocket(socket: Duplex, method: string, target: string, routes: readonly Served[]): void {
  const { status, headers, text } = refusal(method, allowedAt(routes, target));
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(text)) });
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines.map(([name, value]) => `${name}: ${value}`)];
  // The peer may have closed the connection; its error is ignored.
  socket.once('error', () => socket.destroy());
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}

/** The method of a request that the parser refused because of it; `undefined` for any other error. */
export function unknownMethod(cause: NodeJS.ErrnoException & { rawPacket?: Buffer }): string | undefined {
  if (cause.code !== 'HPE_INVALID_METHOD') return undefined;
  return REQUEST_LINE.exec(cause.rawPacket?.toString('latin1', 0, 16 * 1024) ?? '')?.[1];
}
