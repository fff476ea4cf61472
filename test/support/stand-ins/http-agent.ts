/** The common part of the stand-ins for agents that are servers: a real HTTP server that records every request. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type SeenCall = {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  text: string;
};

export type Handle = (call: SeenCall, response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

export type HttpAgent = {
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly seen: SeenCall[];
  /** Answers instead of the stand-in; `true` when it did. */
  misbehave: ((call: SeenCall, response: ServerResponse) => boolean) | undefined;
  close(): Promise<void>;
};

export function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Misbehaviour: gives this answer to every call, or to calls of one path. */
export function always(
  status: number,
  body: unknown,
  { headers = {}, path }: { headers?: Record<string, string>; path?: string } = {},
): NonNullable<HttpAgent['misbehave']> {
  return (call, response) => {
    if (path !== undefined && call.path !== path) return false;
    answer(response, status, body, headers);
    return true;
  };
}

/** Misbehaviour: reads the request and closes the connection. */
export function hangUp(path?: string): NonNullable<HttpAgent['misbehave']> {
  return (call, response) => {
    if (path !== undefined && call.path !== path) return false;
    response.destroy();
    return true;
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export async function startHttpAgent(handle: Handle): Promise<HttpAgent> {
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://agent');
    const { method = 'GET', headers } = request;
    const call = { method, path: pathname, query: searchParams, headers, text: await textOf(request) };
    agent.seen.push(call);
    if (agent.misbehave?.(call, response)) return;
    await handle(call, response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent: HttpAgent = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    misbehave: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return agent;
}
