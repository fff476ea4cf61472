/** MCP over streamable HTTP, with bounds on what a server may send. */
import { type FetchLike, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Agent, fetch as undiciFetch } from 'undici';
import type { HttpLink } from './manifest.ts';

/** A message of more bytes ends the connection, as over stdio. */
const LONGEST_MESSAGE_BYTES = 10 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

export type HttpWire = {
  transport: StreamableHTTPClientTransport;
  /** Frees the sockets; what is under way fails. */
  destroy(): Promise<void>;
};

/**
 * Passes a body on, and fails when a single message in it grows too long: a JSON body as a whole, an event up to the blank line
 * after it.
 */
function bounded(
  body: ReadableStream<Uint8Array>,
  isEvents: boolean,
  onTooLong: () => void,
): ReadableStream<Uint8Array> {
  let bytes = 0;
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const blank = isEvents ? Math.max(lastOf(chunk, '\n\n'), lastOf(chunk, '\r\n\r\n')) : -1;
        bytes = blank === -1 ? bytes + chunk.length : chunk.length - blank;
        if (bytes <= LONGEST_MESSAGE_BYTES) {
          controller.enqueue(chunk);
          return;
        }
        onTooLong();
        controller.error(new Error(`the server sent a message of more than ${LONGEST_MESSAGE_BYTES} bytes`));
      },
    }),
  );
}

const lastOf = (chunk: Uint8Array, end: string) =>
  Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).lastIndexOf(end);

/**
 * Opens nothing yet. Redirects are followed within the origin only, so that headers do not reach strangers.
 *
 * @param onTooLong a message beyond the limit was cut off; its call will get no answer
 */
export function httpWire(link: HttpLink, onTooLong: (why: string) => void): HttpWire {
  // How long a call may take is not for the connection to say: tools have timeouts of their own, some of hours.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT_MS } });
  const request: FetchLike = async (url, init) => {
    const response = (await undiciFetch(String(url), {
      ...(init as object),
      dispatcher: agent,
    })) as unknown as Response;
    if (response.body === null) return response;
    const isEvents = response.headers.get('content-type')?.includes('text/event-stream') ?? false;
    const tooLong = () => onTooLong(`sent a message of more than ${LONGEST_MESSAGE_BYTES} bytes`);
    const { status, statusText } = response;
    const headers = [...response.headers.entries()];
    return new Response(bounded(response.body, isEvents, tooLong), { status, statusText, headers });
  };
  const transport = new StreamableHTTPClientTransport(new URL(link.url), {
    requestInit: { headers: { ...link.headers } },
    fetch: request,
  });
  return { transport, destroy: () => agent.destroy() };
}
