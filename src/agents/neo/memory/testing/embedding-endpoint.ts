/** An embedding endpoint on loopback: texts with common concepts are near, in any words. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** Words of the same meaning share a dimension; all others are hashed. */
const CONCEPTS: readonly (readonly string[])[] = [
  ['dog', 'puppy', 'canine', 'pet'],
  ['doctor', 'physician', 'medical'],
  ['car', 'automobile', 'vehicle'],
];
const DIMENSIONS = 64;

function dimensionOf(word: string, dimensions: number): number {
  const concept = CONCEPTS.findIndex((words) => words.includes(word));
  if (concept >= 0) return concept;
  let hash = 0;
  for (const char of word) hash = (hash * 31 + char.codePointAt(0)!) >>> 0;
  return CONCEPTS.length + (hash % (dimensions - CONCEPTS.length));
}

/** The vector of a text. */
export function vectorOf(text: string, dimensions = DIMENSIONS): number[] {
  const vector = new Array<number>(dimensions).fill(-0.01);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const weight = CONCEPTS.flat().includes(word) ? 3 : 0.3;
    vector[dimensionOf(word, dimensions)]! += weight;
  }
  return vector;
}

export type EmbeddingRequest = { input: string[]; model: string; headers: IncomingHttpHeaders };
export type EmbeddingScript = (request: EmbeddingRequest, response: ServerResponse) => void;

export function answerVectors(response: ServerResponse, vectors: readonly unknown[]): void {
  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }));
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ object: 'list', data, model: 'e', usage: { prompt_tokens: 1, total_tokens: 1 } }));
}

/** The normal answer. */
export const embedding: EmbeddingScript = ({ input }, response) =>
  answerVectors(
    response,
    input.map((text) => vectorOf(text)),
  );

/** Answers every request with a status. */
export const refusingWith =
  (status: number): EmbeddingScript =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'no', type: 'x', code: null } }));
  };

/** Starts an endpoint; `script` may be changed while it runs. */
export async function embeddingServer(t: TestContext, script: EmbeddingScript = embedding) {
  const requests: EmbeddingRequest[] = [];
  const state = { script };
  const server = createServer(async (incoming, response) => {
    let text = '';
    for await (const part of incoming.setEncoding('utf8')) text += part;
    const request = { ...JSON.parse(text), headers: incoming.headers } as EmbeddingRequest;
    requests.push(request);
    state.script(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { baseUrl, requests, state };
}
