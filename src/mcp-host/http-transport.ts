/** MCP over streamable HTTP, with limits on the size of a server's messages. */
import {
  type AuthProvider,
  type FetchLike,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/client';
import { createParser } from 'eventsource-parser';
import { Agent, lateFetch } from '../kit/http/dispatchers.ts';
import { refuseDeepNesting } from '../wire/json.ts';
import type { HttpLink } from './manifest.ts';
import type { RawAnswers } from './raw-answers.ts';

/** A longer message ends the connection, as over stdio. */
const LONGEST_MESSAGE_BYTES = 10 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 10_000;

export type HttpWire = {
  transport: StreamableHTTPClientTransport;
  /** Closes the sockets; pending requests fail. */
  destroy(): Promise<void>;
};

/**
 * Passes a body on, and fails when one message in it is too long: a JSON body as a whole, an event up to its blank
 * line.
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
 * Passes a body on and reports its messages to the waiting calls. It must follow {@link bounded}, because it stores one
 * message.
 */
function tapped(body: ReadableStream<Uint8Array>, isEvents: boolean, answers: RawAnswers): ReadableStream<Uint8Array> {
  const read = (text: Buffer) => {
    // Throwing ends the body: the SDK could not parse such a message either.
    refuseDeepNesting(text.toString('utf8'), 'a message of the server');
    if (!answers.areAwaited) return;
    try {
      answers.onReceived(JSON.parse(text.toString('utf8')), text);
    } catch {
      // The SDK rejects text that is not a message.
    }
  };
  const chunks: Uint8Array[] = [];
  const feed = isEvents ? eventDataReader(read) : (chunk: Uint8Array) => void chunks.push(chunk);
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        feed(chunk);
        controller.enqueue(chunk);
      },
      flush() {
        if (!isEvents) read(Buffer.concat(chunks));
      },
    }),
  );
}

class TappedHttpTransport extends StreamableHTTPClientTransport {
  readonly #answers: RawAnswers;

  constructor(url: URL, options: StreamableHTTPClientTransportOptions, answers: RawAnswers) {
    super(url, options);
    this.#answers = answers;
  }

  override send(
    message: JSONRPCMessage,
    options?: Parameters<StreamableHTTPClientTransport['send']>[1],
  ): Promise<void> {
    this.#answers.onSent(message);
    return super.send(message, options);
  }
}

/**
 * Does not connect yet. Redirects are followed within the origin only, so that headers do not reach other hosts.
 *
 * @param onTooLong a message beyond the limit was cut off; its call gets no answer
 * @param authProvider the tokens of a server with a sign-in
 */
export function httpWire(
  link: HttpLink,
  answers: RawAnswers,
  onTooLong: (reason: string) => void,
  authProvider?: AuthProvider,
): HttpWire {
  // The connection has no time limit: tools have their own timeouts, some of hours.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT_MS } });
  const request: FetchLike = async (url, init) => {
    // Few manifests name an HTTP server; the others do not load undici.
    const response = (await lateFetch()(String(url), {
      ...(init as object),
      dispatcher: agent,
    })) as unknown as Response;
    if (response.body === null) return response;
    const isEvents = response.headers.get('content-type')?.includes('text/event-stream') ?? false;
    const tooLong = () => onTooLong(`sent a message of more than ${LONGEST_MESSAGE_BYTES} bytes`);
    const { status, statusText } = response;
    const headers = [...response.headers.entries()];
    const within = bounded(response.body, isEvents, tooLong);
    // An answer arrives with the response to its request, or with a later response that resumes the events.
    const body = answers.areAwaited ? tapped(within, isEvents, answers) : within;
    return new Response(body, { status, statusText, headers });
  };
  const options = {
    requestInit: { headers: { ...link.headers } },
    fetch: request,
    ...(authProvider && { authProvider }),
  };
  const transport = new TappedHttpTransport(new URL(link.url), options, answers);
  return { transport, destroy: () => agent.destroy() };
}

/** An event with more lines is skipped: JSON takes one line. */
const MOST_LINES = 1000;

/**
 * Makes a function that accepts chunks. An incomplete event is stored until its blank line; the caller limits its
 * length.
 *
 * @param onData the data of an event, its lines joined by line feeds
 */
export function eventDataReader(onData: (data: Buffer) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ data }) {
      if (data.split('\n', MOST_LINES + 1).length <= MOST_LINES) onData(Buffer.from(data));
    },
  });
  let endedInCr = false;
  return (chunk) => {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') return;
    if (endedInCr && text.startsWith('\n')) text = text.slice(1);
    // The parser would delay an event that ends in CR until it knows that no LF follows.
    endedInCr = text.endsWith('\r');
    parser.feed(text.replace(/\r\n?/g, '\n'));
  };
}
