/**
 * The sink, its own process: reads every body to its end, answers 202, and records the arrival of each fire. It listens
 * as three targets: one that answers at once, the same with TLS, and one that waits ten milliseconds. Another port
 * answers queries about arrivals. It ends with its input, so that it never outlives the benchmark.
 *
 * `node server.ts [<certificate file> <key file>]`: without them there is no target with TLS.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { latenessOf } from '../statistics.ts';
import { WallClock } from './wall-clock.ts';

const clock = new WallClock();
/** First arrival of each fire, by fire id. */
const arrivals = new Map<string, number>();
/** Fire ids that arrived more than once. */
const repeats: string[] = [];
let bytes = 0;
let posts = 0;

const FIRE_ID = Buffer.from('"fire_id":"');
const QUOTE = '"'.charCodeAt(0);

function fireIdIn(body: Buffer): string {
  const start = body.indexOf(FIRE_ID) + FIRE_ID.length;
  return body.toString('latin1', start, body.indexOf(QUOTE, start));
}

function dueIn(fireId: string): number {
  return Number(fireId.slice(fireId.indexOf('@') + 1));
}

function take(body: Buffer): void {
  const now = clock.now();
  const fireId = fireIdIn(body);
  posts++;
  bytes += body.length;
  if (arrivals.has(fireId)) repeats.push(fireId);
  else arrivals.set(fireId, now);
}

const ANSWER = '{"ok":true}';
const HEADERS = { 'content-type': 'application/json', 'content-length': String(ANSWER.length) };

/** Response time of the slow target: about that of a router that must look up a machine. */
const SLOW_MS = 10;

function read(request: IncomingMessage, then: () => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    take(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    then();
  });
}

function receive(request: IncomingMessage, response: ServerResponse): void {
  read(request, () => response.writeHead(202, HEADERS).end(ANSWER));
}

function receiveSlowly(request: IncomingMessage, response: ServerResponse): void {
  read(request, () => setTimeout(() => response.writeHead(202, HEADERS).end(ANSWER), SLOW_MS));
}

/** Counting happens while fires arrive and must not delay them. */
const COUNTED_AT_ONCE = 2000;

/** Each arrival, including those during the loop. Pauses let new fires arrive. */
async function* eachArrival(): AsyncGenerator<readonly [string, number]> {
  let counted = 0;
  for (const arrival of arrivals) {
    if (++counted % COUNTED_AT_ONCE === 0) await nextTurn();
    yield arrival;
  }
}

/** Arrivals of the fires due in [from, until). */
async function statistics(from: number, until: number, expected: number) {
  const wanted = (fireId: string) => {
    const due = dueIn(fireId);
    return due >= from && due < until;
  };
  const late: number[] = [];
  let last = 0;
  for await (const [fireId, arrival] of eachArrival()) {
    if (!wanted(fireId)) continue;
    late.push(arrival - dueIn(fireId));
    if (arrival > last) last = arrival;
  }
  return {
    lateness: latenessOf(late, expected, repeats.filter(wanted).length),
    lastArrival: last,
    bodyBytes: posts === 0 ? 0 : bytes / posts,
  };
}

async function answer(path: string, query: URLSearchParams): Promise<unknown> {
  switch (path) {
    case '/reset':
      arrivals.clear();
      repeats.length = 0;
      bytes = 0;
      posts = 0;
      clock.anchor();
      return {};
    case '/count':
      return { count: arrivals.size };
    case '/forget':
      for await (const [fireId] of eachArrival())
        if (dueIn(fireId) < Number(query.get('before'))) arrivals.delete(fireId);
      return {};
    case '/first': {
      const after = Number(query.get('after'));
      const later = arrivals.values().filter((arrival) => arrival >= after);
      const arrival = later.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
      return Number.isFinite(arrival) ? { arrival } : {};
    }
    default:
      return statistics(Number(query.get('from')), Number(query.get('until')), Number(query.get('expected')));
  }
}

const KEPT = { keepAliveTimeout: 60_000 };
const [certificate, key] = process.argv.slice(2);
const targets = {
  plain: createServer(KEPT, receive),
  slow: createServer(KEPT, receiveSlowly),
  ...(certificate === undefined || key === undefined
    ? {}
    : { tls: createTlsServer({ ...KEPT, cert: readFileSync(certificate), key: readFileSync(key) }, receive) }),
  control: createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://sink');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(await answer(pathname, searchParams)));
  }),
};

const ports: Record<string, number> = {};
for (const [name, server] of Object.entries(targets)) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ports[name] = (server.address() as AddressInfo).port;
}
process.stdout.write(`${JSON.stringify(ports)}\n`);
process.stdin.resume().on('end', () => process.exit());
