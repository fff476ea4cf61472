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
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { readUsage, type Spending } from '../../wire/usage.ts';
import type { Wake } from '../../wire/wake.ts';
import type { Machine } from '../machines/machine.ts';
import { Account, WakeDeferred } from './account.ts';
import { LONGEST_SPAN_MS } from './slots.ts';
import { type CountedTurn, limitsSpending, type Settled, spendingOf } from './spending.ts';

const UNKNOWN = 'unknown';

const settledOf = (text: string): Settled => readUsage(text) ?? UNKNOWN;

/** Stores the counted wakes in the registry's file, so that a restarted router knows them. */
export class WakeRecords {
  readonly #commits: GroupCommit;
  readonly #put: StatementSync;
  readonly #settle: StatementSync;
  readonly #remove: StatementSync;
  readonly #of: StatementSync;
  readonly #prune: StatementSync;

  constructor({ db }: SqliteFile, commits: GroupCommit) {
    this.#commits = commits;
    // An existing row no longer counted: the fire repeats after a day.
    this.#put = db.prepare('INSERT OR REPLACE INTO wakes (user_id, fire_id, at) VALUES (?, ?, ?)');
    this.#settle = db.prepare('UPDATE wakes SET usage = ? WHERE user_id = ? AND fire_id = ?');
    this.#remove = db.prepare('DELETE FROM wakes WHERE user_id = ? AND fire_id = ?');
    this.#of = db.prepare('SELECT fire_id, at, usage FROM wakes WHERE user_id = ? AND at > ? ORDER BY at');
    this.#prune = db.prepare('DELETE FROM wakes WHERE at <= ?');
  }

  /** Resolves when it is on disk; rejects with `unavailable` when it could not be stored. */
  put(userId: string, { fireId, at }: CountedTurn): Promise<void> {
    return this.#commits.run(() => void this.#put.run(userId, fireId, at));
  }

  /** Stores what turns used. */
  settle(userId: string, turns: ReadonlyMap<string, Settled>): Promise<void> {
    return this.#commits.run(() => {
      for (const [fireId, usage] of turns)
        this.#settle.run(usage === UNKNOWN ? usage : JSON.stringify(usage), userId, fireId);
    });
  }

  remove(userId: string, fireId: string): Promise<void> {
    return this.#commits.run(() => void this.#remove.run(userId, fireId));
  }

  /** The wakes of a user after an instant. @throws ReveilleError `unavailable` when the file cannot be read */
  of(userId: string, after: number): CountedTurn[] {
    try {
      return this.#of.all(userId, after).map((row) => ({
        fireId: row.fire_id as string,
        at: row.at as number,
        ...(row.usage === null ? {} : { usage: settledOf(row.usage as string) }),
      }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  /** Removes wakes up to an instant. */
  prune(until: number): Promise<void> {
    return this.#commits.run(() => void this.#prune.run(until));
  }
}

/**
 * What the turns of some fires used; only ended ones are in the answer. Rejects with `unavailable` if
 * chronosd does not answer.
 */
export type UsageOfTurns = (userId: string, fireIds: readonly string[]) => Promise<ReadonlyMap<string, Settled>>;

/**
 * @param knowsChronos whether the router has the address of chronosd
 * @throws ReveilleError `invalid_request` for a budget that this router cannot keep
 */
export function checkBudget(budget: Budget, knowsChronos: boolean): void {
  if (knowsChronos || !limitsSpending(budget)) return;
  const remedy = 'set ROUTER_CHRONOS_URL to the address of chronosd, which has the reports of turns';
  throw new ReveilleError('invalid_request', `a budget in tokens or in money per day needs chronosd; ${remedy}`);
}

type BudgetsOptions = {
  records: WakeRecords;
  /** The budget of machines that have none of their own. */
  standard: Budget | undefined;
  /** Absent where the router does not know chronosd: then no turn's usage is known. */
  usageOf?: UsageOfTurns | undefined;
  clock: Clock;
  log: Logger;
  /** The longest duration of one wake, milliseconds. */
  wakeTimeoutMs: number;
};

/** An admitted wake. The caller reports its progress here. */
export type Admission = {
  /** What the budget leaves to the turn itself. */
  readonly tokensPerTurn?: number | undefined;
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
  /** Requests for the usage of a user's turns. */
  readonly #learning = new Map<string, Promise<void>>();
  #cancelPrune: CancelTimer = () => {};

  constructor(options: BudgetsOptions) {
    this.#options = options;
    this.#prune();
  }

  /** The budget of machines that have none of their own. */
  get standard(): Budget | undefined {
    return this.#options.standard;
  }

  /** The budgets that a view of the machine shows. */
  shownOf(machine: Machine): { standard: Budget | undefined; spending?: Spending } {
    const { standard, clock } = this.#options;
    const budget = machine.budget ?? standard;
    if (!budget || !limitsSpending(budget)) return { standard };
    const now = clock.now();
    return { standard, spending: spendingOf(this.#accountOf(machine.userId, now).turns(), now) };
  }

  /** Learns what the turns of a machine's user used, where its budget limits that. */
  async refresh(machine: Machine): Promise<void> {
    const budget = machine.budget ?? this.standard;
    if (budget && limitsSpending(budget)) await this.#learn(machine.userId);
  }

  /** @throws ReveilleError `invalid_request` for a budget that this router cannot keep */
  check(budget: Budget): void {
    checkBudget(budget, this.#options.usageOf !== undefined);
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
    const { fire_id: fireId, alarm_id: alarmId, urgent = false } = wake;
    if (limitsSpending(budget)) await this.#learn(userId, fireId);
    const now = clock.now();
    const account = this.#accountOf(userId, now);
    const counted = account.counts(fireId);
    const decision = account.decide(budget, { fireId, alarmId, urgent, now, probeMs });
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
      tokensPerTurn: budget.tokens_per_turn,
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

  /**
   * Learns which turns of a user have ended, and what they used. If chronosd does not answer, the wake is decided by
   * what is known: an alarm is worth more than a budget that is kept to the token, and chronosd has just sent the wake.
   */
  async #learn(userId: string, fireId?: string): Promise<void> {
    const account = this.#accountOf(userId, this.#options.clock.now());
    // A wake that is repeated passes in any case.
    if (fireId !== undefined && account.counts(fireId)) return;
    const fireIds = account.unsettled();
    if (fireIds.length === 0) return;
    let learning = this.#learning.get(userId);
    if (!learning) {
      learning = this.#ask(userId, fireIds).finally(() => this.#learning.delete(userId));
      this.#learning.set(userId, learning);
    }
    await learning;
  }

  async #ask(userId: string, fireIds: readonly string[]): Promise<void> {
    const { usageOf, log, clock, records } = this.#options;
    try {
      if (!usageOf) throw new ReveilleError('unavailable', 'ROUTER_CHRONOS_URL is not set');
      const account = this.#accountOf(userId, clock.now());
      const turns = [...(await usageOf(userId, fireIds))].filter(([fireId, usage]) => account.settle(fireId, usage));
      if (turns.length > 0) await records.settle(userId, new Map(turns));
    } catch (thrown) {
      const reason = toReveilleError(thrown).message;
      log.warn(
        { user_id: userId, turns: fireIds.length, reason },
        'the usage of turns is not known; a budget may be exceeded',
      );
    }
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
