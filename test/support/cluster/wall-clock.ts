/**
 * A wall clock that can be made to jump while processes run: libfaketime, loaded into them, reads its offset from a
 * file at every look at the clock. Monotonic clocks and timers go on undisturbed.
 */
import { existsSync, globSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where distributions put it: Debian and its children, Fedora, Alpine and Arch. */
const PLACES = [
  '/usr/lib/*/faketime/libfaketime.so.1',
  '/usr/lib{,64}/faketime/libfaketime.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
];

/** The path of libfaketime, or `undefined` where it is not installed. */
export function findFaketime(): string | undefined {
  return PLACES.flatMap((place) => globSync(place)).find((path) => existsSync(path));
}

/** From `realAt` on the clock shows `offsetMs` more than the machine's. */
type Stretch = { realAt: number; offsetMs: number };

export class WallClock {
  readonly #file: string;
  readonly #stretches: Stretch[] = [{ realAt: Number.NEGATIVE_INFINITY, offsetMs: 0 }];

  readonly #machineNow: () => number;

  /**
   * @param folder where the offset is kept, in a file with this number
   * @param machineNow the machine's clock, epoch milliseconds
   */
  constructor(folder: string, number: number, machineNow: () => number = Date.now) {
    this.#machineNow = machineNow;
    this.#file = join(folder, `wall-clock-${number}`);
    this.#write(0);
  }

  /** What a process needs in its environment to go by this clock. */
  environment(): Record<string, string> {
    const library = findFaketime();
    if (library === undefined) throw new Error('libfaketime is not installed');
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Only the clock is in question; the times of files stay as they are.
      NO_FAKE_STAT: '1',
    };
  }

  get offsetMs(): number {
    return this.#stretches.at(-1)!.offsetMs;
  }

  /** Sets the clock to the machine's and so much more (or less). */
  set(offsetMs: number): void {
    this.#write(offsetMs);
    this.#stretches.push({ realAt: this.#machineNow(), offsetMs });
  }

  /** What it shows, epoch milliseconds. */
  now(): number {
    return this.#machineNow() + this.offsetMs;
  }

  /** When, by the machine's clock, this one showed an instant that it did show. */
  whenShown(instant: number): number {
    const now = this.#machineNow();
    const stretch = this.#stretches.findLast(({ realAt, offsetMs }, index) => {
      const until = this.#stretches[index + 1]?.realAt ?? now;
      return instant - offsetMs >= realAt && instant - offsetMs <= until;
    });
    return instant - (stretch?.offsetMs ?? 0);
  }

  /** When, by the machine's clock and from a moment on, this one first showed an instant or a later one. */
  whenReached(instant: number, since: number): number {
    for (const [index, { realAt, offsetMs }] of this.#stretches.entries()) {
      const until = this.#stretches[index + 1]?.realAt ?? Number.POSITIVE_INFINITY;
      const reached = Math.max(instant - offsetMs, realAt, since);
      if (reached < until) return reached;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The latest instant that it has shown within the last so many milliseconds. */
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
