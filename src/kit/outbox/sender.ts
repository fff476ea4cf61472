/**
 * Posting receipts from an outbox, in order and one fire at a time, until chronosd has taken them. Turns never wait for it: what cannot
 * be posted stays on disk and is tried again, by the next process too.
 */
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import type { ReceiptOutbox, WaitingReceipt } from './outbox.ts';
import { type Answered, postReceipts } from './post.ts';
import { pauseMs, verdictOf } from './verdict.ts';

export type ReceiptSenderOptions = {
  outbox: ReceiptOutbox;
  /** chronosd's base address; `undefined` while it is not known yet. */
  url: () => string | undefined;
  /** With which key a user's receipts are signed; `undefined` when that machine is no more. */
  keyOf: (userId: string) => string | undefined;
  clock: Clock;
  log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  random: () => number;
};

export type ReceiptSender = {
  /** Begins to post what waits. */
  start(): void;
  /** Something has been put into the outbox. */
  wake(): void;
  /** Whether something waits that has not been tried yet; false after a few seconds, whatever waits. */
  isBusy(): boolean;
  /** Tries once more what waits, for two seconds at most, and ends. */
  close(): Promise<void>;
};

const PAGE = 100;
/** As many stages as one post may have. */
const STAGES = 8;
const BUSY_MS = 5_000;
/** With something new, chronosd is tried no more often than this while it is away. */
const NEWS_EVERY_MS = 500;
const CLOSE_MS = 2_000;
/** Fires whose last post was not taken are remembered up to this many; the others are tried sooner than they should be. */
const MOST_HELD = 10_000;

/** The receipts of one fire that wait. */
type Parcel = { name: string; userId: string; fireId: string; receipts: WaitingReceipt[] };

function parcelsOf(page: readonly WaitingReceipt[]): Parcel[] {
  const parcels = new Map<string, Parcel>();
  for (const receipt of page) {
    const { userId, fireId } = receipt;
    const name = `${userId} ${fireId}`;
    const parcel = parcels.get(name);
    if (!parcel) parcels.set(name, { name, userId, fireId, receipts: [receipt] });
    else if (parcel.receipts.length < STAGES) parcel.receipts.push(receipt);
  }
  return [...parcels.values()];
}

class Sender implements ReceiptSender {
  readonly #options: ReceiptSenderOptions;
  readonly #closing = new AbortController();
  /** Ends a post that the last moments do not suffice for. */
  readonly #over = new AbortController();
  /** Fires that are not to be tried before an instant of the monotonic clock. */
  readonly #held = new Map<string, { failures: number; notBefore: number }>();
  /** In a row, of whoever takes receipts at all. */
  #failures = 0;
  /** How often something came to be sent, and up to which of those times everything has been tried. */
  #arrivals = 0;
  #tried = 0;
  #busyUntil = 0;
  #ring = () => {};
  #loop: Promise<void> | undefined;

  constructor(options: ReceiptSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#arrived();
    this.#loop ??= this.#run();
  }

  wake(): void {
    this.#arrived();
    this.#ring();
  }

