/**
 * The outbox of turn reports: posts what waits to chronosd, one fire at a time and in order, until chronosd has taken
 * it.
 */
import { pathSegment } from '../../wire/identifier.ts';
import { receiptBody, type TurnReport } from '../../wire/receipt.ts';
import type { Clock } from '../clock/clock.ts';
import { below, exchange, reasonOf } from '../http/exchange.ts';
import { plainTransport } from '../http/plain-transport.ts';
import { webhookSigner } from '../identity/webhook-signature.ts';
import type { Logger } from '../log/log.ts';
import { createOutbox, type Delivery, type Outbox, type OutboxStore } from './outbox.ts';

// One post of receipts to chronosd: signed, bounded in time, never redirected.

type Post = {
  /** chronosd's base address. */
  url: string;
  userId: string;
  fireId: string;
  /** In the order in which they happened. */
  reports: readonly TurnReport[];
  /** As `receiptKey` makes it. */
  key: string;
};

/** The status of the answer, or why there was none. */
type Answered = { status: number; reason: string } | { status: undefined; reason: string };

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 300;

/** Posts; never rejects. */
async function postReceipts(post: Post, { clock, signal }: { clock: Clock; signal: AbortSignal }): Promise<Answered> {
  const { url, userId, fireId, reports, key } = post;
  const body = receiptBody(userId, reports);
  const signed = webhookSigner(key)({ id: fireId, timestampSeconds: clock.now() / 1000, body });
  const answer = await exchange(plainTransport, {
    method: 'POST',
    url: below(url, `/v1/fires/${pathSegment(fireId)}/receipts`),
    headers: { ...signed, 'content-type': 'application/json', accept: 'application/json' },
    ...{ body, signal, maxBytes: MAX_BYTES, limit: { clock, ms: TIMEOUT_MS } },
  });
  if (answer.result !== 'answered') return { status: undefined, reason: reasonOf(answer.error) };
  return { status: answer.status, reason: answer.body.toString('utf8').slice(0, SHOWN_CHARACTERS).toWellFormed() };
}

/** A receipt that waits to be posted. */
export type WaitingReceipt = {
  /** Grows with each one that is put in. */
  id: number;
  /** Whose alarm rang. */
  userId: string;
  fireId: string;
  report: TurnReport;
};

/** The port to the receipts that are on disk and have not been taken by chronosd yet. */
export type ReceiptOutbox = {
  /**
   * The first ones behind an id, in the order in which they were put in. Throws `unavailable` when the file cannot be
   * read.
   */
  waiting(page: { after: number; limit: number }): WaitingReceipt[];
  /** Takes receipts out for good; resolves when that is on disk. */
  remove(ids: readonly number[]): Promise<void>;
};

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

const PAGE = 100;
/** As many stages as one post may have. */
const STAGES = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
const LAST_ROUND_MS = 2_000;
/**
 * Fires whose last post was not taken are remembered up to this many; the others are tried sooner than they should be.
 */
const MOST_HELD = 10_000;
/** A receipt that nobody has taken for this long is given up. */
const KEPT_MS = 24 * 3600 * 1000;
/**
 * A fire that is not known yet may be: a wake can be accepted a moment before its database shows it to every replica.
 */
const YOUNG_MS = 60_000;

/**
 * What chronosd's answer means for a receipt.
 *
 * @param status of the answer; `undefined` when there was none
 * @param ageMs how long ago the earliest of the reported stages was
 */
export function deliveryOf(status: number | undefined, ageMs: number, why: string): Delivery {
  if (status !== undefined && status >= 200 && status <= 299) return { result: 'done' };
  if (ageMs >= KEPT_MS) return { result: 'drop', why };
  if (status === undefined || status >= 500 || status === 429 || status === 408)
    return { result: 'later', why, everything: true };
  // Not the receipt's fault: a token that was replaced is known over there in a moment, a clock or a name (Host) can be
  // put right.
  if (status === 401 || status === 403) return { result: 'later', why };
  if (status === 404) return ageMs < YOUNG_MS ? { result: 'later', why } : { result: 'drop', why };
  // A redirect is somebody else's answer.
  return status < 400 ? { result: 'later', why } : { result: 'drop', why };
}

