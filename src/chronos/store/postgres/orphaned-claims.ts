/**
 * Ends claims without a delivery: those of replicas that are gone, and own ones whose answer was lost.
 *
 * A statement that was sent before its replica was given up may still take effect, up to the server's limits on
 * statements and transactions. So the search is repeated, in growing intervals, before the replica is forgotten.
 */

import type { Logger } from '../../../kit/log/log.ts';
import { fireIdOf } from '../../../wire/fire-id.ts';
import { isLook } from '../../alarm/events.ts';
import type { Calendars } from '../../alarm/holidays.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import { interruptedState } from '../difference.ts';
import type { Claim, ClaimKey } from '../store.ts';
import { type Settlement, type Settling, settleAll } from './complete.ts';
import type { DueIndex } from './due-index.ts';
import { errorText } from './postgres-error.ts';
import { NO_PROCESS, type Replica } from './replicas.ts';
import { type Call, statement } from './statement.ts';

/** How many claims are ended in one transaction. */
const STEP = 256;
/** Pauses before the second search and later ones; after the last one the replica is forgotten. */
const FIRST_PAUSE_MS = 1000;
const LAST_PAUSE_MS = 16_000;
/** An own claim without an answer is this old before it counts as lost. */
const LOST_AFTER_MS = 1000;
/** More than one replica can have in flight. */
const MOST_OF_ONE = 32_768;

const CLAIMS = statement(
  'claims_of',
  `
  SELECT owner, alarm_id, scheduled_for, fence FROM progress
  WHERE bucket = $1 AND look_at <= $2 AND holder = $3 AND claimed_at <= $4 LIMIT $5::bigint`,
);

type Wanted = {
  holder: number;
  /** Due at or before this. */
  dueTo: number;
  /** When the attempts count as ended. */
  endedAt: number;
  /** Claimed at or before this. */
  claimedTo?: number;
  limit: number;
  isOrphaned?: (key: ClaimKey) => boolean;
};

type Search = { nextAt: number; pauseMs: number; isDone: boolean };

type Options = Settling & {
  dueIndex: DueIndex;
  replica: Replica;
  log: Logger;
  calendars: Calendars | undefined;
  /** Called when occurrences became due. */
  onDue: () => void;
};