  isBusy(): boolean {
    return this.#tried < this.#arrivals && this.#options.clock.monotonic() < this.#busyUntil;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#ring();
    const cancel = this.#options.clock.after(CLOSE_MS, () => this.#over.abort());
    await this.#loop;
    if (this.#loop && !this.#over.signal.aborted) await this.#round();
    cancel();
  }

  #arrived(): void {
    if (!this.isBusy()) this.#busyUntil = this.#options.clock.monotonic() + BUSY_MS;
    this.#arrivals++;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const rung = new AbortController();
      this.#ring = () => rung.abort();
      const arrivals = this.#arrivals;
      const againInMs = await this.#round();
      this.#tried = arrivals;
      if (signal.aborted) return;
      if (againInMs === undefined) await untilAborted(rung.signal);
      else {
        // News is a reason to try again early, but not to hammer at somebody who is away.
        await wait(clock, Math.min(againInMs, NEWS_EVERY_MS), signal);
        await wait(clock, Math.max(0, againInMs - NEWS_EVERY_MS), rung.signal);
      }
    }
  }

  /** Tries all that may be tried; says in how many milliseconds to try again, if anything is left. */
  async #round(): Promise<number | undefined> {
    const { outbox, log } = this.#options;
    let next: number | undefined;
    try {
      for (let after = 0; ; ) {
        const page = outbox.waiting({ after, limit: PAGE });
        for (const parcel of parcelsOf(page)) {
          if (this.#over.signal.aborted) return undefined;
          const heldMs = this.#closing.signal.aborted ? 0 : this.#heldMs(parcel);
          const pause = heldMs > 0 ? heldMs : await this.#send(parcel);
          if (pause === 'away') return this.#awayMs();
          if (pause !== undefined) next = Math.min(next ?? pause, pause);
        }
        if (page.length < PAGE) return next;
        after = page.at(-1)!.id;
      }
    } catch (err) {
      log.warn({ err }, 'the outbox of receipts could not be used; trying again');
      this.#failures++;
      return this.#awayMs();
    }
  }

  #heldMs({ name }: Parcel): number {
    return (this.#held.get(name)?.notBefore ?? 0) - this.#options.clock.monotonic();
  }

  /** Posts a fire's receipts; gives the pause before they are tried again, or that nothing is to be tried for now. */
  async #send(parcel: Parcel): Promise<number | 'away' | undefined> {
    const { clock, log, random, keyOf, url: urlOf } = this.#options;
    const { userId, fireId, receipts } = parcel;
    const key = keyOf(userId);
    if (key === undefined) return await this.#giveUp(parcel, 'its machine is no more');
    const url = urlOf();
    const reports = receipts.map(({ report }) => report);
    const answer: Answered =
      url === undefined
        ? { status: undefined, reason: 'where chronosd listens is not known yet' }
        : await postReceipts({ url, userId, fireId, reports, key }, { clock, signal: this.#over.signal });
    const ageMs = clock.now() - Math.min(...reports.map(({ at }) => at));
    const verdict = verdictOf(answer.status, ageMs);
    if (verdict !== 'all_later') this.#failures = 0;
    switch (verdict) {
      case 'taken':
        await this.#remove(parcel);
        return undefined;
      case 'given_up':
        return await this.#giveUp(parcel, reasonOf(answer));
      case 'later':
        return this.#hold(parcel, answer, pauseMs((this.#held.get(parcel.name)?.failures ?? 0) + 1, random()));
      case 'all_later':
        this.#failures++;
        if (this.#failures === 1)
          log.info({ reason: reasonOf(answer) }, 'chronosd takes no receipts at present; trying again');
        return 'away';
    }
  }

  async #remove({ name, receipts }: Parcel): Promise<void> {
    this.#held.delete(name);
    await this.#options.outbox.remove(receipts.map(({ id }) => id));
  }

  async #giveUp(parcel: Parcel, reason: string): Promise<undefined> {
    const { fireId: fire_id, userId: user_id, receipts } = parcel;
    const stages = receipts.map(({ report }) => report.stage);
    this.#options.log.warn({ fire_id, user_id, stages, reason }, 'a receipt is given up');
    await this.#remove(parcel);
  }

  #hold({ name, fireId, userId }: Parcel, answer: Answered, pause: number): number {
    const failures = (this.#held.get(name)?.failures ?? 0) + 1;
    if (failures === 1) {
      const about = { fire_id: fireId, user_id: userId, reason: reasonOf(answer) };
      this.#options.log.info(about, 'a receipt was not taken; trying again');
    }
    if (this.#held.size >= MOST_HELD) this.#held.clear();
    this.#held.set(name, { failures, notBefore: this.#options.clock.monotonic() + pause });
    return pause;
  }

  #awayMs(): number {
    return pauseMs(this.#failures, this.#options.random());
  }
}

function reasonOf({ status, reason }: Answered): string {
  return status === undefined ? reason : `chronosd answered ${status}: ${reason}`;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

export function createReceiptSender(options: ReceiptSenderOptions): ReceiptSender {
  return new Sender(options);
}
