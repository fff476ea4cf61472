/**
 * Replicas: which process holds a claim, and whether that process lives.
 *
 * A replica has one row, and proves every half second that it lives. One that has not done so for two seconds is given
 * up: another replica marks its row, and all others end its claims. The mark is a conditional write of the row, and so is
 * the proof: one of them comes first, and a marked replica never lives again. It draws another holder and goes on with
 * that.
 *
 * A replica that cannot know whether it was given up claims nothing. It knows for two seconds from the start of its last
 * proof, by its monotonic clock. Others watch by their own monotonic clocks, too: a database that was away for a while,
 * or whose clock jumped, must not make everyone give up everyone else.
 */
import { randomInt } from 'node:crypto';
import { hostname } from 'node:os';
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Claim, ClaimKey } from '../store.ts';
import { parseAddress } from './address.ts';
import { PrimaryPool } from './pool.ts';
import { errorText } from './postgres-error.ts';
import { statement } from './statement.ts';

/** How long a proof of life is valid. */
export const VALID_MS = 2000;
const PROOF_EVERY_MS = 500;
/** Interval after a proof that failed. */
const RETRY_MS = 250;
/** A replica is given up only by one that saw no proof of it for this time, without a gap in its own proofs. */
const WATCHED_MS = VALID_MS - PROOF_EVERY_MS;
const GAP_MS = 2 * PROOF_EVERY_MS;
/** The holder of claims that no process of this version made. */
export const NO_PROCESS = 0;
/** Random integers are below this. */
const HOLDERS = 2 ** 47;

const NOW_MS = 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)';

const REGISTER = statement(
  'replica_register',
  `INSERT INTO replicas (holder, name, alive_until, claims_to) VALUES ($1, $2, ${NOW_MS} + ${VALID_MS}, ${NOW_MS} + ${VALID_MS})`,
);

/** Proves that a replica lives, unless it was given up, and reads the rows of all. */
const PROVE = statement(
  'replica_prove',
  `
  WITH mine AS (
    UPDATE replicas SET alive_until = ${NOW_MS} + ${VALID_MS}, claims_to = GREATEST(claims_to, ${NOW_MS} + ${VALID_MS})
    WHERE holder = $1 AND given_up_at IS NULL
    RETURNING holder, alive_until, claims_to, given_up_at
  )
  SELECT ${NOW_MS}, holder, alive_until, claims_to, given_up_at FROM mine
  UNION ALL
  SELECT ${NOW_MS}, holder, alive_until, claims_to, given_up_at FROM replicas WHERE holder <> $1`,
);

/**
 * Gives a replica up that has proved nothing since it was read. A row that is being written or is locked is skipped:
 * waiting for it would delay this replica's own proof.
 */
const GIVE_UP = statement(
  'replica_give_up',
  `
  UPDATE replicas SET given_up_at = ${NOW_MS}
  WHERE holder = (
    SELECT holder FROM replicas WHERE holder = $1 AND alive_until = $2 AND given_up_at IS NULL FOR UPDATE SKIP LOCKED)
  RETURNING given_up_at`,
);

const LEAVE = statement(
  'replica_leave',
  `UPDATE replicas SET given_up_at = ${NOW_MS} WHERE holder = $1 AND given_up_at IS NULL`,
);

const FORGET = statement('replica_forget', 'DELETE FROM replicas WHERE holder = $1 AND given_up_at IS NOT NULL');

/** A replica that was given up. */
export type GoneReplica = {
  holder: number;
  /** When its claims count as ended. */
  endedAt: number;
  /** Nothing that it claimed is due after this. */
  claimsTo: number;
};

/** What a replica may claim as. */
export type Standing = {
  holder: number;
  /** A claim after this instant of the database's clock has no effect. */
  until: number;
};

export type ReplicaOptions = { uri: string; clock: Clock; log: Logger };

const draw = () => randomInt(1, HOLDERS);
const nameOf = ({ owner, fireId, fence }: ClaimKey) => `${owner} ${fireId} ${fence}`;

/** This process as a replica. It outlives a store that is opened again. */
export class Replica {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** One connection of its own: a proof must not wait behind deliveries. */
  readonly #pool: PrimaryPool;
  #holder = draw();
  #registering: Promise<void> | undefined;
  #isRegistered = false;
  #aliveUntil = 0;
  /** Until then it knows that it was not given up, by the monotonic clock. */
  #knowsUntil = Number.NEGATIVE_INFINITY;
  #provedAt = Number.NEGATIVE_INFINITY;
  /** The last proof seen of each other replica, and since when, by the monotonic clock. */
  readonly #seen = new Map<number, { aliveUntil: number; since: number }>();
  /** Claims that were handed out and have not ended. */
  readonly #claims = new Set<string>();
  #timer: CancelTimer | undefined;
  /** Called after the next proof, or after it failed. */
  #waiting: (() => void)[] = [];
  #stopped = false;
  /** Replicas that are given up, as of the last proof. */
  gone: readonly GoneReplica[] = [];
  /** Called after each proof. */
  onProof: (() => void) | undefined;

  constructor({ uri, clock, log }: ReplicaOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#pool = new PrimaryPool(parseAddress(uri), { size: 1, clock, log });
  }

  /** The current holder. */
  get holder(): number {
    return this.#holder;
  }

