/**
 * MCP over the stdin and stdout of a child process. The child leads its own process group, which ends when the
 * transport is closed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { exitOf, signalBubblewrapGroup } from '../kit/process/bubblewrap.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { sendSignal } from '../kit/process/process-info.ts';
import { isProgram } from '../kit/process/tools.ts';
import { parseUntrustedJson } from '../wire/json.ts';
import type { StdioLink } from './manifest.ts';
import type { RawAnswers } from './raw-answers.ts';
import type { ServerOutput } from './server-log.ts';

/** A longer message ends the connection. Images travel in base64, so this is generous. */
const LONGEST_MESSAGE_BYTES = 10 * 1024 * 1024;
/** The tolerated amount of output that is not a message; beyond it the program is no MCP server. */
const MOST_GARBAGE_BYTES = 256 * 1024;
/** The limit of bytes that the server has not read yet; beyond it nothing more is sent. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024;
/** After the end of stdin, and again after SIGTERM. */
const TERMINATE_MS = 2000;
/** After SIGKILL the kernel needs a moment; a process that outlives this hangs in the kernel. */
const KILL_MS = 5000;
/** Between the end of a process and the end of its pipes, in either order: a descendant may hold them. */
const PIPES_MS = 500;

type StdioTransportOptions = {
  link: StdioLink;
  cwd: string | undefined;
  sandbox: Sandbox | undefined;
  clock: Clock;
  output: ServerOutput;
  answers: RawAnswers;
};

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** The SDK recognizes a transport over pipes by its `pid`. */
  readonly stderr = null;

  readonly #options: StdioTransportOptions;
  readonly #ended = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #isClosed = false;
  #carried = false;
  #hasExited = false;
  #ending: string | undefined;
  #garbageBytes = 0;
  #cancelEnd: CancelTimer = () => {};

  constructor(options: StdioTransportOptions) {
    this.#options = options;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Why the connection has ended; finishes the sentence "the server …". `undefined` while it is open. */
  get ending(): string | undefined {
    return this.#ending;
  }

  /** @throws Error when the program does not exist or cannot be started */
  async start(): Promise<void> {
    const { link, cwd, sandbox, output } = this.#options;
    if (!isProgram(link.command[0], link.env.PATH, cwd)) {
      throw new Error(
        `there is no program ${JSON.stringify(link.command[0])} (its PATH is ${link.env.PATH ?? 'not set'})`,
      );
    }
    output.clearLast();
    const inside = await sandbox?.wrap({
      ...{ command: link.command, cwd, env: link.env, room: link.sandboxView },
      ...(link.writable && { writable: link.writable }),
    });
    if (this.#isClosed) throw new Error('it was stopped');
    this.#carried = inside?.carried ?? false;
    const [program, ...args] = watched(inside === undefined ? link.command : inside.command);
    const child = spawn(program, args, {
      cwd,
      env: link.env,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: HAS_GROUPS,
      windowsHide: true,
    });
    this.#child = child;
    this.#listen(child);
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  }

  #listen(child: ChildProcess): void {
    const { output, clock, answers } = this.#options;
    const read = messageReader(LONGEST_MESSAGE_BYTES, {
      message: (message, line) => {
        if (this.#isClosed) return;
        answers.onReceived(message, line);
        this.onmessage?.(message);
      },
      garbage: (line, bytes) => this.#onGarbage(line, bytes),
      tooLong: () => this.#fail(`sent a message of more than ${LONGEST_MESSAGE_BYTES} bytes`),
    });
    // After the end it is only drained, so that the server does not block in a write.
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!this.#isClosed) read(chunk);
    });
    child.stdout?.once('end', () => {
      // A process that exits closes its stdout first; the exit says more.
      this.#cancelEnd = clock.after(PIPES_MS, () => this.#fail('closed its stdout'));
    });
    child.stderr?.on('data', (chunk: Buffer) => output.stderr(chunk));
    const broken = (error: Error) => {
      if (!this.#isClosed) this.onerror?.(error);
    };
    for (const pipe of [child.stdin, child.stdout, child.stderr, child.stdio[LIFELINE]]) pipe?.on('error', broken);
    child.once('error', (error) => {
      this.#onExit(child, `could not be started: ${error.message}`);
    });
    child.once('exit', (code, signal) => {
      const end = exitOf(code, signal, this.#carried);
      this.#onExit(child, 'code' in end ? `exited with code ${end.code}` : `was ended by ${end.signal}`);
      const cancel = clock.after(PIPES_MS, () => this.#onPipesOver(child));
      child.once('close', () => {
        cancel();
        this.#onPipesOver(child);
      });
    });
  }

  #onGarbage(line: string, bytes: number): void {
    this.#options.output.line('stdout', line);
    this.#garbageBytes += bytes;
    if (this.#garbageBytes > MOST_GARBAGE_BYTES) {
      this.#fail(`wrote more than ${MOST_GARBAGE_BYTES} bytes to stdout that are not MCP messages`);
    }
  }

  #onExit(child: ChildProcess, ending: string): void {
    this.#hasExited = true;
    this.#ending ??= ending;
    // Its remaining descendants, and the watcher.
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  }

  /** The last answer has been read. */
  #onPipesOver(child: ChildProcess): void {
    this.#cancelEnd();
    for (const pipe of child.stdio) pipe?.destroy();
    this.#ended.resolve();
    void this.close();
  }

  /** The connection cannot be used any more. */
  #fail(reason: string): void {
    if (this.#isClosed) return;
    this.#ending ??= reason;
    void this.close();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isClosed || !stdin || this.#hasExited) return Promise.reject(new Error('the server has ended'));
    if (stdin.writableLength > MOST_UNREAD_BYTES)
      return Promise.reject(new Error('the server does not read its stdin'));
    this.#options.answers.onSent(message);
    return write(stdin, `${JSON.stringify(message)}\n`).catch(async (error: unknown) => {
      // A pipe breaks before the end of its process is known, and the exit says more.
      await this.#endsWithin(PIPES_MS);
      throw this.#hasExited ? new Error('the server has ended', { cause: error }) : error;
    });
  }

  /**
   * Ends the connection at once and then the server: closes stdin, sends SIGTERM to the group, then SIGKILL. Resolves
   * when the group has ended.
   */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.onclose?.();
      this.#child?.stdin?.end();
    }
    const child = this.#child;
    if (child?.pid === undefined) return;
    if (await this.#endsWithin(TERMINATE_MS)) return;
    if (this.#carried) signalBubblewrapGroup(child.pid, 'SIGTERM');
    else signalGroup(child.pid, 'SIGTERM');
    if (await this.#endsWithin(TERMINATE_MS)) return;
    signalGroup(child.pid, 'SIGKILL');
    await this.#endsWithin(KILL_MS);
  }

  #endsWithin(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(limitMs, () => resolve(false));
      void this.#ended.promise.then(() => {
        cancel();
        resolve(true);
      });
    });
  }
}

