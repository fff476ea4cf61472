/**
 * MCP over the stdin and stdout of a child that leads a process group of its own, and is gone when the transport is
 * closed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { endOf, signalCarried } from '../kit/process/carrier.ts';
import { isProgram } from '../kit/process/program.ts';
import type { Walls } from '../kit/process/separation.ts';
import { parseForeignJson } from '../wire/json.ts';
import type { StdioLink } from './manifest.ts';
import type { RawAnswers } from './raw-answers.ts';
import type { ServerLog } from './server-log.ts';

/** A message of more bytes ends the connection. Images travel in base64, so this is generous. */
const LONGEST_MESSAGE_BYTES = 10 * 1024 * 1024;
/** So much of what is no message is put up with; then it is no MCP server. */
const MOST_GARBAGE_BYTES = 256 * 1024;
/** What a server has not read yet; one that reads nothing gets no more. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024;
/** After the end of stdin, and again after SIGTERM. */
const PATIENCE_MS = 2000;
/** After SIGKILL the kernel needs a moment; a process that outlives this hangs in the kernel. */
const KILL_MS = 5000;
/** Between the end of a process and that of its pipes, either way: a descendant may hold them. */
const PIPES_MS = 500;

type StdioTransportOptions = {
  link: StdioLink;
  cwd: string | undefined;
  walls: Walls | undefined;
  clock: Clock;
  output: ServerLog;
  answers: RawAnswers;
};

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** With `pid`, what the SDK knows a transport over pipes by. */
  readonly stderr = null;

  readonly #options: StdioTransportOptions;
  readonly #gone = Promise.withResolvers<void>();
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

  /** Why the connection is over, in words that finish the sentence "the server …"; `undefined` while it is not. */
  get ending(): string | undefined {
    return this.#ending;
  }

  /** @throws Error when there is no such program or it cannot be started */
  async start(): Promise<void> {
    const { link, cwd, walls, output } = this.#options;
    if (!isProgram(link.command[0], link.env.PATH, cwd)) {
      throw new Error(
        `there is no program ${JSON.stringify(link.command[0])} (its PATH is ${link.env.PATH ?? 'not set'})`,
      );
    }
    output.begin();
    const inside = await walls?.around({
      ...{ command: link.command, cwd, env: link.env, room: link.room },
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
        answers.came(message, line);
        this.onmessage?.(message);
      },
      garbage: (line, bytes) => this.#onGarbage(line, bytes),
      tooLong: () => this.#fail(`sent a message of more than ${LONGEST_MESSAGE_BYTES} bytes`),
    });
    // After the end it is only emptied, so that the server does not hang in a write.
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!this.#isClosed) read(chunk);
    });
    child.stdout?.once('end', () => {
      // A process that ends closes its stdout first, and its exit says more.
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
      const end = endOf(code, signal, this.#carried);
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
      this.#fail(`wrote more than ${MOST_GARBAGE_BYTES} bytes to stdout that are no MCP messages`);
    }
  }

  #onExit(child: ChildProcess, ending: string): void {
    this.#hasExited = true;
    this.#ending ??= ending;
    // What it leaves behind, and the watcher.
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
  }

  /** The last answer has been read. */
  #onPipesOver(child: ChildProcess): void {
    this.#cancelEnd();
    for (const pipe of child.stdio) pipe?.destroy();
    this.#gone.resolve();
    void this.close();
  }

  /** The connection is of no use any more. */
  #fail(why: string): void {
    if (this.#isClosed) return;
    this.#ending ??= why;
    void this.close();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isClosed || !stdin || this.#hasExited) return Promise.reject(new Error('the server is gone'));
    if (stdin.writableLength > MOST_UNREAD_BYTES)
      return Promise.reject(new Error('the server does not read its stdin'));
    this.#options.answers.sent(message);
    return write(stdin, `${JSON.stringify(message)}\n`).catch(async (error: unknown) => {
      // A pipe breaks before its process is known to have ended, and how it ended says more.
      await this.#goneWithin(PIPES_MS);
      throw this.#hasExited ? new Error('the server is gone', { cause: error }) : error;
    });
  }

  /**
   * Ends the connection at once and the server after it: stdin is closed, then the group is asked by SIGTERM, then
   * killed. Resolves when nothing is left of it.
   */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.onclose?.();
      this.#child?.stdin?.end();
    }
    const child = this.#child;
    if (child?.pid === undefined) return;
    if (await this.#goneWithin(PATIENCE_MS)) return;
    if (this.#carried) signalCarried(child.pid, 'SIGTERM');
    else signalGroup(child.pid, 'SIGTERM');
    if (await this.#goneWithin(PATIENCE_MS)) return;
    signalGroup(child.pid, 'SIGKILL');
    await this.#goneWithin(KILL_MS);
  }

  #goneWithin(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(limitMs, () => resolve(false));
      void this.#gone.promise.then(() => {
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

/** How long a server has, after we are gone and its stdin has ended, until it is killed. */
const FAREWELL_SECONDS = 2;

/**
 * A small shell script, because it must cost next to nothing per server. It never sees a server's arguments as anything
 * but words.
 *
 * The watcher does not mind the signals that ask the group to end: it is what kills those who do not listen. The shell
 * itself waits for the server, so that the group has its leader, and its number, for as long as the server runs.
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
 * The command that runs a server as the head of a watched group; to be spawned `detached`, with a pipe as {@link
 * LIFELINE}.
 */
export function watched(command: readonly string[]): readonly [string, ...string[]] {
  const [program = '', ...args] = command;
  return HAS_GROUPS ? ['/bin/sh', '-c', SCRIPT, 'sh', String(FAREWELL_SECONDS), ...command] : [program, ...args];
}

/** Sends a signal to a whole group; harmless when nothing is left of it. */
function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(HAS_GROUPS ? -leader : leader, signal);
  } catch (thrown) {
    // ESRCH: nothing is left of it. EPERM: macOS says this of a group of zombies.
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

type MessageSink = {
  /** @param line its bytes, without the line end */
  message(message: JSONRPCMessage, line: Buffer): void;
  /** A line that is no JSON-RPC message. @param bytes of the line */
  garbage(line: string, bytes: number): void;
  /** A line grew beyond the limit. Nothing is read any more. */
  tooLong(): void;
};

/** What of a line that is no message is worth showing. */
const SHOWN_BYTES = 512;

/**
 * Makes a function to feed chunks to. Empty lines are passed over.
 *
 * @param longestBytes of one line
 */
function messageReader(longestBytes: number, sink: MessageSink): (chunk: Buffer) => void {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let isOver = false;

  const read = (line: Buffer) => {
    const text = line.toString('utf8').trim();
    if (text === '') return;
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(parseForeignJson(text));
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
