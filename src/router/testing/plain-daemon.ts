/** An always-on daemon inside the test's process: it records requests byte for byte, and answers as configured. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from '../../../test/support/temporary.ts';

export type Received = { url: string; headers: IncomingHttpHeaders; body: Buffer };

export type PlainDaemon = {
  url: string;
  chats: Received[];
  /** The number of health requests so far. */
  healthChecks: number;
  /** Answers the next chats; by default 202. */
  answer: ((response: ServerResponse, chat: Received) => void) | undefined;
  healthStatus: number;
  close(): Promise<void>;
};

export async function startPlainDaemon(t: TestContext): Promise<PlainDaemon> {
  const server = createServer((request, response) => {
    if (request.url?.endsWith('/healthz')) {
      daemon.healthChecks++;
      response.writeHead(daemon.healthStatus).end('fine');
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const chat = { url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) };
      daemon.chats.push(chat);
      if (daemon.answer) daemon.answer(response, chat);
      else response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const daemon: PlainDaemon = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    chats: [],
    healthChecks: 0,
    answer: undefined,
    healthStatus: 200,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  atEnd(t, () => daemon.close());
  return daemon;
}
