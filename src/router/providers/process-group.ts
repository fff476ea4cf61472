/** A process and its descendants: started by this router, or taken over from one that died. */
import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../kit/clock/clock.ts';
import { endOf, isCarried, signalCarried } from '../../kit/process/carrier.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isRunning } from './process-table.ts';

/** A process that this router did not start sends it no notice of its end; it is looked at this often. */
const WATCH_MS = 250;
/** After SIGKILL the kernel needs a moment; a process that outlives this hangs in the kernel. */
const KILL_MS = 5000;

/** How a process ended, in words that finish the sentence "the process …". */
type Ending = string;

function endingOf(code: number | null, signal: NodeJS.Signals | null, carried: boolean): Ending {
  const end = endOf(code, signal, carried);
  return 'code' in end ? `exited with code ${end.code}` : `was ended by ${end.signal}`;
}

function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (thrown) {
    // ESRCH: nothing is left of it. EPERM: macOS says this of a group of zombies.
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  send(-pid, signal);
}

/** Kills one process; harmless when it is gone. */
export function killProcess(pid: number): void {
  send(pid, 'SIGKILL');
}

export class ProcessGroup {
  /** The leader's pid, which is the group's id. */
  readonly pid: number;
  readonly #clock: Clock;
  readonly #gone = new AbortController();
  readonly #ended = Promise.withResolvers<Ending>();
  /** For a process of another router: its birth, without which its pid means nothing. */
  #foreignBirth: string | undefined;
  #ending: Ending | undefined;
  /** Why it was killed. */
  #because: Ending | undefined;
  #unwatch = () => {};

  private constructor(pid: number, clock: Clock) {
    this.pid = pid;
    this.#clock = clock;
  }

  /**
   * @param child started with `detached`, so that it leads a group of its own; it must have a pid
   * @param carried whether it is bubblewrap, which passes the end of the program on
   */
  static started(child: ChildProcess, clock: Clock, carried = false): ProcessGroup {
    const group = new ProcessGroup(child.pid!, clock);
    child.once('exit', (code, signal) => group.#end(endingOf(code, signal, carried)));
    // A process that is left over must not keep this one from ending.
    child.unref();
    return group;
  }

  static takenOver({ pid, birth }: { pid: number; birth: string }, clock: Clock): ProcessGroup {
    const group = new ProcessGroup(pid, clock);
    group.#foreignBirth = birth;
    group.#watch(birth);
    return group;
  }

  /** Aborts in the moment in which the leader is known to have ended; the rest of the group is killed with it. */
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
    // A process that was stopped (SIGSTOP) hears of it only when it goes on.
    this.#signal('SIGCONT');
    if (await this.#endsWithin(graceMs)) return;
    this.#signal('SIGKILL');
    if (await this.#endsWithin(KILL_MS)) return;
    throw new ReveilleError('internal', `process ${this.pid} did not end within ${KILL_MS} ms of SIGKILL`);
  }

  /** Kills the group at once. @param because how it ended, then */
  kill(because: Ending): void {
    if (this.#ending !== undefined) return;
    this.#because ??= because;
    this.#signal('SIGKILL');
  }

  /** Stops looking at a process that was taken over. */
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
    // Whatever the leader leaves behind would be a second daemon, or hold the first one's files.
    killGroup(this.pid, 'SIGKILL');
    this.#gone.abort(new Error(`the process ${this.#ending}`));
    this.#ended.resolve(this.#ending);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#ending !== undefined) return;
    if (this.#foreignBirth !== undefined && !isRunning(this.pid, this.#foreignBirth)) this.#end('ended by itself');
    else if (signal === 'SIGTERM' && isCarried(this.pid)) signalCarried(this.pid, signal);
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
