/** A model endpoint on loopback that speaks OpenAI's streaming chat completions, one scripted answer per request. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** A message in a request to an endpoint. */
export type EndpointMessage = {
  readonly role: string;
  readonly content: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
};

export type EndpointBody = {
  readonly model: string;
  readonly stream: boolean;
  readonly messages: EndpointMessage[];
  readonly tools?: { function: { name: string; description: string; parameters: object } }[];
  readonly tool_choice?: string;
};

export type EndpointRequest = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: EndpointBody;
  /** Resolves when the client has disconnected. */
  readonly gone: Promise<void>;
};

/** Answers one request. */
export type Script = (response: ServerResponse, request: EndpointRequest) => void | Promise<void>;

function chunk(delta: object, finishReason: string | null = null): string {
  const data = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'served-model',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
  return `data: ${JSON.stringify(data)}\n\n`;
}

export function beginStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(chunk({ role: 'assistant', content: '' }));
}

export function sendPiece(response: ServerResponse, text: string): void {
  response.write(chunk({ content: text }));
}

/** Sends a piece of any form. */
export function sendDelta(response: ServerResponse, delta: object): void {
  response.write(chunk(delta));
}

export function endStream(response: ServerResponse, finishReason = 'stop'): void {
  response.write(chunk({}, finishReason));
  const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
  response.write(`data: ${JSON.stringify({ id: 'chatcmpl-1', model: 'served-model', choices: [], usage })}\n\n`);
  response.end('data: [DONE]\n\n');
}

/** Streams the pieces and ends properly. */
export function saying(...pieces: string[]): Script {
  return (response) => {
    beginStream(response);
    for (const piece of pieces) sendPiece(response, piece);
    endStream(response);
  };
}

/** A call of a scripted model. */
export type ScriptedCall = { readonly name: string; readonly args?: object | string; readonly id?: string };

/** Sends text and calls; arguments given as a string are sent unchanged. */
export function calling(...calls: (ScriptedCall | string)[]): Script {
  return (response) => {
    beginStream(response);
    let index = 0;
    for (const call of calls) {
      if (typeof call === 'string') {
        sendPiece(response, call);
        continue;
      }
      const { name, args = {}, id = `call_${index}` } = call;
      const input = typeof args === 'string' ? args : JSON.stringify(args);
      const begun = { index, id, type: 'function', function: { name, arguments: '' } };
      response.write(chunk({ tool_calls: [begun] }));
      // In two pieces, as real endpoints do.
      const half = Math.ceil(input.length / 2);
      for (const piece of [input.slice(0, half), input.slice(half)]) {
        response.write(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
      }
      index++;
    }
    endStream(response, 'tool_calls');
  };
}

/** Refuses with a status. */
export function refusing(status: number, message: string, headers: Record<string, string> = {}): Script {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { message, type: 'some_error', code: null } }));
  };
}

/** Streams the pieces, then cuts the connection. */
export function breakingOff(...pieces: string[]): Script {
  return async (response) => {
    beginStream(response);
    for (const piece of pieces) sendPiece(response, piece);
    // Only what has left the socket reaches the client before the cut.
    await new Promise<void>((resolve) => response.write('\n', () => resolve()));
    response.destroy();
  };
}

/** Starts an endpoint that plays its scripts in order and repeats the last one. */
export async function modelEndpoint(t: Pick<TestContext, 'after'>, ...scripts: Script[]) {
  const requests: EndpointRequest[] = [];
  const server = createServer(async (incoming, response) => {
    // Not a request to a model: another program on this computer uses a port that it had before.
    if (incoming.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
    let text = '';
    for await (const part of incoming.setEncoding('utf8')) text += part;
    const gone = once(response, 'close').then(() => {});
    const request = { path: incoming.url ?? '', headers: incoming.headers, body: JSON.parse(text), gone };
    requests.push(request);
    await scripts[Math.min(requests.length, scripts.length) - 1]!(response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests };
}