  /**
   * Registers at the first call, and proves that it lives from then on.
   *
   * @throws ReveilleError `unavailable` while the database does not answer
   */
  begin(): Promise<void> {
    if (this.#isRegistered) return Promise.resolve();
    this.#registering ??= this.#register().finally(() => {
      this.#registering = undefined;
    });
    return this.#registering;
  }

  /**
   * @returns what it may claim as now
   * @throws ReveilleError `unavailable` while it cannot know whether it was given up
   */
  async standing(): Promise<Standing> {
    await this.begin();
    if (this.#knows()) return { holder: this.#holder, until: this.#aliveUntil };
    throw new ReveilleError(
      'unavailable',
      'this replica could not prove in time that it runs, so others may repeat its deliveries; it claims nothing until the database answers',
    );
  }

  /** Whether claims that a holder has just made are its own: waits until that is known. */
  async confirms(holder: number): Promise<boolean> {
    while (!this.#stopped && this.#holder === holder) {
      if (this.#knows()) return true;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return false;
  }

  handedOut(claims: readonly Claim[]): void {
    for (const { occurrence } of claims) this.#claims.add(nameOf(occurrence));
  }

  ended(key: ClaimKey): void {
    this.#claims.delete(nameOf(key));
  }

  isHandedOut(key: ClaimKey): boolean {
    return this.#claims.has(nameOf(key));
  }

  /** Deletes the row of a replica whose claims are ended. */
  async forget(holder: number): Promise<void> {
    await this.#pool.query(FORGET, [holder]);
  }

  /** Ends the claims that it still has: others end them at once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.();
    this.#release();
    await this.#registering?.catch(() => undefined);
    if (this.#knows())
      await this.#pool
        .query(LEAVE, [this.#holder])
        .catch((error: unknown) => this.#log.debug({ reason: errorText(error) }, 'this replica could not sign off'));
    await this.#pool.close();
  }

  #knows(): boolean {
    return this.#clock.monotonic() < this.#knowsUntil;
  }

  async #register(): Promise<void> {
    await this.#enter();
    this.#isRegistered = true;
    await this.#prove();
  }

  async #enter(): Promise<void> {
    const holder = draw();
    await this.#pool.query(REGISTER, [holder, `${hostname()}:${process.pid}`]);
    this.#holder = holder;
    this.#knowsUntil = Number.NEGATIVE_INFINITY;
    this.#claims.clear();
  }

  async #prove(): Promise<void> {
    this.#timer?.();
    this.#timer = undefined;
    let pauseMs = RETRY_MS;
    try {
      pauseMs = await this.#proveOnce();
    } catch (error) {
      const level = this.#knows() ? 'debug' : 'warn';
      this.#log[level]({ reason: errorText(error) }, 'this replica could not prove that it runs; retrying');
    }
    this.#release();
    if (!this.#stopped) this.#timer = this.#clock.after(pauseMs, () => void this.#prove());
  }

  /** @returns when to prove it again */
  async #proveOnce(): Promise<number> {
    const began = this.#clock.monotonic();
    const rows = (await this.#pool.query(PROVE, [this.#holder])) as [number, number, number, number, number | null][];
    const mine = rows.find(([, holder]) => holder === this.#holder);
    if (!mine) {
      this.#log.warn({ holder: this.#holder }, 'this replica was given up by others; it goes on as another one');
      await this.#enter();
      return 0;
    }
    this.#aliveUntil = mine[2];
    this.#knowsUntil = began + VALID_MS;
    const hadGap = began - this.#provedAt > GAP_MS;
    this.#provedAt = this.#clock.monotonic();
    const gone: GoneReplica[] = [];
    let nextMs = PROOF_EVERY_MS - (this.#provedAt - began);
    if (hadGap) this.#seen.clear();
    for (const [now, holder, aliveUntil, claimsTo, givenUpAt] of rows) {
      if (holder === this.#holder) continue;
      if (givenUpAt !== null) {
        gone.push({ holder, claimsTo, endedAt: Math.min(aliveUntil, givenUpAt) });
        continue;
      }
      const overdueInMs = this.#overdueIn(holder, aliveUntil, now);
      if (overdueInMs > 0) nextMs = Math.min(nextMs, overdueInMs);
      else {
        const [marked] = await this.#pool.query(GIVE_UP, [holder, aliveUntil]);
        if (!marked) continue;
        this.#log.warn({ holder }, 'another replica does not prove any more that it runs; its deliveries are repeated');
        gone.push({ holder, claimsTo, endedAt: Math.min(aliveUntil, marked[0] as number) });
      }
    }
    const present = new Set(rows.map(([, holder]) => holder));
    for (const holder of this.#seen.keys()) if (!present.has(holder)) this.#seen.delete(holder);
    this.gone = gone;
    if (!this.#stopped) this.onProof?.();
    return Math.max(0, nextMs);
  }

  /** In how many milliseconds a replica is to be given up if it proves nothing; 0 or less: now. */
  #overdueIn(holder: number, aliveUntil: number, now: number): number {
    const known = this.#seen.get(holder);
    const since = known?.aliveUntil === aliveUntil ? known.since : this.#provedAt;
    if (since === this.#provedAt) this.#seen.set(holder, { aliveUntil, since });
    const watchedMs = since + WATCHED_MS - this.#provedAt;
    // The database's clock was set back: then only the watch counts.
    const isAhead = aliveUntil > now + 2 * VALID_MS;
    return isAhead ? watchedMs : Math.max(watchedMs, aliveUntil - now + 1);
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
