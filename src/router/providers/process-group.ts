/** A process and its descendants. This router started it, or adopted it from a dead one. */
import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../kit/clock/clock.ts';
import { exitOf, isLedByBubblewrap, signalBubblewrapGroup } from '../../kit/process/bubblewrap.ts';
import { sendSignal } from '../../kit/process/process-info.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isRunning } from './process-table.ts';

/** A process that this router did not start sends it no signal at its end; it is checked this often, milliseconds. */
const WATCH_MS = 250;
/** After SIGKILL the kernel needs a moment; a process that outlives this hangs in the kernel. */
const KILL_MS = 5000;

/** How a process ended, as a phrase that finishes the sentence "the process …". */
type Ending = string;

function endingOf(code: number | null, signal: NodeJS.Signals | null, isWrapped: boolean): Ending {
  const end = exitOf(code, signal, isWrapped);
  return 'code' in end ? `exited with code ${end.code}` : `was ended by ${end.signal}`;
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  sendSignal(-pid, signal);
}

/** Kills one process; harmless when it has ended. */
export function killProcess(pid: number): void {
  sendSignal(pid, 'SIGKILL');
}

export class ProcessGroup {
  /** The leader's pid, which is the group's id. */
  readonly pid: number;
  readonly #clock: Clock;
  readonly #gone = new AbortController();
  readonly #ended = Promise.withResolvers<Ending>();
  /** For a process of another router: its birth. The pid alone does not identify it. */
  #foreignBirth: string | undefined;
  #ending: Ending | undefined;
  /** The reason of the kill. */
  #because: Ending | undefined;
  #unwatch = () => {};

  private constructor(pid: number, clock: Clock) {
    this.pid = pid;
    this.#clock = clock;
  }

  /**
   * @param child started with `detached`, so that it leads its own group; it must have a pid
   * @param wrapped whether it is bubblewrap, which passes on the end of the program
   */
  static started(child: ChildProcess, clock: Clock, isWrapped = false): ProcessGroup {
    const group = new ProcessGroup(child.pid!, clock);
    child.once('exit', (code, signal) => group.#end(endingOf(code, signal, isWrapped)));
    // A remaining process must not keep this one from ending.
    child.unref();
    return group;
  }

  static adopted({ pid, birth }: { pid: number; birth: string }, clock: Clock): ProcessGroup {
    const group = new ProcessGroup(pid, clock);
    group.#foreignBirth = birth;
    group.#watch(birth);
    return group;
  }

  /** Aborts when the leader is known to have ended; the rest of the group is killed at the same time. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves with how the leader ended. */
  get ended(): Promise<Ending> {
    return this.#ended.promise;
  }

  /** How the leader ended; `undefined` while it runs. */
  get ending(): Ending | undefined {
    return this.#ending;
  }

  /**
   * Ends the group: SIGTERM, and after `graceMs` SIGKILL.
   *
   * @throws ReveilleError `internal` when it outlives even that
   */
  async end(graceMs: number): Promise<void> {
    this.#signal('SIGTERM');
    // A stopped process (SIGSTOP) receives it only when it continues.
    this.#signal('SIGCONT');
    if (await this.#endsWithin(graceMs)) return;
    this.#signal('SIGKILL');
    if (await this.#endsWithin(KILL_MS)) return;
    throw new ReveilleError('internal', `process ${this.pid} did not end within ${KILL_MS} ms of SIGKILL`);
  }

  /** Kills the group at once. @param because the phrase for how it ended */
  kill(because: Ending): void {
    if (this.#ending !== undefined) return;
    this.#because ??= because;
    this.#signal('SIGKILL');
  }

  /** Stops the checks of an adopted process. */
  close(): void {
    this.#unwatch();
  }

  #watch(birth: string): void {
    this.#unwatch = this.#clock.after(WATCH_MS, () => {
      if (isRunning(this.pid, birth)) this.#watch(birth);
      else this.#end('ended by itself');
    });
  }

  #end(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = this.#because ?? ending;
    this.#unwatch();
    // A remaining process of the group would be a second daemon, or lock the files of the next one.
    killGroup(this.pid, 'SIGKILL');
    this.#gone.abort(new Error(`the process ${this.#ending}`));
    this.#ended.resolve(this.#ending);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#ending !== undefined) return;
    if (this.#foreignBirth !== undefined && !isRunning(this.pid, this.#foreignBirth)) this.#end('ended by itself');
    else if (signal === 'SIGTERM' && isLedByBubblewrap(this.pid)) signalBubblewrapGroup(this.pid, signal);
    else killGroup(this.pid, signal);
  }

  #endsWithin(limitMs: number): Promise<boolean> {
    if (this.#ending !== undefined) return Promise.resolve(true);
    return new Promise((resolve) => {
      const cancel = this.#clock.after(limitMs, () => resolve(false));
      void this.#ended.promise.then(() => {
        cancel();
        resolve(true);
      });
    });
  }
}
