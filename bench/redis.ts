/** A Redis server for the peer that needs one: on loopback, durable, and ended with the benchmark in every case. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { reservePort } from '../test/support/ports.ts';
import { Unavailable } from './systems/system.ts';

/** As durable as the others: a write is on disk before it is acknowledged. */
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];

/** Runs the server until its own input ends, which happens when the benchmark ends. */
const GUARDED = 'redis-server "$@" & pid=$!; cat > /dev/null; kill -KILL $pid 2> /dev/null; wait $pid';

const START_LIMIT_MS = 10_000;

async function untilListening(port: number): Promise<void> {
  const limit = Date.now() + START_LIMIT_MS;
  for (;;) {
    const socket = connect({ host: '127.0.0.1', port });
    const open = await new Promise<boolean>((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    if (open) return;
    if (Date.now() > limit) throw new Error(`redis-server does not listen on ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class RedisServer {
  readonly #folder: string;
  readonly #port: number;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  /**
   * @param folder its data folder
   * @throws Unavailable if the machine has no redis-server
   */
  static async open(folder: string): Promise<RedisServer> {
    if (spawnSync('redis-server', ['--version']).status !== 0)
      throw new Unavailable('redis-server is not installed; install the package of your distribution');
    const server = new RedisServer(folder, await reservePort());
    await server.start();
    return server;
  }

  get uri(): string {
    return `redis://127.0.0.1:${this.#port}/0`;
  }

  /** Resolves when the server accepts connections. */
  async start(): Promise<void> {
    const args = ['--port', String(this.#port), '--bind', '127.0.0.1', '--dir', this.#folder, ...DURABLE];
    this.#process = spawn('/bin/sh', ['-c', GUARDED, 'sh', ...args], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    await untilListening(this.#port);
  }

  /** Kills it without a shutdown, as a power failure does. Resolves when it has ended. */
  async kill(): Promise<void> {
    const server = this.#process;
    if (!server) return;
    this.#process = undefined;
    const ended = once(server, 'exit');
    server.stdin!.end();
    await ended;
  }
}
