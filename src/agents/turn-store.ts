/**
 * The turns and sessions of agents without a daemon. The file contains their messages, so only its owner can read it
 * (0600).
 */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import { storageError } from '../kit/sqlite/sqlite-error.ts';
import type { TurnFilter } from '../router/agent-host.ts';
import type { Sessions } from '../turns/attempts.ts';
import type { Turn } from '../turns/turn.ts';
import { openTurnStore, type TurnStoreOptions } from '../turns/turn-store.ts';
import { TURN_COLUMNS, turnOf } from '../turns/turn-table.ts';
import type { MachineTurnStatus } from '../wire/machine-turn.ts';
import { readUsage, type TurnUsage } from '../wire/usage.ts';

export type AgentTurnStore = ReturnType<typeof openAgentTurnStore>;

/**
 * Opens and locks the store of a data folder until it is closed.
 *
 * @param notify called after a change; without `onTurnReport` no turn reports are stored
 * @throws ReveilleError as `openDatabase`
 */
export function openAgentTurnStore(
  dataDir: string,
  clock: Clock,
  notify: Pick<TurnStoreOptions, 'onChange' | 'onTurnReport'> = {},
) {
  const { db, writes, run, ...turns } = openTurnStore({
    path: join(dataDir, 'turns.db'),
    migrations: new URL('./migrations', import.meta.url),
    ...{ clock, perUser: true, ...notify },
    hooks: () => ({
      changed(turn, { ending }) {
        if (ending?.session === undefined) return;
        putSession(turn, ending.session, ending.cwd, turn.finishedAt!, ending.sessionUsage);
      },
    }),
  });
  const { get: getSession, put: putSession } = sessionTable(db);
  const list = db.prepare(`
    SELECT ${TURN_COLUMNS} FROM turns
    WHERE user_id = :userId
      AND (:conversationId IS NULL OR conversation_id = :conversationId)
      AND (:fireId IS NULL OR fire_id = :fireId)
      AND (:status IS NULL OR status = :status)
      AND (:before IS NULL OR seq < :before)
    ORDER BY seq DESC
    LIMIT :limit`);
  const counts = db.prepare('SELECT status, count(*) AS turns FROM turns WHERE user_id = ? GROUP BY status');
  const prune = db.prepare('DELETE FROM turns WHERE finished_at < ?');

  return {
    ...turns,

    sessions: {
      get: getSession,
      keep: (turn, session, cwd) => run(() => putSession(turn, session, cwd, clock.now())),
    } satisfies Sessions as Sessions,

    /** Newest first. */
    list({ userId, conversationId, fireId, status, before, limit }: TurnFilter): Turn[] {
      try {
        const filter = { conversationId: conversationId ?? null, fireId: fireId ?? null, status: status ?? null };
        return list.all({ userId, limit, ...filter, before: before ?? null }).map(turnOf);
      } catch (thrown) {
        throw storageError(thrown);
      }
    },

    counts(userId: string): Partial<Record<MachineTurnStatus, number>> {
      const rows = counts.all(userId) as { status: MachineTurnStatus; turns: number }[];
      return Object.fromEntries(rows.map(({ status, turns: number }) => [status, number]));
    },

    /** Deletes turns that ended before an instant. */
    prune: (before: number): Promise<void> => writes.run(() => void prune.run(before)),
  };
}

/** The `conversations` table: the agent's own session of each conversation. */
function sessionTable(db: DatabaseSync) {
  const get = db.prepare(`
    SELECT session, cwd, usage FROM conversations
    WHERE user_id = :userId AND conversation_id = :conversationId AND preset = :preset`);
  // The folder of its first turn stays, because the session's files are there.
  const put = db.prepare(`
    INSERT INTO conversations (user_id, conversation_id, preset, session, cwd, usage, created_at, updated_at)
    VALUES (:userId, :conversationId, :preset, :session, :cwd, :usage, :at, :at)
    ON CONFLICT DO UPDATE SET
      session = excluded.session,
      usage = CASE WHEN excluded.session IS conversations.session
        THEN coalesce(excluded.usage, conversations.usage) ELSE excluded.usage END,
      cwd = CASE WHEN conversations.session IS NULL OR conversations.cwd IS NULL THEN excluded.cwd ELSE conversations.cwd END,
      updated_at = excluded.updated_at`);
  const keyOf = ({ userId = '', conversationId, preset = '' }: SessionKey) => ({ userId, conversationId, preset });

  return {
    get(turn: SessionKey): ReturnType<Sessions['get']> {
      try {
        const row = get.get(keyOf(turn)) as Record<'session' | 'cwd' | 'usage', string | null> | undefined;
        if (!row) return undefined;
        const usage = readUsage(row.usage);
        return { session: row.session ?? undefined, cwd: row.cwd ?? undefined, ...(usage && { usage }) };
      } catch (thrown) {
        throw storageError(thrown);
      }
    },

    /** Call it inside a transaction of the store. */
    put(
      turn: SessionKey,
      session: string | undefined,
      cwd: string | undefined,
      at: number,
      usage?: TurnUsage | undefined,
    ): void {
      const counted = usage === undefined ? null : JSON.stringify(usage);
      put.run({ ...keyOf(turn), session: session ?? null, cwd: cwd ?? null, usage: counted, at });
    },
  };
}

type SessionKey = Pick<Turn, 'userId' | 'conversationId' | 'preset'>;
