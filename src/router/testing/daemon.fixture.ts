/**
 * A minimal daemon for tests. It keeps a lock like Neo does, records events, and misbehaves on request. Its settings
 * are in its environment: `FIXTURE_DIR`, and `FIXTURE_MODE` as in {@link Mode}.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** `ignore-term`: SIGTERM has no effect; the names of the others describe them. */
type Mode =
  | 'exit'
  | 'ignore-term'
  | 'unhealthy'
  | 'hang-chat'
  | 'drop-chat'
  | 'port-taken-once'
  /** The first one never listens. */
  | 'slow-once'
  /** Listens on a port of the system's choice, and reports it. */
  | 'says-port';

// An import of node:http also loads Node's fetch, which is half of this daemon's start time.
const { createServer } = process.getBuiltinModule('node:http');

const folder = process.env.FIXTURE_DIR!;
const mode = process.env.FIXTURE_MODE as Mode | undefined;
const lock = join(folder, 'lock');
const file = (name: string) => join(folder, name);
const note = (event: string, more: object = {}) =>
  appendFileSync(file('events.jsonl'), `${JSON.stringify({ event, pid: process.pid, ...more })}\n`);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // An orphan may not be reaped: it stays as a zombie, which holds no lock.
    return !existsSync('/proc/self/stat') || !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

note('start', { argv: process.argv.slice(2), cwd: process.cwd(), env: process.env });

if (mode === 'exit') {
  const message = (process.env.FIXTURE_SAYS ?? 'no reason').replace(
    /\{(\w+)\}/g,
    (_, name: string) => `${process.env[name]}`,
  );
  console.error(`\x1b[31mcannot start\x1b[0m: ${message}`);
  process.exit(3);
}
if (existsSync(file('fail'))) {
  console.error(readFileSync(file('fail'), 'utf8'));
  process.exit(3);
}
if (mode === 'port-taken-once' && !existsSync(file('retried'))) {
  writeFileSync(file('retried'), '');
  console.error(`Error: listen EADDRINUSE: address already in use 127.0.0.1:${process.env.PORT}`);
  process.exit(1);
}
if (existsSync(lock) && isAlive(Number(readFileSync(lock, 'utf8')))) {
  note('second');
  console.error('another daemon holds the lock');
  process.exit(9);
}
writeFileSync(lock, String(process.pid));

const seen = new Set<string>();
const chats = () => (existsSync(file('chats')) ? readFileSync(file('chats'), 'utf8').split('\n') : []);
for (const fireId of chats()) seen.add(fireId);

const server = createServer((request, response) => {
  const answer = (status: number, data: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ ok: status < 300, data }));
  };
  if (request.url === '/healthz') {
    note('health');
    const queued = existsSync(file('queued')) ? 1 : 0;
    if (mode === 'unhealthy' || existsSync(file('sick'))) answer(500, {});
    else {
      const next = existsSync(file('next')) ? { next_turn_at: readFileSync(file('next'), 'utf8') } : {};
      answer(200, { status: 'ok', busy: existsSync(file('busy')), queued, ...next });
    }
    return;
  }
  if (request.url?.startsWith('/events')) {
    note('events', { url: request.url, headers: request.headers });
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: 7\ndata: hello\n\n');
    response.on('close', () => note('left'));
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    note('chat', { method: request.method, url: request.url, headers: request.headers, body: body.toString('base64') });
    if (mode === 'hang-chat') return;
    if (mode === 'drop-chat') {
      request.socket.destroy();
      return;
    }
    if (existsSync(file('answer.json'))) {
      const { status, headers, text } = JSON.parse(readFileSync(file('answer.json'), 'utf8'));
      response.writeHead(status, headers).end(text);
      return;
    }
    const fireId = String(request.headers['x-matrix-wake-fire']);
    const deduped = seen.has(fireId);
    seen.add(fireId);
    if (!deduped) appendFileSync(file('chats'), `${fireId}\n`);
    answer(deduped ? 200 : 202, { conversation_id: 'conv-1', turn_id: `turn-${seen.size}`, deduped });
  });
});

process.on('SIGTERM', () => {
  note('term');
  if (mode === 'ignore-term') return;
  // Slow enough that a wake can arrive meanwhile, when a test requests it.
  const leave = () => {
    rmSync(lock, { force: true });
    note('end');
    process.exit(0);
  };
  if (existsSync(file('slow-end'))) setTimeout(leave, 300);
  else leave();
});

// Closes its port, and keeps running.
process.on('SIGUSR2', () => {
  server.close(() => note('deaf'));
  server.closeAllConnections();
});

const isSlow = mode === 'slow-once' && !existsSync(file('slow'));
if (isSlow) {
  writeFileSync(file('slow'), '');
  setInterval(() => {}, 1000);
  note('slow');
} else {
  server.listen(mode === 'says-port' ? 0 : Number(process.env.PORT), process.env.HOST, () => {
    const { port } = server.address() as AddressInfo;
    if (mode === 'says-port') writeSync(Number(process.env.REVEILLE_PORT_FD), `${port}\n`);
    note('listening', { port: String(port) });
    console.log('listening');
  });
}
