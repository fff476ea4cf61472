/** The registry of machines, in SQLite. The file contains their tokens, so only its owner can read it (0600). */

import { join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import { budgetSchema } from '../../wire/budget.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import type { MachineActor, MachineChangeView, MachineState } from '../../wire/machine.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { descriptorOf, type Target } from '../providers/descriptors.ts';
import { type Machine, noMachine } from './machine.ts';

/** The author of a change, and the name of the change. */
type ChangedBy = {
  actor: MachineActor;
  /** `put`, `suspend`, `restore`, `delete`, … */
  action: string;
  /** The reason; never a secret. */
  reason?: string;
};

type ChangeRow = {
  seq: number;
  at: number;
  actor: MachineActor;
  action: string;
  fields: string;
  state: MachineState;
  reason: string | null;
};

/** The paths at which two values differ. A group of members on both sides is compared member by member. */
function differingPaths(path: string, one: unknown, other: unknown): string[] {
  if (JSON.stringify(one) === JSON.stringify(other)) return [];
  if (!isObject(one) && !isObject(other)) return [path];
  const before = isObject(one) ? one : {};
  const after = isObject(other) ? other : {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differingPaths(`${path}.${name}`, before[name], after[name]));
}

/** The changed members of a machine, by the names that users know. */
function changedFields(before: Machine | undefined, after: Machine): string[] {
  const members = {
    provider: [before?.provider, after.provider],
    spec: [before?.spec, after.spec],
    state: [before?.state, after.state],
    idle_seconds: [before?.idleSeconds ?? undefined, after.idleSeconds ?? undefined],
    budget: [before?.budget ?? undefined, after.budget ?? undefined],
    token: [before?.token, after.token],
  };
  return Object.entries(members).flatMap(([name, [one, other]]) => differingPaths(name, one, other));
}

/** The change log of machines: one line for each change, in the transaction of the change. */
class MachineChanges {
  readonly #insert: StatementSync;
  readonly #list: StatementSync;

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(`
      INSERT INTO machine_changes (user_id, at, actor, action, fields, state, reason)
      VALUES (:user_id, :at, :actor, :action, :fields, :state, :reason)`);
    this.#list = db.prepare(`
      SELECT seq, at, actor, action, fields, state, reason FROM machine_changes
      WHERE user_id = :user_id AND (:before IS NULL OR seq < :before)
      ORDER BY seq DESC
      LIMIT :limit`);
  }

  /** Writes a line. Call it inside the transaction of the change. */
  add(before: Machine | undefined, after: Machine, by: ChangedBy, at: number): void {
    this.#insert.run({
      user_id: after.userId,
      at,
      actor: by.actor,
      action: by.action,
      fields: JSON.stringify(changedFields(before, after)),
      state: after.state,
      reason: by.reason ?? null,
    });
  }

  /**
   * The changes of one machine, newest first, each with its number.
   *
   * @throws ReveilleError `unavailable` when the file cannot be read
   */
  of(userId: string, { limit, before }: { limit: number; before: number | undefined }) {
    try {
      const rows = this.#list.all({ user_id: userId, before: before ?? null, limit }) as ChangeRow[];
      return rows.map((row) => ({ seq: row.seq, change: viewOfRow(row) }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

function viewOfRow({ at, actor, action, fields, state, reason }: ChangeRow): MachineChangeView {
  return {
    at: formatInstant(at),
    actor,
    action,
    fields: JSON.parse(fields) as string[],
    state,
    ...(reason === null ? {} : { reason }),
  };
}

/** The page size for reading all machines. */
const ALL_PAGE = 500;

type Row = {
  user_id: string;
  provider: string;
  spec: string;
  state: MachineState;
  idle_seconds: number | null;
  budget: string | null;
  token: string;
  created_at: number;
  updated_at: number;
};

type MachineFilter = {
  /** Only machines in this state; without it all except deleted ones. */
  state?: MachineState;
  /** Only user ids that sort after this one. */
  after?: string;
  limit: number;
};

/** @throws ReveilleError `internal` when this router does not know the provider, or the format of its specification */
function targetOf({ user_id, provider, spec: text, state }: Row): Target {
  const spec: unknown = JSON.parse(text);
  try {
    const { schema } = descriptorOf(provider);
    // A tombstone lacks members that a machine must have.
    return { provider, spec: state === 'deleted' ? spec : parseOrThrow(schema, spec, () => true) } as Target;
  } catch (cause) {
    const why = toReveilleError(cause).message;
    throw new ReveilleError('internal', `the stored machine of ${user_id} has an unknown format: ${why}`, {
      cause,
    });
  }
}

function machineOf(row: Row): Machine {
  return {
    userId: row.user_id,
    state: row.state,
    idleSeconds: row.idle_seconds,
    budget: row.budget === null ? null : budgetSchema.parse(JSON.parse(row.budget)),
    token: row.token,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...targetOf(row),
  };
}

/** How long a check of the disk stays valid. `/readyz` needs no token, and each check is an fsync. */
const CHECK_HOLDS_MS = 1000;

export class Registry {
  /** Shared with other stores in the same file. */
  readonly file: SqliteFile;
  readonly commits: GroupCommit;
  readonly changes: MachineChanges;
  readonly #clock: Clock;
  readonly #onChange: (userId: string) => void;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #list: StatementSync;
  readonly #touch: StatementSync;
  readonly #retired: RetiredTokens;
  #checkedAt = Number.NEGATIVE_INFINITY;

  /**
   * Opens and locks the registry of a data folder until it is closed.
   *
   * @param onChange called after each stored change of a machine
   * @throws ReveilleError as `openDatabase`
   */
  constructor(dataDir: string, clock: Clock, onChange: (userId: string) => void = () => {}) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.file = openDatabase({
      path: join(dataDir, 'router.db'),
      migrations: new URL('./migrations', import.meta.url),
      clock,
      lock: 'exclusive',
    });
    const { db } = this.file;
    this.commits = new GroupCommit(db);
    this.#retired = new RetiredTokens(db);
    this.changes = new MachineChanges(db);
    this.#get = db.prepare('SELECT * FROM machines WHERE user_id = ?');
    this.#put = db.prepare(`
      INSERT OR REPLACE INTO machines (user_id, provider, spec, state, idle_seconds, budget, token, created_at, updated_at)
      VALUES (:user_id, :provider, :spec, :state, :idle_seconds, :budget, :token, :created_at, :updated_at)`);
    this.#list = db.prepare(`
      SELECT * FROM machines
      WHERE user_id > :after AND (state = :state OR (:state IS NULL AND state <> 'deleted'))
      ORDER BY user_id
      LIMIT :limit`);
    this.#touch = db.prepare('INSERT OR REPLACE INTO readiness (id, checked_at) VALUES (1, ?)');
  }

  /** @throws ReveilleError `unavailable` when the file cannot be read */
  get(userId: string): Machine | undefined {
    const [row] = this.#read(() => [this.#get.get(userId)]);
    return row === undefined ? undefined : machineOf(row as Row);
  }

  /** @throws ReveilleError `not_found` without a machine; otherwise as {@link get} */
  existing(userId: string): Machine {
    const machine = this.get(userId);
    if (!machine) throw noMachine(userId);
    return machine;
  }

  /** The tokens that verify a machine's turn reports, the current one first; empty without a machine. */
  turnReportTokens(userId: string): string[] {
    const token = this.get(userId)?.token;
    if (token === undefined || token === '') return [];
    const [retired] = this.#read(() => [this.#retired.get(userId, this.#clock.now())]);
    return retired === undefined ? [token] : [token, retired];
  }

  /** In order of user id. */
  list({ state, after = '', limit }: MachineFilter): Machine[] {
    return this.#read(() => this.#list.all({ state: state ?? null, after, limit })).map((row) => machineOf(row as Row));
  }

  /** Every machine except deleted ones, in order of user id. */
  *all(): Iterable<Machine> {
    for (let after = ''; ; ) {
      const page = this.list({ after, limit: ALL_PAGE });
      yield* page;
      if (page.length < ALL_PAGE) return;
      after = page.at(-1)!.userId;
    }
  }

  /**
   * Replaces a machine by the result of `change` and logs the author, in one transaction. Nothing is written when
   * `change` returns its argument.
   *
   * @param change pure; when it throws, the registry stays unchanged
   * @param by for the change log
   * @returns resolves when the change is on disk
   */
  async change(userId: string, change: (current: Machine | undefined) => Machine, by: ChangedBy): Promise<Machine> {
    const changed = await this.commits.run(() => {
      const current = this.get(userId);
      const next = change(current);
      if (next !== current) {
        this.#put.run({
          user_id: userId,
          provider: next.provider,
          spec: JSON.stringify(next.spec),
          state: next.state,
          idle_seconds: next.idleSeconds,
          budget: next.budget === null ? null : JSON.stringify(next.budget),
          token: next.token,
          created_at: next.createdAt,
          updated_at: next.updatedAt,
        });
        this.changes.add(current, next, by, this.#clock.now());
        this.#retired.changed(current, next, this.#clock.now());
      }
      return next;
    });
    this.#onChange(userId);
    return changed;
  }

  /**
   * As {@link change}, for a machine that exists.
   *
   * @param apply gets the time, too
   * @throws ReveilleError `not_found` without a machine
   */
  changeExisting(userId: string, apply: (machine: Machine, now: number) => Machine, by: ChangedBy): Promise<Machine> {
    const changed = (current: Machine | undefined) => {
      if (!current) throw noMachine(userId);
      return apply(current, this.#clock.now());
    };
    return this.change(userId, changed, by);
  }

  /** Throws `unavailable` when the file can no longer be read or written. */
  check(): void {
    const now = this.#clock.monotonic();
    if (now - this.#checkedAt < CHECK_HOLDS_MS) return;
    this.commits.runNow(() => this.#touch.run(this.#clock.now()));
    this.#checkedAt = now;
  }

  /** Writes what is queued, then closes the file. */
  async close(): Promise<void> {
    await this.commits.drain();
    this.file.close();
  }

  #read<T>(query: () => T): T {
    try {
      return query();
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

/** How long turn reports signed with a replaced token are accepted. */
const ACCEPTED_MS = 10 * 60_000;

class RetiredTokens {
  readonly #put: StatementSync;
  readonly #get: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync) {
    this.#put = db.prepare('INSERT OR REPLACE INTO retired_tokens (user_id, token, until) VALUES (?, ?, ?)');
    this.#get = db.prepare('SELECT token FROM retired_tokens WHERE user_id = ? AND until > ?');
    this.#remove = db.prepare('DELETE FROM retired_tokens WHERE user_id = ? OR until <= ?');
  }

  /**
   * Keeps the token that a change replaces, and none of a deleted machine. Call it inside the transaction of the
   * change.
   */
  changed(before: Machine | undefined, after: Machine, now: number): void {
    if (before === undefined || before.token === after.token) return;
    this.#remove.run(after.userId, now);
    if (before.token !== '' && after.token !== '') this.#put.run(after.userId, before.token, now + ACCEPTED_MS);
  }

  get(userId: string, now: number): string | undefined {
    return (this.#get.get(userId, now) as { token: string } | undefined)?.token;
  }
}
