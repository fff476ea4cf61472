/** Serves MCP on a pair of streams until the client disconnects. */
import type { Readable, Writable } from 'node:stream';
import type { McpServer, Server } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';

export type ServeOptions = {
  /** Creates the server of the connection. */
  readonly factory: () => McpServer | Server;
  readonly onerror: (error: Error) => void;
  /** Called once, when the connection has ended. Must not reject. */
  readonly onEnd: () => Promise<void> | void;
  /** Default: the process's own streams. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
};

export type ServedConnection = {
  /** Resolves when the client has disconnected and `onEnd` is done. */
  readonly closed: Promise<void>;
  /** Ends the connection. */
  close(): Promise<void>;
};

export function serveUntilHangUp(options: ServeOptions): ServedConnection {
  const { factory, onerror, onEnd, input = process.stdin, output = process.stdout } = options;
  const transport = new StdioServerTransport(input, output);
  const handle = serveStdio(factory, { transport, onerror });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= handle.close().finally(onEnd).finally(resolve);
    return closing;
  };
  // The transport closes itself after a message that is too long.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    void close();
  };
  for (const event of ['end', 'close', 'error']) input.once(event, () => void close());
  // A client may also disconnect by a broken pipe.
  output.on('error', () => void close());
  return { closed, close };
}
