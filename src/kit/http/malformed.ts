/** Bytes that are not an HTTP request: answered with an envelope if possible, then the connection is closed. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ReveilleError } from '../../wire/errors.ts';
import { failureParts } from './envelope.ts';

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
 * The server's `clientError` listener.
 *
 * @param isAnswering whether part of an answer was sent, so that more bytes would corrupt it
 */
export function answerClientError(cause: NodeJS.ErrnoException, socket: Duplex, isAnswering: boolean): void {
  // Before the end of a TLS handshake the client cannot read an HTTP answer.
  const isHandshake = cause.code?.startsWith('ERR_SSL') || cause.code?.startsWith('ERR_TLS');
  if (cause.code === 'ECONNRESET' || !socket.writable || isAnswering || isHandshake) {
    socket.destroy(cause);
    return;
  }
  const error = clientErrorOf(cause.code);
  const { headers, text } = failureParts(error);
  const lines = Object.entries({
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('\r\n')}\r\n\r\n${text}`);
}
