/**
 * Budgets: which wakes are admitted now. A wake is counted on disk before its machine starts. The count is removed when
 * the wake was certainly not accepted. So concurrent wakes cannot pass a limit together. A router that crashes in
 * between has counted too many wakes, never too few.
 */
import type { StatementSync } from 'node:sqlite';
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import type { Budget } from '../../wire/budget.ts';
import type { Wake } from '../../wire/wake.ts';
import type { Machine } from '../machines/machine.ts';
import { Account, type CountedWake, WakeDeferred } from './account.ts';
import { LONGEST_SPAN_MS } from './slots.ts';

/** Stores the counted wakes in the registry's file, so that a restarted router knows them. */
export class WakeRecords {
  readonly #commits: GroupCommit;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #of: StatementSync;
  readonly #prune: StatementSync;

  constructor({ db }: SqliteFile, commits: GroupCommit) {
    this.#commits = commits;
    // An existing row no longer counted: the fire repeats after a day.
    this.#put = db.prepare('INSERT OR REPLACE INTO wakes (user_id, fire_id, at) VALUES (?, ?, ?)');
    this.#remove = db.prepare('DELETE FROM wakes WHERE user_id = ? AND fire_id = ?');
    this.#of = db.prepare('SELECT fire_id, at FROM wakes WHERE user_id = ? AND at > ?');
    this.#prune = db.prepare('DELETE FROM wakes WHERE at <= ?');
  }

  /** Resolves when it is on disk; rejects with `unavailable` when it could not be stored. */
  put(userId: string, { fireId, at }: CountedWake): Promise<void> {
    return this.#commits.run(() => void this.#put.run(userId, fireId, at));
  }

  remove(userId: string, fireId: string): Promise<void> {
    return this.#commits.run(() => void this.#remove.run(userId, fireId));
  }

  /** The wakes of a user after an instant. @throws ReveilleError `unavailable` when the file cannot be read */
  of(userId: string, after: number): CountedWake[] {
    try {
      return this.#of.all(userId, after).map((row) => ({ fireId: row.fire_id as string, at: row.at as number }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  /** Removes wakes up to an instant. */
  prune(until: number): Promise<void> {
    return this.#commits.run(() => void this.#prune.run(until));
  }
}

type BudgetsOptions = {
  records: WakeRecords;
  /** The budget of machines that have none of their own. */
  standard: Budget | undefined;
  clock: Clock;
  log: Logger;
  /** The longest duration of one wake, milliseconds. */
  wakeTimeoutMs: number;
};

/** An admitted wake. The caller reports its progress here. */
export type Admission = {
  /** The machine is ready, or its program can run. */
  started(): void;
  startFailed(why: string): void;
  /** It is unknown whether the wake was accepted. */
  mayHaveArrived(): void;
  /** The call has ended. Call it once. */
  end(accepted: boolean): Promise<void>;
};

const UNBOUNDED: Admission = {
  started() {},
  startFailed() {},
  mayHaveArrived() {},
  async end() {},
};

const PRUNE_MS = 3_600_000;
/** The error that opened the breaker; each deferral contains it. */
const ERROR_CHARACTERS = 160;

/** The concurrent calls of one fire. */
type UnderWay = {
  calls: number;
  /** The count stays: one of the calls, or an earlier one, was or may have been accepted. */
  stays: boolean;
  /** Resolves when the count is on disk. */
  stored: Promise<void>;
};

export class Budgets {
  readonly #options: BudgetsOptions;
  readonly #accounts = new Map<string, Account>();
  /** By user and fire. */
  readonly #underWay = new Map<string, UnderWay>();
  #cancelPrune: CancelTimer = () => {};

  constructor(options: BudgetsOptions) {
    this.#options = options;
    this.#prune();
  }

  /** The budget of machines that have none of their own. */
  get standard(): Budget | undefined {
    return this.#options.standard;
  }

  /**
   * Admits a wake or defers it.
   *
   * @param machine the machine of the user, awake or not; it has not been started yet
   * @throws WakeDeferred with time and reason; ReveilleError `unavailable` when the count could not be stored
   */
  async admit(machine: Machine, wake: Wake): Promise<Admission> {
    const budget = machine.budget ?? this.standard;
    if (!budget || Object.keys(budget).length === 0) return UNBOUNDED;
    const { clock, records, wakeTimeoutMs: probeMs } = this.#options;
    const { userId } = machine;
    const { fire_id: fireId, urgent = false } = wake;
    const now = clock.now();
    const account = this.#accountOf(userId, now);
    const counted = account.counts(fireId);
    const decision = account.decide(budget, { fireId, urgent, now, probeMs });
    if (!decision.go) throw new WakeDeferred(decision.reason, decision.until, now);
    const since = account.failures;
    const key = `${userId} ${fireId}`;
    let fire = this.#underWay.get(key);
    if (!fire) {
      // A fire that was counted before may have been accepted then.
      const stored = counted ? Promise.resolve() : records.put(userId, { fireId, at: now });
      fire = { calls: 0, stays: counted, stored };
      this.#underWay.set(key, fire);
    }
    fire.calls++;
    try {
      await fire.stored;
    } catch (error) {
      if (this.#leave(key, fire)) account.uncount(fireId);
      account.undecided(since);
      throw error;
    }
    return this.#admission(account, budget, { userId, fireId, fire, since });
  }

  /** The machine was changed or restored: its breaker closes at once. */
  machineChanged(userId: string): void {
    this.#accounts.get(userId)?.machineChanged();
  }

  close(): void {
    this.#cancelPrune();
  }

  #admission(
    account: Account,
    budget: Budget,
    { userId, fireId, fire, since }: { userId: string; fireId: string; fire: UnderWay; since: number },
  ): Admission {
    const { clock, log, records } = this.#options;
    return {
      started: () => account.started(),
      startFailed: (why) =>
        account.startFailed(budget, { since, now: clock.now(), error: why.slice(0, ERROR_CHARACTERS).toWellFormed() }),
      mayHaveArrived() {
        fire.stays = true;
      },
      end: async (accepted) => {
        account.undecided(since);
        if (accepted) fire.stays = true;
        if (!this.#leave(`${userId} ${fireId}`, fire) || fire.stays) return;
        account.uncount(fireId);
        try {
          await records.remove(userId, fireId);
        } catch (err) {
          log.warn({ err, user_id: userId, fire_id: fireId }, 'a rejected wake counts until a restart');
        }
      },
    };
  }

  /** A call of a fire has ended. Returns whether it was the last one. */
  #leave(key: string, fire: UnderWay): boolean {
    fire.calls--;
    if (fire.calls > 0) return false;
    this.#underWay.delete(key);
    return true;
  }

  #accountOf(userId: string, now: number): Account {
    let account = this.#accounts.get(userId);
    if (!account) {
      account = new Account(this.#options.records.of(userId, now - LONGEST_SPAN_MS));
      this.#accounts.set(userId, account);
    }
    return account;
  }

  #prune(): void {
    const { clock, log, records } = this.#options;
    const now = clock.now();
    for (const [userId, account] of this.#accounts) {
      account.forgetBefore(now);
      if (account.isEmpty) this.#accounts.delete(userId);
    }
    records
      .prune(now - LONGEST_SPAN_MS)
      .catch((err: unknown) => log.warn({ err }, 'old wakes could not be removed from the record of budgets'));
    this.#cancelPrune = clock.after(PRUNE_MS, () => this.#prune());
  }
}
