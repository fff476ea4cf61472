/** The MCP server as a real child process, spoken to line by line or by the SDK's client. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { COMPILED, LEAN } from '../../support/quick-start.ts';

const src = (path: string) => new URL(`../../../src/${path}`, import.meta.url).href;

/** What `reveille mcp` does, without a command line around it. Local defaults come from a variable, as JSON. */
const ENTRY = `
import { startChronosMcp } from ${JSON.stringify(src('chronos-mcp/server.ts'))};
import { createLogger } from ${JSON.stringify(src('kit/log/log.ts'))};
const localDefaults = () => JSON.parse(process.env.LOCAL_DEFAULTS ?? '{}');
const mcp = startChronosMcp({ settings: process.env, localDefaults, log: createLogger('mcp', 'warn') });
process.once('SIGTERM', () => mcp.close());
await mcp.closed;
`;

export type McpEnv = Readonly<Record<string, string>>;

/** Command line of the server, for the SDK's `StdioClientTransport`. */
export function mcpCommand(env: McpEnv): { command: string; args: string[]; env: Record<string, string>; cwd: string } {
  return {
    command: process.execPath,
    args: [...LEAN, '--input-type=module', '--eval', ENTRY],
    env: { ...env, ...COMPILED },
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
  };
}

export type JsonRpcAnswer = {
  id?: unknown;
  error?: { code: number; message: string };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  result?: any;
};

export type McpProcess = {
  readonly child: ChildProcessWithoutNullStreams;
  /** Writes one line. */
  write(line: string | Buffer): void;
  /** The next line of stdout, as text. */
  nextLine(): Promise<string>;
  /** Writes a request and returns its answer, whatever other lines come before. */
  request(method: string, paramsJson: string): Promise<{ line: string; answer: JsonRpcAnswer }>;
  /** Performs the handshake of 2025. */
  initialize(): Promise<JsonRpcAnswer>;
  /** Unread lines of stdout. */
  unread(): readonly string[];
  stderr(): string;
  /** Closes stdin and waits for the exit code. */
  end(): Promise<number | null>;
  kill(): void;
};

export function spawnMcp(env: McpEnv): McpProcess {
  const { command, args, cwd, env: all } = mcpCommand(env);
  const child = spawn(command, args, { cwd, env: all, stdio: ['pipe', 'pipe', 'pipe'] });
  // `close` comes after the last of stderr.
  const exited = once(child, 'close');
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const lines: string[] = [];
  const waiting: (() => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    for (const wake of waiting.splice(0)) wake();
  });
  child.stdin.on('error', () => {});
  let lastId = 0;

  const take = async (wanted: (line: string) => boolean): Promise<string> => {
    for (;;) {
      const at = lines.findIndex(wanted);
      if (at !== -1) return lines.splice(at, 1)[0]!;
      await Promise.race([
        new Promise<void>((resolve) => waiting.push(resolve)),
        exited.then(() => Promise.reject(new Error(`the server has exited: ${errors}`))),
      ]);
    }
  };

  const mcp: McpProcess = {
    child,
    write: (line) => {
      child.stdin.write(line);
      child.stdin.write('\n');
    },
    nextLine: () => take(() => true),
    request: async (method, paramsJson) => {
      const id = ++lastId;
      mcp.write(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${paramsJson}}`);
      const line = await take((candidate) => (JSON.parse(candidate) as JsonRpcAnswer).id === id);
      return { line, answer: JSON.parse(line) as JsonRpcAnswer };
    },
    initialize: async () => {
      const { answer } = await mcp.request(
        'initialize',
        '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}',
      );
      mcp.write('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      return answer;
    },
    unread: () => lines,
    stderr: () => errors,
    end: async () => {
      child.stdin.end();
      const [code] = (await exited) as [number | null];
      return code;
    },
    kill: () => {
      child.kill('SIGKILL');
    },
  };
  return mcp;
}
