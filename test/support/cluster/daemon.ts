/** One daemon of the cluster: a real process that is started, stopped, continued and killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { eventually } from '../eventually.ts';
import { PROGRAM, START_LIMIT_MS } from './processes.ts';

export type DaemonPlan = {
  /** As in `chronosd-0`; for messages. */
  name: string;
  /** The arguments of `reveille`. */
  command: readonly string[];
  env: Readonly<Record<string, string>>;
  /** The address of `/readyz` and `/healthz`. */
  url: string;
  logFile: string;
};

/** A drain that takes longer than this has hung, and is killed. */
const END_LIMIT_MS = 35_000;

const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export class Daemon {
  readonly name: string;
  readonly url: string;
  readonly #plan: DaemonPlan;
  #child: ChildProcess | undefined;
  #stopped = false;

  constructor(plan: DaemonPlan) {
    this.name = plan.name;
    this.url = plan.url;
    this.#plan = plan;
  }

  get running(): boolean {
    const child = this.#child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Whether it runs and has not been stopped by {@link suspend}. */
  get awake(): boolean {
    return this.running && !this.#stopped;
  }

  /** Starts it without waiting for more. */
  launch(): void {
    const { command, env, logFile } = this.#plan;
    // The child writes to the file itself, so that its last output is there after any kind of end.
    const log = openSync(logFile, 'a');
    const child = spawn(process.execPath, [PROGRAM, ...command, '--json'], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'ignore', log],
    });
    closeSync(log);
    living.add(child);
    child.once('exit', () => living.delete(child));
    this.#child = child;
    this.#stopped = false;
  }

  /** Starts it and waits until it reports that it is ready. */
  async start(): Promise<void> {
    this.launch();
    await eventually(`${this.name} is ready`, () => this.isReady(), START_LIMIT_MS);
  }

  /** @throws when the process has ended, with the end of its log */
  async isReady(): Promise<boolean> {
    if (!this.running)
      throw new Error(`${this.name} has ended:\n${readFileSync(this.#plan.logFile, 'utf8').slice(-2000)}`);
    return await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(2000) }).then(
      (answer) => answer.ok,
      () => false,
    );
  }

  /** `kill -9`; resolves when the process is gone. */
  kill(): Promise<void> {
    return this.#signal('SIGKILL');
  }

  /** SIGSTOP: the process stops, and no other process is notified. */
  suspend(): void {
    this.#child!.kill('SIGSTOP');
    this.#stopped = true;
  }

  /** SIGCONT: the process continues. */
  resume(): void {
    this.#child!.kill('SIGCONT');
    this.#stopped = false;
  }

  /** SIGTERM, as an operator would, and waits. */
  async end(): Promise<void> {
    if (this.#stopped) this.resume();
    const over = AbortSignal.timeout(END_LIMIT_MS);
    const hung = new Promise<'hung'>((resolve) => over.addEventListener('abort', () => resolve('hung')));
    if ((await Promise.race([this.#signal('SIGTERM'), hung])) === 'hung') await this.kill();
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || !this.running) return;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    await exited;
  }
}
