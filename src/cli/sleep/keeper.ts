/**
 * Keeps the computer awake for alarms that ask for it: one wake-up is armed a minute before the first of them is due, and
 * the computer is kept awake until their turns have ended. It polls every two seconds and corrects the state, so that
 * changes of alarms, clocks and sleep need no notification.
 */
import { existsSync } from 'node:fs';
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { serviceLocation } from '../service/folders.ts';
import { Awake, HOLD_LIMIT_SECONDS } from './awake.ts';
import {
  type Armed,
  LEAD_MS,
  type NotArmed,
  type WakeAlarm,
  type WakeFiles,
  type WakeRecord,
  wakeFiles,
} from './wake-alarm.ts';
import { wakeAlarm } from './wake-mechanism.ts';

const LOOK_MS = 2000;
/** Delay before a failed wake-up is armed again. */
const AGAIN_MS = 30_000;
/** Time between a delivery and the report that its turn runs, in which the computer must stay awake. */
const GRACE_MS = 10_000;

export type KeeperOptions = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: WakeFiles;
  readonly alarm: WakeAlarm;
  readonly awake: Pick<Awake, 'hold' | 'release' | 'isHeld' | 'loose'>;
  /** The earliest instant that needs an awake computer, perhaps past, and the earliest after a given one. */
  readonly wakings: (after: number) => Promise<{ first?: number; later?: number }>;
  /** Whether the user enabled it. */
  readonly isWanted: () => boolean;
};

export class WakeKeeper {
  readonly #options: KeeperOptions;
  /** Turns of alarms that ask for it. */
  readonly #turns = new Set<string>();
  #armed: Armed | undefined;
  #refused: (NotArmed & { readonly at: number; readonly since: number }) | undefined;
  /** Since when the computer has been needed without a pause, and when it was last: monotonic. */
  #wanted: { since: number; last: number; at: number } | undefined;
  #written = '';
  #cancel: CancelTimer = () => {};
  #look: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    // A wake-up of an earlier process that was killed.
    this.#armed = options.files.read()?.armed;
  }

  start(): void {
    this.#look = this.#lookOnce().finally(() => {
      if (!this.#isClosed) this.#cancel = this.#options.clock.after(LOOK_MS, () => this.start());
    });
  }

  /** A turn of an alarm that asks for it has started, or may have. @param fireId of the occurrence */
  turnBegan(fireId: string): void {
    this.#turns.add(fireId);
  }

  turnEnded(fireId: string): void {
    this.#turns.delete(fireId);
  }

  /** Removes the wake-up and lets the computer sleep. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#look;
    await this.#letGo().catch((err: unknown) => this.#options.log.warn({ err }, 'a wake may be left armed'));
  }

  async #lookOnce(): Promise<void> {
    const { isWanted, log } = this.#options;
    try {
      if (isWanted()) await this.#keep();
      else await this.#letGo();
    } catch (err) {
      log.warn({ err }, 'the wake-up of the computer could not be checked; it is retried');
    }
  }

  async #keep(): Promise<void> {
    const { clock, wakings } = this.#options;
    const soon = clock.now() + LEAD_MS;
    const { first, later } = await wakings(soon);
    await this.#holdWhile(this.#turns.size > 0 || (first !== undefined && first <= soon));
    await this.#arm(later === undefined ? undefined : later - LEAD_MS);
    this.#write();
  }

  async #holdWhile(isWanted: boolean): Promise<void> {
    const { clock, awake } = this.#options;
    const monotonic = clock.monotonic();
    if (isWanted) this.#wanted = { since: monotonic, at: clock.now(), ...this.#wanted, last: monotonic };
    else if (this.#wanted && monotonic - this.#wanted.last >= GRACE_MS) this.#wanted = undefined;
    // A turn that never ends must not keep a laptop awake forever.
    const isDone = !this.#wanted || monotonic - this.#wanted.since >= HOLD_LIMIT_SECONDS * 1000;
    if (isDone) await awake.release();
    else if (!awake.isHeld) await awake.hold();
  }

  async #arm(at: number | undefined): Promise<void> {
    const { alarm, clock, log } = this.#options;
    if (at === undefined) {
      this.#refused = undefined;
      return this.#disarm();
    }
    const refused = this.#refused;
    if (refused && refused.at === at && clock.monotonic() - refused.since < AGAIN_MS) return;
    const was = this.#armed;
    const result = await alarm.arm(at, was, (armed) => {
      this.#armed = armed;
      this.#write(true);
    });
    if ('means' in result) {
      this.#armed = result;
      this.#refused = undefined;
      if (was?.at !== at)
        log.info({ at: formatInstant(at), means: result.means }, 'a wake-up of the computer is armed');
      return;
    }
    this.#armed = undefined;
    this.#refused = { ...result, at, since: clock.monotonic() };
    if (refused?.problem !== result.problem)
      log.warn({ problem: result.problem, remedy: result.remedy }, 'the computer is not woken');
  }

  async #disarm(): Promise<void> {
    if (!this.#armed) return;
    await this.#options.alarm.disarm(this.#armed);
    this.#armed = undefined;
  }

  async #letGo(): Promise<void> {
    this.#refused = undefined;
    this.#wanted = undefined;
    await this.#options.awake.release();
    await this.#disarm();
    if (this.#written !== '' || this.#options.files.read()) this.#options.files.remove();
    this.#written = '';
  }

  #write(isTrying = false): void {
    const { files, awake } = this.#options;
    const { behind, problem, remedy } = this.#refused ?? {};
    const record: WakeRecord = {
      pid: process.pid,
      ...(this.#armed && { armed: this.#armed }),
      ...(isTrying && { trying: true }),
      ...(behind !== undefined && { behind }),
      ...(behind === undefined && problem !== undefined && { problem }),
      ...(behind === undefined && remedy !== undefined && { remedy }),
      ...(awake.isHeld && this.#wanted && { held_since: this.#wanted.at }),
      ...(awake.loose !== undefined && { loose: awake.loose }),
    };
    const text = JSON.stringify(record);
    if (text === this.#written) return;
    files.write(record);
    this.#written = text;
  }
}

/** For this installation, when it is a service with `reveille service wake on`. */
export async function ownKeeper(
  context: CliContext,
  { log, wakings }: Pick<KeeperOptions, 'log' | 'wakings'>,
): Promise<WakeKeeper> {
  const { clock, environment, home } = context;
  const place = serviceLocation(environment, home.path);
  const files = wakeFiles(place);
  return new WakeKeeper({
    ...{ clock, log, files, wakings },
    alarm: await wakeAlarm(place.name, environment, () => clock.now()),
    awake: new Awake(environment, clock),
    isWanted: () => existsSync(files.wanted),
  });
}
