/** A machine with its clocks, and the processes that run on it. */
import type { CancelTimer, Clock } from '../../../src/kit/clock/clock.ts';
import type { Dice } from './dice.ts';
import type { Timeline } from './timeline.ts';

/** The clocks of a machine. Its crystal drives both; its wall clock can be set forward and back. */
export class Machine {
  readonly #timeline: Timeline;
  readonly #start: number;
  /** Drift of the crystal, as a share. */
  readonly drift: number;
  #wallOffset: number;
  /** The reading of the wall clock before its last jump. */
  readonly #jumps: { at: number; wall: number }[] = [];

  /** @param start the start time of the world, epoch ms */
  constructor(timeline: Timeline, { start, skewMs, drift }: { start: number; skewMs: number; drift: number }) {
    this.#timeline = timeline;
    this.#start = start;
    this.#wallOffset = skewMs;
    this.drift = drift;
  }

  /** Epoch ms with fractions. */
  wall(): number {
    return this.#start + this.#wallOffset + this.monotonic();
  }

  monotonic(): number {
    return this.#timeline.now * (1 + this.drift);
  }

  jump(ms: number): void {
    this.#jumps.push({ at: this.#timeline.now, wall: this.wall() });
    this.#wallOffset += ms;
  }

  /** The latest reading of the wall clock within some time: larger than the current one if it was set back since. */
  latestWall(withinMs: number): number {
    const since = this.#timeline.now - withinMs;
    return Math.max(this.wall(), ...this.#jumps.filter(({ at }) => at >= since).map(({ wall }) => wall));
  }
}

type State = 'running' | 'stopped' | 'dead';

/**
 * One process from its start to its end. Every external event (a timer, an answer, a request) reaches it through
 * {@link deliver}. Events wait while it is stopped (SIGSTOP), and are lost once it is dead.
 */
export class Process {
  readonly name: string;
  readonly machine: Machine;
  readonly #timeline: Timeline;
  readonly #dice: Dice;
  #state: State = 'running';
  #waiting: (() => void)[] = [];

  constructor(name: string, machine: Machine, timeline: Timeline, dice: Dice) {
    this.name = name;
    this.machine = machine;
    this.#timeline = timeline;
    this.#dice = dice;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isStopped(): boolean {
    return this.#state === 'stopped';
  }

  /** An event reaches the process. */
  deliver(what: () => void): void {
    if (this.#state === 'running') what();
    else if (this.#state === 'stopped') this.#waiting.push(what);
  }

  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped';
  }

  /** Continues; waiting events arrive now, one after the other. */
  resume(): void {
    if (this.#state !== 'stopped') return;
    this.#state = 'running';
    for (const what of this.#waiting.splice(0)) this.#timeline.after(0, () => this.deliver(what));
  }

  kill(): void {
    this.#state = 'dead';
    this.#waiting = [];
  }

  readonly clock: Clock = {
    now: () => Math.floor(this.machine.wall()),
    monotonic: () => this.machine.monotonic(),
    after: (delayMs, callback): CancelTimer => {
      let cancelled = false;
      // Timers may be up to a millisecond early, and are late when the machine is busy.
      const error = this.#dice.chance(0.05) ? -this.#dice.next() : this.#dice.between(0, 0.5);
      const cancel = this.#timeline.after(Math.max(delayMs, 0) / (1 + this.machine.drift) + error, () =>
        this.deliver(() => {
          if (!cancelled) callback();
        }),
      );
      return () => {
        cancelled = true;
        cancel();
      };
    },
  };
}
