/**
 * Turns on disk: one SQLite file, one process. Every write resolves when it is on disk. Turn reports for chronosd are
 * stored in the transaction that changes the turn.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import { GroupCommit } from '../kit/sqlite/group-commit.ts';
import { openDatabase } from '../kit/sqlite/open.ts';
import { storageError } from '../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../wire/errors.ts';
import { isOccurrence } from '../wire/fire-id.ts';
import type { TurnReport } from '../wire/turn-report.ts';
import type { Turn } from './turn.ts';
import { type TurnReportOutbox, turnReportTable } from './turn-report-sender.ts';
import { type AcceptedTurn, type Ending, turnTable } from './turn-table.ts';

/** What the owner of the database stores in the transactions that change a turn. */
export type TurnHooks = {
  /** Before a new turn is stored. */
  accepting?(turn: AcceptedTurn): void;
  /** After a turn was stored or changed. @param said of an ended attempt: the whole text of its `say` events */
  changed?(turn: Turn, about: { ending?: Ending; said?: string | undefined }): void;
};

export type TurnStoreOptions = {
  path: string;
  migrations: URL;
  clock: Clock;
  /** Whether fire ids of different users are different fires. */
  perUser: boolean;
  /** Called after a turn report has become durable. Without it none are stored. */
  onTurnReport?: (() => void) | undefined;
  /** Called after any change of a turn has become durable. */
  onChange?: (() => void) | undefined;
  hooks?: (db: DatabaseSync) => TurnHooks;
};

export type TurnStore = ReturnType<typeof openTurnStore>;

