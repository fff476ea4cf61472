/**
 * The common part of the fake engine and the fake cloud: a real HTTP server that records its requests, and misbehaves
 * on request.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The answer to a request. `garbage`: 200 with a body that is not JSON; `lost`: the action is done, but the connection
 * breaks before the answer; with the others it is not done.
 */
export type Misbehaviour =
  | { status: number; body: string | object; headers?: Record<string, string> }
  | 'reset'
  | 'garbage'
  | 'lost'
  | 'hang';

export type SeenRequest = { action: string; method: string; url: URL; headers: IncomingHttpHeaders };

export type FakeProviderApi = {
  /** Its TCP address; empty for a socket. */
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly seen: SeenRequest[];
  /** Number of requests for an action. */
  count(action: string): number;
  /** Answers the next requests for an action (`*`: any) differently. */
  next(action: string, how: Misbehaviour, times?: number): void;
  /** Delays requests for an action (`*`: any) until the returned function is called. */
  hold(action: string): () => void;
  close(): Promise<void>;
};

export type FakeProviderApiOptions = {
  listen: { path: string } | { host: string; port: number };
  /** Names the action of a request. */
  actionOf(method: string, path: string): string;
  handle(request: SeenRequest, response: ServerResponse): void | Promise<void>;
};

export function sendJson(response: ServerResponse, status: number, body?: object, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body === undefined ? '' : JSON.stringify(body));
}

function misbehave(how: Misbehaviour, request: IncomingMessage, response: ServerResponse): void {
  if (how === 'hang' || how === 'lost') return;
  if (how === 'reset') request.socket.destroy();
  else if (how === 'garbage') response.writeHead(200).end('<html>not what you asked for</html>\u0000\u001b[31m');
  else if (typeof how.body === 'object') sendJson(response, how.status, how.body, how.headers);
  else response.writeHead(how.status, how.headers).end(how.body);
}

/** Breaks the connection instead of answering. */
function withoutAnswer(request: IncomingMessage, response: ServerResponse): ServerResponse {
  response.writeHead = () => response;
  response.end = () => {
    request.socket.destroy();
    return response;
  };
  return response;
}

export async function startFakeProviderApi(options: FakeProviderApiOptions): Promise<FakeProviderApi> {
  const seen: SeenRequest[] = [];
  const planned: { action: string; how: Misbehaviour }[] = [];
  const delayed = new Map<string, Promise<void>>();
  const matches = (pattern: string, action: string) => pattern === '*' || pattern === action;

  const server = createServer(async (request, response) => {
    request.resume();
    const url = new URL(request.url ?? '/', 'http://fake');
    const method = request.method ?? '';
    const one = { action: options.actionOf(method, url.pathname), method, url, headers: request.headers };
    seen.push(one);
    for (const [pattern, released] of delayed) if (matches(pattern, one.action)) await released;
    const at = planned.findIndex(({ action }) => matches(action, one.action));
    const [plan] = at < 0 ? [] : planned.splice(at, 1);
    if (plan?.how === 'lost') await options.handle(one, withoutAnswer(request, response));
    else if (plan) misbehave(plan.how, request, response);
    else await options.handle(one, response);
  });
  server.listen(options.listen);
  await once(server, 'listening');
  const address = server.address();
  return {
    url: typeof address === 'string' ? '' : `http://127.0.0.1:${(address as AddressInfo).port}`,
    seen,
    count: (action) => seen.filter((one) => one.action === action).length,
    next(action, how, times = 1) {
      for (let n = 0; n < times; n++) planned.push({ action, how });
    },
    hold(action) {
      const { promise, resolve } = Promise.withResolvers<void>();
      delayed.set(action, promise);
      return () => {
        delayed.delete(action);
        resolve();
      };
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
