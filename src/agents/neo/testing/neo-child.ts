/** Neo as a child process that a test can kill. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { COMPILED, LEAN } from '../../../../test/support/quick-start.ts';
import { TOKEN } from './workbench.ts';

const ENTRY = fileURLToPath(import.meta.resolve('./neo-process.fixture.ts'));

export type NeoChild = {
  readonly url: string;
  readonly process: ChildProcess;
  /** Resolves with the output on its fourth descriptor, when that is closed. */
  portOutput: Promise<string>;
  /** Its stderr output so far. */
  log(): string;
  /** Sends the signal and resolves with the exit status when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>;
};

/**
 * Starts Neo over a data folder; resolves when it accepts requests.
 *
 * @param wrap a command and arguments that run the one appended to them
 * @throws Error with its stderr output when it ends before
 */
export async function neoChild(
  dataDir: string,
  env: Record<string, string> = {},
  wrap: readonly string[] = [],
): Promise<NeoChild> {
  const [command = process.execPath, ...args] = [...wrap, process.execPath, ...LEAN, ENTRY];
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH,
      NEO_DATA_DIR: dataDir,
      NEO_DAEMON_TOKEN: TOKEN,
      NEO_PORT: '0',
      // Tests of tool servers start their own.
      NEO_MANIFEST: 'none',
      ...COMPILED,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const portOutput = text(child.stdio[3] as Readable);
  let log = '';
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  const ready = await Promise.race([once(child.stdout!, 'data'), closed.then(() => undefined)]);
  if (!ready) throw new Error(log.trim());
  const { port } = JSON.parse(String(ready[0])) as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    process: child,
    portOutput,
    log: () => log,
    async end(signal) {
      child.kill(signal);
      const [status] = await closed;
      return status;
    },
  };
}
