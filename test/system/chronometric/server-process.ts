/** `reveille chronometric` as a real child process, driven line by line. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..', '..');

/** A user's files: a home with a profile and sessions in it. Removed after the test. */
export type Person = { readonly home: string; readonly profile: string; readonly dataDir: string };

export function personOf(t: TestContext): Person {
  const home = mkdtempSync(join(tmpdir(), 'reveille-person-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 3 }));
  return { home, profile: join(home, 'profile.yaml'), dataDir: join(home, 'time') };
}

export type ServerChanges = {
  /** Flags of the command itself. */
  flags?: readonly string[];
  /** Flags for Node itself. */
  nodeFlags?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** The command that runs Node, such as `unshare`. */
  under?: readonly string[];
  zone?: string;
};

export type ServerCommand = { command: string; args: string[]; env: Record<string, string> };

/** How to start it, for the SDK's `StdioClientTransport` and the inspector as well. */
export function serverCommand(person: Person, changes: ServerChanges = {}): ServerCommand {
  const { flags = [], nodeFlags = [], env = {}, under = [], zone = 'Europe/Berlin' } = changes;
  const [command, ...args] = [
    ...under,
    process.execPath,
    ...nodeFlags,
    join(ROOT, 'bin', 'reveille.mjs'),
    'chronometric',
    '--data-dir',
    person.dataDir,
    ...flags,
  ];
  const own = {
    PATH: process.env.PATH ?? '',
    HOME: person.home,
    REVEILLE_HOME: join(person.home, '.reveille'),
    TZ: zone,
  };
  return { command: command!, args, env: { ...own, ...env } };
}

export type Answer = {
  id?: unknown;
  error?: { code: number; message: string };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  result?: any;
};

export type ServerProcess = {
  readonly child: ChildProcessWithoutNullStreams;
  write(line: string): void;
  request(method: string, params: object): Promise<Answer>;
  /** The result of a tool, its text read as JSON, or the protocol error in its place. */
  call(name: string, args?: unknown): Promise<ToolResult>;
  /** Everything on stdout so far. */
  stdout(): string;
  stderr(): string;
  /** Closes stdin and waits for the exit. */
  end(): Promise<number | null>;
  exited: Promise<number | null>;
};

export type ToolResult = {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  structured?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  parsed?: any;
  isError: boolean;
  protocolError?: { code: number; message: string };
};

/** Starts it and performs the handshake of 2025. It is killed after the test if it has not ended by then. */
export async function startServer(t: TestContext, person: Person, changes: ServerChanges = {}): Promise<ServerProcess> {
  const { command, args, env } = serverCommand(person, changes);
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = once(child, 'close').then(([status]) => status as number | null);
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  let written = '';
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdin.on('error', () => {});
  const waiting = new Map<number, (answer: Answer) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    written += `${line}\n`;
    const answer = JSON.parse(line) as Answer;
    waiting.get(answer.id as number)?.(answer);
  });
  let lastId = 0;
  const server: ServerProcess = {
    child,
    exited,
    write: (line) => child.stdin.write(`${line}\n`),
    request(method, params) {
      const id = ++lastId;
      server.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      const ended = exited.then((status) =>
        Promise.reject(new Error(`the server has ended with ${status}: ${errors}`)),
      );
      return Promise.race([new Promise<Answer>((resolve) => waiting.set(id, resolve)), ended]);
    },
    async call(name, given) {
      const { result, error } = await server.request('tools/call', {
        name,
        ...(given === undefined ? {} : { arguments: given }),
      });
      if (error) return { isError: true, protocolError: error };
      const json = JSON.parse(result.content[0].text);
      return { parsed: json, isError: result.isError === true, structured: result.structuredContent };
    },
    stdout: () => written,
    stderr: () => errors,
    end() {
      child.stdin.end();
      return exited;
    },
  };
  await server.request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '0' },
  });
  server.write('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return server;
}
