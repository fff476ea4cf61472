/** Stores tasks and their notifications in one SQLite file, for one process. Writes resolve when they are on disk. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import type { OutboxItem, OutboxStore } from '../kit/outbox/outbox.ts';
import { GroupCommit } from '../kit/sqlite/group-commit.ts';
import { openDatabase } from '../kit/sqlite/open.ts';
import type { StoredTask, TaskStateName } from './task.ts';

export type PushConfig = {
  readonly taskId: string;
  readonly id: string;
  readonly url: string;
  /** Sent with each notification, so that the receiver can recognise its sender. */
  readonly token: string;
  readonly scheme: string;
  readonly credentials: string;
  /** The protocol version of the notifications. */
  readonly version: string;
};

export type Notification = OutboxItem & {
  readonly config: PushConfig;
  /** Whose task it is about. */
  readonly caller: string;
  readonly body: string;
};

/** The members that a change sets; absent members keep their value. */
export type TaskChanges = Partial<
  Pick<StoredTask, 'state' | 'turnId' | 'conversationId' | 'waitsFor' | 'note' | 'reply' | 'result'>
>;

export type TaskFilter = {
  readonly caller: string;
  readonly contextId?: string | undefined;
  readonly state?: TaskStateName | undefined;
  /** Only tasks that changed at this instant or later. */
  readonly since?: number | undefined;
  /** The last task of the previous page. */
  readonly after?: { readonly updatedAt: number; readonly id: string } | undefined;
  readonly limit: number;
};

type Row = Record<string, SQLOutputValue>;

const COLUMNS = [
  ...['id', 'user_id', 'caller', 'caller_name', 'context_id', 'conversation_id', 'message_id', 'message', 'payload'],
  ...['state', 'turn_id', 'waits_for', 'note', 'reply', 'result', 'created_at', 'updated_at'],
];
const memberOf = (column: string) => column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
const SELECTED = COLUMNS.map((column) => `${column} AS ${memberOf(column)}`).join(', ');
const CONFIG = 'task_id AS taskId, id, url, token, scheme, credentials, version';
const UNFINISHED = `state IN ('submitted', 'working', 'auth_required')`;

function taskIn({ waitsFor, ...row }: Row): StoredTask {
  const members = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? undefined]));
  return { ...members, waitsFor: typeof waitsFor === 'string' ? JSON.parse(waitsFor) : [] } as unknown as StoredTask;
}

export type TaskStore = ReturnType<typeof openTaskStore>;

export type TaskStoreOptions = {
  path: string;
  clock: Clock;
  /** The body of a notification about a changed task, for a version of the protocol. */
  notificationOf: (task: StoredTask, version: string) => string;
};

