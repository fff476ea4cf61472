/**
 * Comparison partners of the public listener, each in its own process. `target` is a daemon that answers at once.
 * `bare <url>` is a minimal reverse proxy over the same HTTP client. Each prints its address.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';

/** A page of conversations, as a daemon returns it. */
const ANSWER = JSON.stringify({ ok: true, data: { conversations: ['x'.repeat(4096)] } });

function target(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER));
}

function bare(url: string): (request: IncomingMessage, response: ServerResponse) => void {
  const agent = new Agent({ connections: 128, pipelining: 1 });
  return (request, response) => {
    const { host: _, connection: __, ...headers } = request.headers;
    const { url: path = '/', method = 'GET' } = request;
    const body = method === 'GET' ? null : request;
    void agent.stream({ origin: url, path, method: method as 'GET', headers, body }, (answer) =>
      response.writeHead(answer.statusCode, answer.headers as Record<string, string>),
    );
  };
}

const [role, url] = process.argv.slice(2);
const server = createServer(role === 'target' ? target : bare(url!));
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
process.once('SIGTERM', () => process.exit());
