/**
 * MCP servers over streamable HTTP on 127.0.0.1: the official handler around the tame tools, and one that misbehaves.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { createTameServer } from './tame-server.ts';

export type HttpServer = { url: string; port: number; stop(): Promise<void> };

async function listen(t: TestContext, listener: RequestListener, port = 0): Promise<HttpServer> {
  const server: Server = createServer(listener);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.after(stop);
  const { port: bound } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${bound}/mcp`, port: bound, stop };
}

/** @param legacy `reject`: speaks 2026-07-28 only */
export function startTameHttp(
  t: TestContext,
  {
    legacy = 'stateless',
    port = 0,
    seen = [],
  }: { legacy?: 'stateless' | 'reject'; port?: number; seen?: IncomingMessage[] } = {},
): Promise<HttpServer> {
  const handler = createMcpHandler(createTameServer, { legacy });
  const respond = getRequestListener((request) => handler.fetch(request));
  return listen(
    t,
    (request, response) => {
      seen.push(request);
      void respond(request, response);
    },
    port,
  );
}

type Message = { id?: number; method: string };

async function readMessage(request: IncomingMessage): Promise<Message> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text === '' ? { method: '' } : (JSON.parse(text) as Message);
}

const answer = (response: ServerResponse, id: number, result: object) => {
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
};

/** The repeated answer of a hostile server to a call. */
export type HttpMisbehaviour = (response: ServerResponse, id: number, request: IncomingMessage) => void;

/** A server that performs the handshake and lists one tool correctly, and answers calls as scripted. */
export function startHostileHttp(t: TestContext, onCall: HttpMisbehaviour): Promise<HttpServer> {
  const tools = [{ name: 'work', description: 'A tool.', inputSchema: { type: 'object' } }];
  return listen(t, async (request, response) => {
    const { id, method } = await readMessage(request);
    if (request.method !== 'POST') return void response.writeHead(405).end();
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'initialize') {
      const serverInfo = { name: 'hostile', version: '0.1.0' };
      return answer(response, id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    }
    if (method === 'tools/list') return answer(response, id, { tools });
    if (method === 'tools/call') return onCall(response, id, request);
    answer(response, id, {});
  });
}
