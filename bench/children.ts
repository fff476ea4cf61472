/**
 * Child processes of the benchmark. Each prints one line of JSON when it is ready. All are ended when the benchmark
 * ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

export type ChildOptions = {
  /** Node's arguments: flags, program, program arguments. */
  command: readonly string[];
  env?: Record<string, string>;
  /** The file for standard error. */
  log: string;
};

const TERM_LIMIT_MS = 15_000;

export class Child {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #log: string;
  readonly #exited: Promise<void>;
  readonly #lines: AsyncIterator<string>;

  constructor(name: string, { command, env, log }: ChildOptions) {
    this.name = name;
    this.#log = log;
    const stderr = openSync(log, 'a');
    this.#process = spawn(process.execPath, command, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['pipe', 'pipe', stderr],
      // An own process group: Ctrl-C reaches only the benchmark, which then ends its children in order.
      detached: true,
    });
    closeSync(stderr);
    this.#exited = new Promise((resolve) => this.#process.once('exit', () => resolve()));
    this.#process.stdin!.on('error', () => {});
    this.#lines = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#process.pid!;
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  write(text: string): void {
    this.#process.stdin!.write(text);
  }

  /** The next output line, as JSON. Rejects with the end of the log if the process ends first. */
  async says<T>(): Promise<T> {
    const line = await this.#lines.next();
    if (line.done) throw new Error(`${this.name} ended without an answer:\n${this.logged()}`);
    try {
      return JSON.parse(line.value) as T;
    } catch {
      throw new Error(`${this.name} printed a line that is not JSON: ${line.value}`);
    }
  }

  /** The end of its log. */
  logged(): string {
    return readFileSync(this.#log, 'utf8').slice(-2000).trimEnd();
  }

  /** Resolves when the process has ended by itself. */
  ended(): Promise<void> {
    return this.#exited;
  }

  /** Ends the process: first with a signal it can handle, after a timeout by force. Resolves when it has ended. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.#process.kill('SIGTERM');
    const force = setTimeout(() => this.#process.kill('SIGKILL'), TERM_LIMIT_MS);
    await this.#exited;
    clearTimeout(force);
  }
}
