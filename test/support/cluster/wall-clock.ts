/**
 * A wall clock that can jump while processes run: libfaketime, loaded into them, reads its offset from a file at every
 * reading of the clock. Monotonic clocks and timers are not affected.
 */
import { existsSync, globSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Its paths in distributions: Debian and its derivatives, Fedora, Alpine and Arch. */
const PLACES = [
  '/usr/lib/*/faketime/libfaketime.so.1',
  '/usr/lib{,64}/faketime/libfaketime.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
];

/** The path of libfaketime, or `undefined` when it is not installed. */
export function findFaketime(): string | undefined {
  return PLACES.flatMap((place) => globSync(place)).find((path) => existsSync(path));
}

/** From `realAt` on the clock shows `offsetMs` more than the machine's. */
type ClockInterval = { realAt: number; offsetMs: number };

export class WallClock {
  readonly #file: string;
  readonly #stretches: ClockInterval[] = [{ realAt: Number.NEGATIVE_INFINITY, offsetMs: 0 }];

  readonly #machineNow: () => number;

  /**
   * @param folder of the file with the offset, which has this number in its name
   * @param machineNow the machine's clock, epoch milliseconds
   */
  constructor(folder: string, number: number, machineNow: () => number = Date.now) {
    this.#machineNow = machineNow;
    this.#file = join(folder, `wall-clock-${number}`);
    this.#write(0);
  }

  /** The environment of a process with this clock. */
  environment(): Record<string, string> {
    const library = findFaketime();
    if (library === undefined) throw new Error('libfaketime is not installed');
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Only the clock changes; the times of files stay.
      NO_FAKE_STAT: '1',
    };
  }

  get offsetMs(): number {
    return this.#stretches.at(-1)!.offsetMs;
  }

  /** Sets the clock to the machine's plus this offset, which may be negative. */
  set(offsetMs: number): void {
    this.#write(offsetMs);
    this.#stretches.push({ realAt: this.#machineNow(), offsetMs });
  }

  /** Its current time, epoch milliseconds. */
  now(): number {
    return this.#machineNow() + this.offsetMs;
  }

  /** The machine's time at which this clock showed a past instant. */
  whenShown(instant: number): number {
    const now = this.#machineNow();
    const interval = this.#stretches.findLast(({ realAt, offsetMs }, index) => {
      const until = this.#stretches[index + 1]?.realAt ?? now;
      return instant - offsetMs >= realAt && instant - offsetMs <= until;
    });
    return instant - (interval?.offsetMs ?? 0);
  }

  /** The machine's time, from a moment on, at which this clock first showed an instant or a later one. */
  whenReached(instant: number, since: number): number {
    for (const [index, { realAt, offsetMs }] of this.#stretches.entries()) {
      const until = this.#stretches[index + 1]?.realAt ?? Number.POSITIVE_INFINITY;
      const reached = Math.max(instant - offsetMs, realAt, since);
      if (reached < until) return reached;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The latest instant that it has shown within the last `ms` milliseconds. */
  latestWithin(ms: number): number {
    const now = this.#machineNow();
    const ends = this.#stretches.map(({ offsetMs }, index) => {
      const until = Math.min(now, this.#stretches[index + 1]?.realAt ?? now);
      return until < now - ms ? Number.NEGATIVE_INFINITY : until + offsetMs;
    });
    return Math.max(...ends);
  }

  /** A reader must never find the file empty. */
  #write(offsetMs: number): void {
    const seconds = offsetMs / 1000;
    writeFileSync(`${this.#file}.new`, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