export class OrphanedClaims {
  readonly #options: Options;
  readonly #searches = new Map<number, Search>();
  /** When each claim began that still waits for its answer, by the database's clock. */
  readonly #pending = new Set<{ since: number }>();
  #searching: Promise<void> | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#restart(NO_PROCESS);
  }

  /** Runs a claim of this replica; what it returns is handed out. */
  async during(claim: () => Promise<Claim[]>): Promise<Claim[]> {
    const pending = { since: this.#options.now() };
    this.#pending.add(pending);
    try {
      const claims = await claim();
      this.#options.replica.handedOut(claims);
      return claims;
    } catch (error) {
      this.suspect();
      throw error;
    } finally {
      this.#pending.delete(pending);
    }
  }

  /** A statement of a claim has failed: it may have taken effect, and its answer may be lost. */
  suspect(): void {
    this.#restart(this.#options.replica.holder, LOST_AFTER_MS);
  }

  /** Ends claims of replicas that are gone, and lost ones of this one, where a search is due. Returns at once. */
  search(): void {
    this.#searching ??= this.#searchDue().finally(() => {
      this.#searching = undefined;
    });
  }

  /**
   * Ends all claims of replicas that are gone.
   *
   * @returns how many there were
   */
  async endAll(now: number): Promise<number> {
    await this.settled();
    let ended = 0;
    for (const { holder, claimsTo } of [{ holder: NO_PROCESS, claimsTo: now }, ...this.#options.replica.gone])
      ended += await this.#end({ holder, dueTo: Math.max(now, claimsTo), endedAt: now, limit: STEP });
    return ended;
  }

  /** Resolves when no search is running. */
  async settled(): Promise<void> {
    await this.#searching;
  }

  #restart(holder: number, delayMs = 0): void {
    const nextAt = this.#options.clock.monotonic() + delayMs;
    this.#searches.set(holder, { nextAt, pauseMs: FIRST_PAUSE_MS, isDone: false });
  }

  async #searchDue(): Promise<void> {
    const { replica, clock, log, onDue } = this.#options;
    const { gone } = replica;
    const now = this.#options.now();
    const known = new Map(gone.map((one) => [one.holder, one]));
    for (const { holder } of gone) if (!this.#searches.has(holder)) this.#restart(holder);
    for (const [holder, search] of this.#searches) {
      const isOwn = holder === replica.holder;
      const isGone = known.get(holder);
      if (!isOwn && !isGone && holder !== NO_PROCESS) {
        this.#searches.delete(holder);
        continue;
      }
      if (search.isDone || clock.monotonic() < search.nextAt) continue;
      try {
        const ended = isOwn
          ? await this.#endLost(holder, now)
          : await this.#end({
              holder,
              dueTo: Math.max(now, isGone?.claimsTo ?? now),
              endedAt: isGone?.endedAt ?? now,
              limit: STEP,
            });
        if (ended > 0) log.info({ holder, attempts: ended }, 'claims without a process are ended');
        if (ended > 0) onDue();
        search.isDone = search.pauseMs > LAST_PAUSE_MS;
        if (search.isDone && isGone) await replica.forget(holder);
      } catch (error) {
        log.debug({ reason: errorText(error), holder }, 'claims without a process could not be ended; retrying');
        search.isDone = false;
        continue;
      }
      search.nextAt = clock.monotonic() + search.pauseMs;
      search.pauseMs *= 2;
    }
  }

  /** Ends own claims that were not handed out. */
  #endLost(holder: number, now: number): Promise<number> {
    const { replica } = this.#options;
    return this.#end({
      holder,
      dueTo: now,
      endedAt: now,
      // Later ones may belong to a claim that still waits for its answer.
      claimedTo: Math.min(now, ...[...this.#pending].map(({ since }) => since)) - LOST_AFTER_MS,
      limit: MOST_OF_ONE,
      isOrphaned: (key) => !replica.isHandedOut(key),
    });
  }

  /** Ends claims in all buckets; returns their number. */
  async #end(wanted: Wanted): Promise<number> {
    const { pool, buckets } = this.#options;
    const { holder, dueTo, limit, claimedTo = Number.MAX_SAFE_INTEGER } = wanted;
    const failures: unknown[] = [];
    let ended = 0;
    let open = buckets.all();
    while (open.length > 0) {
      const calls = open.map(
        (bucket): Call => ({ statement: CLAIMS, values: [bucket, dueTo, holder, claimedTo, limit] }),
      );
      const more: number[] = [];
      for (const [index, answer] of (await buckets.query(pool, calls)).entries()) {
        if (answer.status === 'rejected') {
          failures.push(answer.reason);
          continue;
        }
        const keys = answer.value
          .map(([owner, alarmId, scheduledFor, fence]) => {
            const fireId = fireIdOf(alarmId as string, scheduledFor as number);
            return { owner, alarmId, fireId, fence } as ClaimKey;
          })
          .filter((key) => wanted.isOrphaned?.(key) ?? true);
        for (let from = 0; from < keys.length; from += STEP)
          ended += await this.#settle(open[index]!, keys.slice(from, from + STEP), wanted.endedAt);
        if (answer.value.length === limit && limit === STEP) more.push(open[index]!);
      }
      open = more;
    }
    if (failures.length > 0) throw failures[0];
    return ended;
  }

  /** Several replicas may do this at once: each claim is ended by one of them. */
  async #settle(bucket: number, keys: readonly ClaimKey[], endedAt: number): Promise<number> {
    const { dueIndex } = this.#options;
    const settlements = keys.map(
      (key): Settlement => ({
        key,
        attempt: (claimed, alarm) => (isLook(alarm, claimed) ? null : interruptedAttempt(claimed, endedAt)),
        settle: (state) => interruptedState(state, key.fireId, endedAt, this.#options),
      }),
    );
    const results = await settleAll(this.#options, settlements);
    dueIndex.invalidate(bucket);
    return results.filter((result) => result === 'applied').length;
  }
}