function write(stdin: Writable, line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stdin.write(line, (error) => (error ? reject(error) : resolve()));
  });
}

/** File descriptor of the pipe in the started process. */
const LIFELINE = 3;

/** How long a server may run after this process has ended and its stdin is closed. */
const ORPHAN_SECONDS = 2;

/**
 * A small shell script, because it must cost next to nothing per server. It never evaluates a server's arguments.
 *
 * The watcher ignores the signals that ask the group to end: it kills the processes that ignore them. The shell waits
 * for the server, so that the group keeps its leader and its number while the server runs.
 */
const SCRIPT = [
  `( trap '' TERM HUP INT; exec >/dev/null 2>&1; read -r word <&${LIFELINE}; sleep "$1"; kill -KILL 0 ) &`,
  `exec ${LIFELINE}<&-`,
  'shift',
  'trap : TERM HUP INT',
  '"$@"',
  'exit $?',
].join('\n');

/** Whether this system has process groups and a shell. */
export const HAS_GROUPS = process.platform !== 'win32';

/**
 * The command that runs a server as the leader of a watched group. Spawn it `detached`, with a pipe as
 * {@link LIFELINE}.
 */
export function watched(command: readonly string[]): readonly [string, ...string[]] {
  const [program = '', ...args] = command;
  return HAS_GROUPS ? ['/bin/sh', '-c', SCRIPT, 'sh', String(ORPHAN_SECONDS), ...command] : [program, ...args];
}

/** Sends a signal to a whole group; no effect when it has ended. */
const signalGroup = (leader: number, signal: NodeJS.Signals) => sendSignal(HAS_GROUPS ? -leader : leader, signal);

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

type MessageSink = {
  /** @param line its bytes, without the line end */
  message(message: JSONRPCMessage, line: Buffer): void;
  /** A line that is not a JSON-RPC message. @param bytes of the line */
  garbage(line: string, bytes: number): void;
  /** A line exceeded the limit. Reading stops. */
  tooLong(): void;
};

/** How many characters of an invalid line are shown. */
const SHOWN_BYTES = 512;

/** Makes a function that accepts chunks. Empty lines are skipped. @param longestBytes of one line */
function messageReader(longestBytes: number, sink: MessageSink): (chunk: Buffer) => void {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let isOver = false;

  const read = (line: Buffer) => {
    const text = line.toString('utf8').trim();
    if (text === '') return;
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(parseUntrustedJson(text));
    } catch {
      sink.garbage(line.subarray(0, SHOWN_BYTES).toString('utf8'), line.length);
      return;
    }
    sink.message(message, line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
  };

  return (chunk) => {
    let from = 0;
    while (!isOver && from < chunk.length) {
      const end = chunk.indexOf(NEWLINE, from);
      const piece = chunk.subarray(from, end === -1 ? chunk.length : end);
      from += piece.length + 1;
      waiting.push(piece);
      waitingBytes += piece.length;
      if (waitingBytes > longestBytes) {
        isOver = true;
        waiting = [];
        sink.tooLong();
      } else if (end !== -1) {
        const line = waiting.length === 1 ? piece : Buffer.concat(waiting, waitingBytes);
        waiting = [];
        waitingBytes = 0;
        read(line);
      }
    }
  };
}