/** Opens or creates the store. Throws the errors of `openDatabase`. */
export function openTurnStore({ path, migrations, clock, perUser, onTurnReport, onChange, hooks }: TurnStoreOptions) {
  const file = openDatabase({ path, migrations, clock, lock: 'exclusive' });
  const { db } = file;
  const writes = new GroupCommit(db);
  const turns = turnTable(db, { perUser });
  const reports = turnReportTable(db);
  const { accepting, changed } = hooks?.(db) ?? {};

  /** Puts a report into the outbox, inside the transaction that changes the turn. @returns whether there is one */
  function report({ userId, fireId, id, conversationId }: Turn, about: Partial<TurnReport>): boolean {
    if (!onTurnReport || userId === undefined || fireId === undefined || !isOccurrence(fireId)) return false;
    const nothing = { outcome: null, error: null, retryAt: null, reply: null, usage: null };
    const ids = { turnId: id, conversationId };
    reports.put(userId, fireId, { stage: 'turn_started', at: clock.now(), ...nothing, ...ids, ...about });
    return true;
  }

  function reportEnd(turn: Turn, { status, began }: Ending): boolean {
    if (status === 'accepted') return false;
    if (began !== undefined) report(turn, { at: began });
    const outcome = status === 'done' ? 'ok' : status === 'unknown' ? 'unknown' : 'failed';
    const { error = null, reply = null, finishedAt: at = clock.now() } = turn;
    const usage = turn.usage === undefined ? null : JSON.stringify(turn.usage);
    return report(turn, { stage: 'turn_finished', at, outcome, error, reply, usage });
  }

  /** Runs a write. The readers of events, and the sender of turn reports, are notified once it is on disk. */
  async function run<T>(write: () => T, putReport: (result: T) => boolean = () => false): Promise<T> {
    let reported = false;
    const result = await writes.run(() => {
      const value = write();
      reported = putReport(value);
      return value;
    });
    onChange?.();
    if (reported) onTurnReport?.();
    return result;
  }

  /** Changes a turn, with the rows of its owner. */
  function change(
    write: () => Turn | undefined,
    about: { ending?: Ending; said?: string | undefined } = {},
    putReport: (turn: Turn) => boolean = () => false,
  ): Promise<Turn | undefined> {
    return run(
      () => {
        const turn = write();
        if (turn) changed?.(turn, about);
        return turn;
      },
      (turn) => turn !== undefined && putReport(turn),
    );
  }

  function read<T>(query: () => T): T {
    try {
      return query();
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  return {
    db,
    writes,
    /** Runs another write of the owner. */
    run,

    /**
     * Stores a turn in the order of acceptance.
     *
     * @param check throws when a new turn must not be stored
     * @returns the turn, or with `deduped` the existing turn of its fire, which is unchanged
     * @throws ReveilleError `unavailable` when it could not be stored
     */
    accept(turn: AcceptedTurn, check: () => void = () => {}): Promise<{ turn: Turn; deduped: boolean }> {
      return run(() => {
        const known = turns.repeatedBy(turn);
        if (known) return { turn: known, deduped: true };
        check();
        accepting?.(turn);
        const stored = turns.insert(turn);
        changed?.(stored, {});
        return { turn: stored, deduped: false };
      });
    },

    turnById: (id: string): Turn | undefined => read(() => turns.get(id)),
    ofFire: (userId: string, fireId: string): Turn | undefined => read(() => turns.ofFire(fireId, userId)),

    /** Unfinished turns after a position in the order of acceptance. */
    unfinished: (after = 0) => read(() => turns.unfinished(after)),

    /**
     * Call it before any action of an attempt. Rejects with `internal` when the turn has ended.
     *
     * @param isCertain whether the start is reported; only a first attempt is
     */
    async begin(
      id: string,
      attempt: { session?: string | undefined; spawnId: string; isCertain: boolean },
    ): Promise<Turn> {
      const { session, spawnId, isCertain } = attempt;
      const now = clock.now();
      const begun = await change(
        () => turns.begin(id, { session, spawnId, now }),
        {},
        (turn) => isCertain && turn.attempts === 1 && report(turn, { at: now }),
      );
      if (!begun) throw new ReveilleError('internal', `the turn ${id} has ended and cannot be begun`);
      return begun;
    },

    /** Stores the report that a turn has begun, if reports are stored. */
    async reportStart(turn: Turn, at: number): Promise<void> {
      await run(
        () => report(turn, { at }),
        (isReported) => isReported,
      );
    },

    /**
     * Call it right after the fork, in the same turn of the event loop. Until then only the environment identifies the
     * process.
     */
    recordProcess: (id: string, pid: number, birth: string): void =>
      writes.runNow(() => turns.recordProcess(id, pid, birth)),

    /** The agent's name of the turn, and of its conversation if it has one by now. */
    name: (id: string, names: { session?: string; handle?: string }): Promise<void> =>
      writes.run(() => turns.name(id, names)),

    /** For an attempt that certainly did not start. `undefined` when the turn has ended. */
    requeue: (turn: Turn, { attempts, at, why }: { attempts: number; at: number; why: string }) =>
      change(() => turns.requeue(turn.id, attempts, at, why)),

    /** A running turn waits for its retry; `undefined` when it was not running any more. */
    park(
      turn: Turn,
      { error, model, usage }: Pick<Ending, 'model' | 'usage'> & { error: string },
      at: number,
    ): Promise<Turn | undefined> {
      return change(
        () => turns.park(turn.id, { error, model, usage, at }),
        {},
        (parked) => report(parked, { stage: 'turn_waits', error, retryAt: at }),
      );
    },

    /** A running turn waits again. @param first runs before it, in the same transaction */
    putBack(turn: Turn, first: () => void = () => {}): Promise<Turn | undefined> {
      return change(() => {
        first();
        return turns.putBack(turn.id);
      });
    },

    /**
     * @param said of an attempt: the whole text of its `say` events
     * @returns the ended turn, or `undefined` when it had another state
     */
    finish(turn: Turn, ending: Ending, said?: string): Promise<Turn | undefined> {
      return change(
        () => turns.finish(turn, ending, clock.now()),
        { ending, said },
        (ended) => reportEnd(ended, ending),
      );
    },

    /** Turn reports that chronosd has not confirmed yet. */
    outbox: {
      waiting: (page) => reports.waiting(page),
      remove: (ids) => writes.run(() => reports.remove(ids)),
    } satisfies TurnReportOutbox as TurnReportOutbox,

    /** Waits for pending writes and closes the file. */
    async close(): Promise<void> {
      await writes.drain();
      file.close();
    },
  };
}