/** Opens or creates the store. Throws the errors of `openDatabase`. */
export function openTaskStore({ path, clock, notificationOf }: TaskStoreOptions) {
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'exclusive' });
  const { db } = file;
  const writes = new GroupCommit(db);
  const listeners = new Set<() => void>();
  let made = 0;

  const insert = db.prepare(`
    INSERT INTO tasks (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((column) => `:${memberOf(column)}`).join(', ')})`);
  const byId = db.prepare(`SELECT ${SELECTED} FROM tasks WHERE id = ?`);
  const byMessage = db.prepare(`SELECT ${SELECTED} FROM tasks WHERE caller = ? AND message_id = ?`);
  const unfinished = db.prepare(`SELECT ${SELECTED} FROM tasks WHERE ${UNFINISHED} ORDER BY created_at, id`);
  const openOnes = db.prepare(`
    SELECT count(*) AS count, coalesce(sum(caller = ?2), 0) AS ofCaller FROM tasks WHERE user_id = ?1 AND ${UNFINISHED}`);
  const ofCaller = db.prepare('SELECT count(*) AS count FROM tasks WHERE caller = ?');
  const filtered = `
    FROM tasks WHERE caller = :caller AND (:contextId IS NULL OR context_id = :contextId)
      AND (:state IS NULL OR state = :state) AND (:since IS NULL OR updated_at >= :since)`;
  const list = db.prepare(`
    SELECT ${SELECTED} ${filtered} AND (:at IS NULL OR (updated_at, id) < (:at, :id))
    ORDER BY updated_at DESC, id DESC LIMIT :limit`);
  const count = db.prepare(`SELECT count(*) AS count ${filtered}`);
  const change = db.prepare(`
    UPDATE tasks SET state = :state, turn_id = :turnId, conversation_id = :conversationId, waits_for = :waitsFor,
      note = :note, reply = :reply, result = :result, updated_at = :updatedAt WHERE id = :id`);
  const dropOld = db.prepare(`
    DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE updated_at < ? AND NOT (${UNFINISHED}) LIMIT 500)`);
  const dropOldest = db.prepare(`
    DELETE FROM tasks WHERE id = (
      SELECT id FROM tasks WHERE caller = ? AND NOT (${UNFINISHED}) ORDER BY updated_at, id LIMIT 1)`);
  const configs = db.prepare(`SELECT ${CONFIG} FROM push_configs WHERE task_id = ? ORDER BY id`);
  const putConfig = db.prepare(`
    INSERT INTO push_configs (task_id, id, url, token, scheme, credentials, version)
    VALUES (:taskId, :id, :url, :token, :scheme, :credentials, :version)
    ON CONFLICT (task_id, id) DO UPDATE SET
      url = excluded.url, token = excluded.token, scheme = excluded.scheme, credentials = excluded.credentials,
      version = excluded.version`);
  const dropConfig = db.prepare('DELETE FROM push_configs WHERE task_id = ? AND id = ?');
  const dropConfigs = db.prepare('DELETE FROM push_configs WHERE task_id IN (SELECT id FROM tasks WHERE caller = ?)');
  const notify = db.prepare('INSERT INTO notifications (id, task_id, config_id, body, due_at) VALUES (?, ?, ?, ?, ?)');
  // Callers in turn: the first of each, then the second of each.
  const due = db.prepare(`
    SELECT n.id, n.task_id AS taskId, n.config_id AS configId, n.body, n.attempts, d.caller FROM (
      SELECT notifications.id, caller, due_at,
        row_number() OVER (PARTITION BY caller ORDER BY due_at, notifications.id) AS turn
      FROM notifications JOIN tasks ON tasks.id = task_id WHERE due_at <= ?
      ORDER BY turn, due_at, notifications.id LIMIT ?) AS d
    JOIN notifications AS n ON n.id = d.id ORDER BY d.turn, d.due_at, d.id`);
  const nextDue = db.prepare('SELECT min(due_at) AS at FROM notifications');
  const later = db.prepare('UPDATE notifications SET attempts = attempts + 1, due_at = ? WHERE id = ?');
  const delivered = db.prepare('DELETE FROM notifications WHERE id = ?');

  const configsOf = (taskId: string) => configs.all(taskId) as unknown as PushConfig[];
  const countOf = (row: unknown) => (row as { count: number }).count;
  const filterOf = ({ caller, contextId, state, since }: TaskFilter) => ({
    ...{ caller, contextId: contextId ?? null, state: state ?? null, since: since ?? null },
  });

  /** Adds the notifications about a task to the outbox, in the transaction of its change. */
  function announce(task: StoredTask): void {
    for (const { id, version } of configsOf(task.id)) {
      const now = clock.now();
      notify.run(`${task.id}-${now}-${made++}`, task.id, id, notificationOf(task, version), now);
    }
  }

  async function write<T>(operation: () => T): Promise<T> {
    const result = await writes.run(operation);
    for (const listener of listeners) listener();
    return result;
  }

  /** @param most tasks of a caller; beyond it, its oldest final task is removed */
  function add(task: StoredTask, most: number): void {
    while (countOf(ofCaller.get(task.caller)) >= most) if (dropOldest.run(task.caller).changes === 0) break;
    const { payload = null, turnId = null, note = null, reply = null, result = null, waitsFor, ...members } = task;
    insert.run({ ...members, payload, turnId, note, reply, result, waitsFor: JSON.stringify(waitsFor) });
  }

  const outbox: OutboxStore<Notification> = {
    due: (now, limit) =>
      (due.all(Math.min(now, Number.MAX_SAFE_INTEGER), limit) as Row[]).flatMap((row) => {
        const { id, taskId, configId, body, attempts, caller } = row as Record<string, string> & { attempts: number };
        const config = configsOf(taskId!).find((one) => one.id === configId);
        return config === undefined ? [] : [{ id: id!, attempts, body: body!, caller: caller!, config }];
      }),
    nextDue: () => (nextDue.get() as { at: number | null }).at ?? undefined,
    done: (id) => writes.run(() => void delivered.run(id)),
    later: (id, at) => writes.run(() => void later.run(at, id)),
    drop: (id) => writes.run(() => void delivered.run(id)),
    onNew(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };

  return {
    outbox,
    get: (id: string): StoredTask | undefined => {
      const row = byId.get(id);
      return row && taskIn(row as Row);
    },
    /** All unfinished tasks, oldest first. */
    unfinished: (): StoredTask[] => (unfinished.all() as Row[]).map(taskIn),
    /** How many tasks of a user are unfinished, and how many of them are of a caller. */
    openOnes: (userId: string, caller: string) => openOnes.get(userId, caller) as { count: number; ofCaller: number },
    ofMessage: (caller: string, messageId: string): StoredTask | undefined => {
      const row = byMessage.get(caller, messageId);
      return row && taskIn(row as Row);
    },

    /**
     * Stores a task with its first push configuration, unless the caller already has a task of that message.
     *
     * @param check throws when no further task may be stored
     * @returns the new task, or the existing one
     */
    create(
      task: StoredTask,
      { config, most, check }: { config: PushConfig | undefined; most: number; check: () => void },
    ): Promise<{ task: StoredTask; isNew: boolean }> {
      return write(() => {
        const known = byMessage.get(task.caller, task.messageId);
        if (known) return { task: taskIn(known as Row), isNew: false };
        check();
        add(task, most);
        if (config) putConfig.run(config);
        announce(task);
        return { task, isNew: true };
      });
    },

    /**
     * Changes a task that has not ended.
     *
     * @returns the changed task; `undefined` if it had ended
     */
    change(id: string, changes: TaskChanges): Promise<StoredTask | undefined> {
      return write(() => {
        const row = byId.get(id);
        const before = row && taskIn(row as Row);
        if (!before || ['completed', 'failed', 'canceled'].includes(before.state)) return undefined;
        // Later changes are newer, also within a millisecond.
        const after = { ...before, ...changes, updatedAt: Math.max(clock.now(), before.updatedAt + 1) };
        const { state, turnId = null, conversationId, waitsFor, note = null, reply = null, result = null } = after;
        change.run({
          ...{ id, state, turnId, conversationId, note, reply, result, updatedAt: after.updatedAt },
          waitsFor: JSON.stringify(waitsFor),
        });
        if (after.state !== before.state) announce(after);
        return after;
      });
    },

    list(filter: TaskFilter): { tasks: StoredTask[]; total: number } {
      const { after, limit } = filter;
      const rows = list.all({ ...filterOf(filter), at: after?.updatedAt ?? null, id: after?.id ?? null, limit });
      return { tasks: (rows as Row[]).map(taskIn), total: countOf(count.get(filterOf(filter))) };
    },

    configsOf,
    /** @param check throws when it must not be stored; it gets the configurations that the task has */
    putConfig: (config: PushConfig, check: (known: readonly PushConfig[]) => void): Promise<void> =>
      writes.run(() => {
        check(configsOf(config.taskId));
        putConfig.run(config);
      }),
    dropConfig: (taskId: string, id: string): Promise<boolean> =>
      writes.run(() => dropConfig.run(taskId, id).changes > 0),

    /** Removes the push configurations of a caller, with undelivered notifications. @returns how many there were */
    dropConfigsOf: (caller: string): Promise<number> => writes.run(() => Number(dropConfigs.run(caller).changes)),

    /** Removes tasks that ended before an instant. */
    dropEnded: (before: number): Promise<void> => writes.run(() => void dropOld.run(before)),

    async close(): Promise<void> {
      await writes.drain();
      file.close();
    },
  };
}
