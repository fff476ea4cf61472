/** The change log of machines: one line for each change, in the transaction of the change. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import type { MachineActor, MachineChangeView, MachineState } from '../../wire/machine.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Machine } from './machine.ts';

/** The author of a change, and the name of the change. */
export type ChangedBy = {
  actor: MachineActor;
  /** `put`, `suspend`, `restore`, `delete`, … */
  action: string;
  /** The reason; never a secret. */
  reason?: string;
};

type Row = {
  seq: number;
  at: number;
  actor: MachineActor;
  action: string;
  fields: string;
  state: MachineState;
  reason: string | null;
};

const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The paths at which two values differ. A group of members on both sides is compared member by member. */
function differingPaths(path: string, one: unknown, other: unknown): string[] {
  if (JSON.stringify(one) === JSON.stringify(other)) return [];
  if (!isGroup(one) && !isGroup(other)) return [path];
  const before = isGroup(one) ? one : {};
  const after = isGroup(other) ? other : {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differingPaths(`${path}.${name}`, before[name], after[name]));
}

/** The changed members of a machine, by the names that users know. */
export function changedFields(before: Machine | undefined, after: Machine): string[] {
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

export class MachineChanges {
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
      const rows = this.#list.all({ user_id: userId, before: before ?? null, limit }) as Row[];
      return rows.map((row) => ({ seq: row.seq, change: viewOfRow(row) }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

function viewOfRow({ at, actor, action, fields, state, reason }: Row): MachineChangeView {
  return {
    at: formatInstant(at),
    actor,
    action,
    fields: JSON.parse(fields) as string[],
    state,
    ...(reason === null ? {} : { reason }),
  };
}
