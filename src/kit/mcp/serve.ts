/** Serving MCP on a pair of streams until the client is gone, however it goes. */
import type { Readable, Writable } from 'node:stream';
import type { McpServer, Server } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';

export type ServeOptions = {
  /** Makes the server of the connection. */
  readonly factory: () => McpServer | Server;
  readonly onerror: (error: Error) => void;
  /** Called once, when the connection is over. Must not reject. */
  readonly onEnd: () => Promise<void> | void;
  /** The process's own streams unless told. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
};

export type ServedConnection = {
  /** Resolves when the client is gone and `onEnd` is done. */
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
  // The transport gives up by itself after a message that is too long.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    void close();
  };
  for (const event of ['end', 'close', 'error']) input.once(event, () => void close());
  // A broken pipe is the client's way to leave, too.
  output.on('error', () => void close());
  return { closed, close };
}
