/**
 * The database's clock, as seen from here. Replicas on different machines must agree about what is due, so instants are
 * compared with the one clock that they share.
 *
 * A question that leaves at s and whose answer T is here at e (both on this machine's monotonic clock) says: at the
 * moment x the database's clock shows between T + (x − e) and T + (x − s). We go by the lower end, so that nothing is
 * ever early; the answer that came back fastest makes it late by the least. Counting on from there with the monotonic
 * clock, a jump of this machine's wall clock moves nothing.
 */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Executor } from './pool.ts';
import { sayingOf } from './postgres-error.ts';
import { statement } from './statement.ts';

const ASK = statement('clock', 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS DOUBLE PRECISION)');

const QUESTIONS = 5;
/** Crystals drift by some parts in a hundred thousand: a millisecond or so in this time. */
const REPEAT_MS = 30_000;
/**
 * The two local clocks may part by so much before the cause is looked into: a jump of one, or a suspend of the machine.
 */
const PARTING_MS = 100;

type Reading = {
  /** What the database's clock showed, at the least, at `monotonic`. */
  instant: number;
  monotonic: number;
  wall: number;
  /** How long the question took: by so much the database's clock may be ahead of `instant`. */
  tripMs: number;
};

export class DatabaseClock {
  readonly #executor: Executor;
  readonly #clock: Clock;
  readonly #log: Logger;
  #reading: Reading;
  #measuring: Promise<void> | undefined;
  #timer: CancelTimer | undefined;
  #stopped = false;

  /** Shows this machine's time until the first {@link measure}. */
  constructor(executor: Executor, clock: Clock, log: Logger) {
    this.#executor = executor;
    this.#clock = clock;
    this.#log = log;
    this.#reading = { instant: clock.now(), monotonic: clock.monotonic(), wall: clock.now(), tripMs: 0 };
  }

  /** Epoch milliseconds, never ahead of the database's clock as far as the last comparison still holds. */
  now(): number {
    const { instant, monotonic, wall } = this.#reading;
    const elapsed = this.#clock.monotonic() - monotonic;
    if (Math.abs(this.#clock.now() - wall - elapsed) > PARTING_MS) this.remeasure();
    return Math.floor(instant + elapsed);
  }

  /** Compares the clocks, and again every {@link REPEAT_MS} until {@link stop}. */
  async start(): Promise<void> {
    await this.#measure();
    this.#again();
  }

  /** Compares the clocks soon; a failure is left to the next time. */
  remeasure(): void {
    if (this.#measuring || this.#stopped) return;
    // At most one attempt until the clocks part again, should the database not answer.
    this.#reading = { ...this.#reading, ...this.#counted() };
    this.#measuring = this.#measure()
      .catch((error: unknown) =>
        this.#log.debug({ reason: sayingOf(error) }, 'the clocks could not be compared; trying again later'),
      )
      .finally(() => {
        this.#measuring = undefined;
      });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.();
    await this.#measuring;
  }

  /** The reading carried forward to this moment. */
  #counted(): Pick<Reading, 'instant' | 'monotonic' | 'wall'> {
    const monotonic = this.#clock.monotonic();
    const instant = this.#reading.instant + (monotonic - this.#reading.monotonic);
    return { instant, monotonic, wall: this.#clock.now() };
  }

  #again(): void {
    this.#timer = this.#clock.after(REPEAT_MS, () => {
      this.remeasure();
      this.#again();
    });
  }

  async #measure(): Promise<void> {
    let best: Reading | undefined;
    for (let question = 0; question < QUESTIONS; question++) {
      const asked = this.#clock.monotonic();
      const [row] = await this.#executor.query(ASK, []);
      const monotonic = this.#clock.monotonic();
      const reading = { instant: row![0] as number, monotonic, wall: this.#clock.now(), tripMs: monotonic - asked };
      if (!best || reading.tripMs < best.tripMs) best = reading;
    }
    if (best) this.#take(best);
  }

  /** A slow answer says little: where it agrees with what a quicker one said, that one still stands. */
  #take(reading: Reading): void {
    const shown = this.#reading.instant + (reading.monotonic - this.#reading.monotonic);
    const agrees = shown >= reading.instant && shown <= reading.instant + reading.tripMs;
    const slow = this.#reading.tripMs > 0 && reading.tripMs > 2 * this.#reading.tripMs && reading.tripMs > 1;
    if (agrees && slow) {
      this.#reading = { ...this.#reading, ...this.#counted() };
      return;
    }
    this.#reading = reading;
    this.#log.debug(
      { ahead_ms: Math.round(reading.instant - reading.wall), trip_ms: reading.tripMs },
      "compared with the database's clock",
    );
  }
}
