/**
 * Requests that never reach the routes: bytes that are not an HTTP request, and methods that no daemon serves (TRACE,
 * CONNECT, WebDAV, and invented ones). Those get 405 with `Allow` (RFC 9110 §15.5.6) before routing, because some of
 * them have no representation in the Fetch standard.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ReveilleError } from '../../wire/errors.ts';
import { failureParts } from './handlers.ts';

/** Methods that routes may have. The routes decide which of them are served. */
const KNOWN: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) \S+ HTTP\/1\.[01]\r?\n/;

type Served = { readonly method: string; readonly path: string };
type Answer = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly text: string };

/** The answer for a failure, after which the connection is closed. */
function lastAnswer(error: ReveilleError, more: Readonly<Record<string, string>> = {}): Answer {
  const { headers, text } = failureParts(error);
  return { status: error.status, headers: { ...headers, ...more, connection: 'close' }, text };
}

/** The bytes of an answer, for a request of which Node provides only the socket. */
function bytesOf({ status, headers, text }: Answer): string {
  const all = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(text)) });
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...all.map(([name, value]) => `${name}: ${value}`)];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}

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

function refusal(method: string, target: string, routes: readonly Served[]): Answer {
  const allow = allowedAt(routes, target);
  const what = `the method ${method} is not served here; use one of ${allow}`;
  return lastAnswer(new ReveilleError('invalid_request', what, { status: 405 }), { allow });
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
  const { status, headers, text } = refusal(method, url, routes);
  outgoing.writeHead(status, headers).end(text);
  return true;
}

/** Answers a request for which Node provides only the socket, and closes the socket. */
export function refuseOnSocket(socket: Duplex, method: string, target: string, routes: readonly Served[]): void {
  // The peer may have closed the connection; its error is ignored.
  socket.once('error', () => socket.destroy());
  socket.end(bytesOf(refusal(method, target, routes)), () => socket.destroy());
}

/** The method of a request that the parser refused because of it; `undefined` for any other error. */
function unknownMethod(cause: NodeJS.ErrnoException & { rawPacket?: Buffer }): string | undefined {
  if (cause.code !== 'HPE_INVALID_METHOD') return undefined;
  return REQUEST_LINE.exec(cause.rawPacket?.toString('latin1', 0, 16 * 1024) ?? '')?.[1];
}

function clientErrorOf(code: string | undefined): ReveilleError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      // It may have arrived in time: after a suspend, the process checks its timers before its sockets.
      return new ReveilleError('invalid_request', 'the request took too long to arrive; send it again', {
        status: 408,
        retryable: true,
      });
    case 'HPE_HEADER_OVERFLOW':
      return new ReveilleError('invalid_request', 'the request headers are too large', { status: 431 });
    default:
      return new ReveilleError('invalid_request', 'this is not an HTTP/1.1 request');
  }
}

/**
 * The server's `clientError` listener: answers with an envelope if possible, and closes the connection.
 *
 * @param isAnswering whether part of an answer was sent, so that more bytes would corrupt it
 */
export function answerClientError(
  cause: NodeJS.ErrnoException,
  socket: Duplex,
  { isAnswering, routes }: { isAnswering: boolean; routes: readonly Served[] },
): void {
  // Before the end of a TLS handshake the client cannot read an HTTP answer.
  const isHandshake = cause.code?.startsWith('ERR_SSL') || cause.code?.startsWith('ERR_TLS');
  if (cause.code === 'ECONNRESET' || !socket.writable || isAnswering || isHandshake) {
    socket.destroy(cause);
    return;
  }
  const method = unknownMethod(cause);
  if (method === undefined) socket.end(bytesOf(lastAnswer(clientErrorOf(cause.code))));
  else refuseOnSocket(socket, method, '', routes);
}
