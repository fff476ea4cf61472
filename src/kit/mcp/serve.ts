/** Serves MCP on a pair of streams until the client disconnects. */
import type { Readable, Writable } from 'node:stream';
import type { McpServer, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type StdioOptions, StdioTransport } from './stdio.ts';

export type ServeOptions = StdioOptions & {
  /** Creates the server of the connection. */
  readonly factory: () => McpServer | Server;
  readonly onerror: (error: Error) => void;
  /** Called once, when the connection has ended. Must not reject. */
  readonly onEnd?: () => Promise<void> | void;
  /** Default: the process's own streams. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
};

export type ServedConnection = {
  /** Resolves when the client has disconnected, its requests are answered, and `onEnd` is done. */
  readonly closed: Promise<void>;
  /** Ends the connection. Calls in progress are aborted. */
  close(): Promise<void>;
};

export function serveUntilDisconnect(options: ServeOptions): ServedConnection {
  const { factory, onerror, onEnd, input = process.stdin, output = process.stdout } = options;
  const transport = new StdioTransport(input, output, options);
  const handle = serveStdio(factory, { transport, onerror });
  const closed = transport.closed.then(onEnd);
  return {
    closed,
    async close() {
      await handle.close();
      await closed;
    },
  };
}
