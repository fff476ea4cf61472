/**
 * An estimate of the database's clock. Replicas on different machines must agree about due instants, so instants are
 * compared with the clock that they share.
 *
 * A query is sent at s, and its answer T arrives at e, both on this machine's monotonic clock. Then at moment x the
 * database's clock shows between T + (x − e) and T + (x − s). The estimate is the lower end, so that nothing is early.
 * The fastest answer causes the least lateness. The monotonic clock advances the estimate, so that a jump of this
 * machine's wall clock has no effect.
 */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Executor } from './pool.ts';
import { errorText } from './postgres-error.ts';
import { statement } from './statement.ts';

const ASK = statement('clock', 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS DOUBLE PRECISION)');

const QUESTIONS = 5;
/** Quartz clocks drift by some parts in a hundred thousand, about a millisecond in this time. */
const REPEAT_MS = 30_000;
/**
 * If the two local clocks diverge by more than this, the clocks are compared again: one has jumped, or the machine was
 * suspended.
 */
const PARTING_MS = 100;

type Reading = {
  /** The lowest possible value of the database's clock at `monotonic`. */
  instant: number;
  monotonic: number;
  wall: number;
  /** Duration of the query: the database's clock is at most this far ahead of `instant`. */
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

  /** Uses this machine's time until the first {@link measure}. */
  constructor(executor: Executor, clock: Clock, log: Logger) {
    this.#executor = executor;
    this.#clock = clock;
    this.#log = log;
    this.#reading = { instant: clock.now(), monotonic: clock.monotonic(), wall: clock.now(), tripMs: 0 };
  }

  /** Epoch milliseconds, never ahead of the database's clock while the last comparison is valid. */
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

  /** Compares the clocks soon; after a failure the next comparison is the regular one. */
  remeasure(): void {
    if (this.#measuring || this.#stopped) return;
    // At most one attempt until the clocks diverge again, if the database does not answer.
    this.#reading = { ...this.#reading, ...this.#counted() };
    this.#measuring = this.#measure()
      .catch((error: unknown) =>
        this.#log.debug({ reason: errorText(error) }, 'the clocks could not be compared; retrying later'),
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

  /** The reading advanced to this moment. */
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
      const sentAt = this.#clock.monotonic();
      const [row] = await this.#executor.query(ASK, []);
      const monotonic = this.#clock.monotonic();
      const reading = { instant: row![0] as number, monotonic, wall: this.#clock.now(), tripMs: monotonic - sentAt };
      if (!best || reading.tripMs < best.tripMs) best = reading;
    }
    if (best) this.#take(best);
  }

  /** A slow answer is imprecise: when it agrees with an earlier faster one, that one stays in use. */
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