/** The receipts of one fire that wait. */
type Parcel = { id: string; attempts: number; userId: string; fireId: string; receipts: WaitingReceipt[] };

/** Receipts on disk as an outbox of parcels. When a parcel is tried again is kept in memory, on the monotonic clock. */
class Parcels implements OutboxStore<Parcel> {
  readonly #outbox: ReceiptOutbox;
  readonly #held = new Map<string, { attempts: number; notBefore: number }>();
  readonly #handedOut = new Map<string, Parcel>();

  constructor(outbox: ReceiptOutbox) {
    this.#outbox = outbox;
  }

  due(now: number, limit: number): Parcel[] {
    const parcels = new Map<string, Parcel>();
    for (let after = 0; parcels.size < limit; ) {
      const page = this.#outbox.waiting({ after, limit: PAGE });
      for (const receipt of page) {
        const { userId, fireId } = receipt;
        const id = `${userId} ${fireId}`;
        const { attempts, notBefore } = this.#held.get(id) ?? { attempts: 0, notBefore: now };
        const parcel = parcels.get(id);
        if (parcel && parcel.receipts.length < STAGES) parcel.receipts.push(receipt);
        else if (!parcel && notBefore <= now) parcels.set(id, { id, attempts, userId, fireId, receipts: [receipt] });
      }
      if (page.length < PAGE) break;
      after = page.at(-1)!.id;
    }
    for (const [id, parcel] of parcels) this.#handedOut.set(id, parcel);
    return [...parcels.values()];
  }

  nextDue(): number | undefined {
    let next: number | undefined;
    for (const { notBefore } of this.#held.values()) next = Math.min(next ?? notBefore, notBefore);
    return next;
  }

  async done(id: string): Promise<void> {
    const { receipts } = this.#handedOut.get(id)!;
    await this.#outbox.remove(receipts.map((receipt) => receipt.id));
    this.#held.delete(id);
    this.#handedOut.delete(id);
  }

  drop(id: string): Promise<void> {
    return this.done(id);
  }

  later(id: string, at: number): void {
    if (this.#held.size >= MOST_HELD) this.#held.clear();
    this.#held.set(id, { attempts: this.#handedOut.get(id)!.attempts + 1, notBefore: at });
    this.#handedOut.delete(id);
  }
}

/** Makes the sender. Closing it tries once more what waits, for two seconds at most. */
export function createReceiptSender({ outbox, url: urlOf, keyOf, clock, log, random }: ReceiptSenderOptions): Outbox {
  return createOutbox<Parcel>({
    store: new Parcels(outbox),
    async deliver({ userId, fireId, receipts }, signal) {
      const key = keyOf(userId);
      if (key === undefined) return { result: 'drop', why: 'its machine is no more' };
      const reports = receipts.map(({ report }) => report);
      const ageMs = clock.now() - Math.min(...reports.map(({ at }) => at));
      const url = urlOf();
      if (url === undefined) return deliveryOf(undefined, ageMs, 'where chronosd listens is not known yet');
      const { status, reason } = await postReceipts({ url, userId, fireId, reports, key }, { clock, signal });
      return deliveryOf(status, ageMs, status === undefined ? reason : `chronosd answered ${status}: ${reason}`);
    },
    now: () => clock.monotonic(),
    ...{ clock, log, random, concurrency: 1 },
    ...{ firstPauseMs: FIRST_PAUSE_MS, longestPauseMs: LONGEST_PAUSE_MS, lastRoundMs: LAST_ROUND_MS },
    noun: 'a receipt',
    about: ({ fireId: fire_id, userId: user_id, receipts }) => ({
      ...{ fire_id, user_id },
      stages: receipts.map(({ report }) => report.stage),
    }),
  });
}
