/**
 * `node test/system/listeners/flood.ts [program]`: the cost of hostile connections for a chronosd, and the latency of a
 * well-behaved client meanwhile. Prints a row of Markdown for each flood. `program` is the `reveille` to measure, so
 * that an older version can be compared with this one.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const program = process.argv[2] ?? join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');
const WATCHED_MS = 45_000;

const home = mkdtempSync(join(tmpdir(), 'reveille-flood-'));
const daemon = spawn(process.execPath, [program, 'chronosd', '--json'], {
  env: {
    PATH: process.env.PATH,
    HOME: home,
    REVEILLE_HOME: home,
    CHRONOS_DEV: '1',
    CHRONOS_PORT: '0',
    REVEILLE_LOG: 'fatal',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const port = await new Promise<number>((resolve) => {
  let output = '';
  daemon.stdout.on('data', (chunk) => {
    output += chunk;
    const found = /"url":"http:\/\/127\.0\.0\.1:(\d+)/.exec(output);
    if (found) resolve(Number(found[1]));
  });
});

const memoryMb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]) / 1024;
const files = () => readdirSync(`/proc/${daemon.pid}/fd`).length;
const before = files();

/** A peer that never closes its end. */
function holdOpen(bytes: string): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {}).resume();
  if (bytes) socket.write(bytes);
  return socket;
}

/** One request of a client that opens a connection when it needs one; milliseconds, or `undefined` when it failed. */
function probeHealth(agent: Agent): Promise<number | undefined> {
  const began = performance.now();
  return new Promise((resolve) => {
    const asked = request({ port, host: '127.0.0.1', path: '/healthz', agent, timeout: 2000 }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode === 200 ? performance.now() - began : undefined));
    });
    asked
      .on('timeout', () => asked.destroy())
      .on('error', () => resolve(undefined))
      .end();
  });
}

async function flood(name: string, count: number, bytes: string): Promise<void> {
  const sockets: Socket[] = [];
  const began = performance.now();
  const [kept, fresh] = [new Agent({ keepAlive: true, maxSockets: 1 }), new Agent({ keepAlive: false })];
  await probeHealth(kept);
  for (let n = 0; n < count; n++) {
    sockets.push(holdOpen(bytes));
    if (n % 200 === 199) await pause(20);
  }
  const times: number[] = [];
  let requests = 0;
  let failed = 0;
  let most = 0;
  while (performance.now() - began < WATCHED_MS) {
    const answers = await Promise.all([probeHealth(kept), probeHealth(fresh)]);
    requests += answers.length;
    for (const ms of answers) ms === undefined ? failed++ : times.push(ms);
    most = Math.max(most, memoryMb());
    await pause(50);
  }
  times.sort((one, other) => one - other);
  const p99 = times.length === 0 ? '–' : `${times[Math.floor(times.length * 0.99)]!.toFixed(1)} ms`;
  const open = files() - before;
  console.log(`| ${name} | ${count} | ${open} | ${most.toFixed(0)} MB | ${requests} | ${failed} | ${p99} |`);
  for (const socket of sockets) socket.destroy();
  kept.destroy();
  fresh.destroy();
  while (files() - before > 3) await pause(100);
}

console.log(`at rest: ${memoryMb().toFixed(0)} MB`);
console.log('| Flood | Connections | Open after 45 s | Memory at most | Requests | Failed | p99 |');
console.log('|---|---|---|---|---|---|---|');
await flood('header never ends', 200, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
await flood(
  'body never ends',
  200,
  'POST /v1/alarms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
);
await flood('nothing is ever sent', 4300, '');
daemon.kill('SIGKILL');
rmSync(home, { recursive: true, force: true });
