/**
 * Why a fire is late when no process could send it: chronosd did not run, the computer slept, or the process was
 * stopped or starved (`SIGSTOP`, a debugger, no CPU time).
 *
 * The modification time of a file, updated every few seconds, records until when the previous process ran. A sleep is
 * the difference between the clock that counts sleep and the monotonic clock. A stall is a heartbeat that is late by
 * the monotonic clock. A change of the wall clock is neither.
 */
import { closeSync, openSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { AbsenceReason } from '../../wire/alarm.ts';

type Span = { readonly from: number; readonly to: number; readonly because: AbsenceReason };

const HEARTBEAT_MS = 2000;
/** Tolerance between clocks that are read one after another, and for a late heartbeat. */
const SLACK_MS = 3000;
/**
 * Minimum time between two reads of the clocks. Each late fire would otherwise cost a system call, and no sleep is
 * shorter than this.
 */
const READ_INTERVAL_MS = 100;
/** Recorded intervals. A fire that waits longer than they cover has been late for other reasons since. */
const REMEMBERED = 16;

export class Absence {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #file: string | undefined;
  readonly #spans: Span[] = [];
  #cancel: CancelTimer = () => {};
  #lastReading: { now: number; monotonic: number; sinceBoot: number };

  /**
   * @param folder contains the file; without it only sleeps and stalls are known, because other replicas may have run
   */
  constructor(folder: string | undefined, clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
    this.#file = folder === undefined ? undefined : join(folder, 'alive');
    this.#lastReading = this.#read();
    const before = this.#file === undefined ? undefined : statSync(this.#file, { throwIfNoEntry: false })?.mtimeMs;
    if (before !== undefined) this.#remember({ from: before, to: this.#lastReading.now, because: 'not_running' });
    this.#heartbeat();
  }

  /**
   * Why an occurrence due at that instant did not fire until now; `undefined` when a process could have delivered it.
   * Epoch milliseconds.
   */
  because(dueAt: number): AbsenceReason | undefined {
    // A sleep shows in the wall clock, too. If the wall clock was set back meanwhile, the next heartbeat finds the
    // sleep.
    if (Math.abs(this.#clock.now() - this.#lastReading.now) >= READ_INTERVAL_MS) this.#recordGaps();
    return this.#spans.findLast(({ from, to }) => from <= dueAt && dueAt <= to)?.because;
  }

  close(): void {
    this.#cancel();
    this.#touch();
  }

  #read() {
    const { now, monotonic, sinceBoot } = this.#clock;
    const clock = this.#clock;
    return { now: now.call(clock), monotonic: monotonic.call(clock), sinceBoot: sinceBoot?.call(clock) ?? 0 };
  }

  /** Records a sleep of the computer, or a stall of this process, since the last read. */
  #recordGaps(): void {
    const seen = this.#read();
    const ran = seen.monotonic - this.#lastReading.monotonic;
    const slept = seen.sinceBoot - this.#lastReading.sinceBoot - ran;
    const because = slept > SLACK_MS ? 'slept' : ran > HEARTBEAT_MS + SLACK_MS ? 'stalled' : undefined;
    if (because !== undefined) this.#remember({ from: this.#lastReading.now, to: seen.now, because });
    this.#lastReading = seen;
  }

  #heartbeat(): void {
    this.#recordGaps();
    this.#touch();
    this.#cancel = this.#clock.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  #touch(): void {
    if (this.#file === undefined) return;
    try {
      const at = this.#clock.now() / 1000;
      closeSync(openSync(this.#file, 'a', 0o600));
      utimesSync(this.#file, at, at);
    } catch (err) {
      this.#log.debug({ err }, 'the file that records when this process last ran could not be written');
    }
  }

  #remember(span: Span): void {
    this.#spans.push(span);
    if (this.#spans.length > REMEMBERED) this.#spans.shift();
  }
}
