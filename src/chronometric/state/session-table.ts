/**
 * The `sessions` and `last_prompt` tables. Writes must run in a transaction. `last_call` and the column
 * `sessions.last_call_at` are older names, from when tool calls counted as prompts; older servers on the same file still
 * write `last_call`.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Session } from './state.ts';

type Row = Record<string, SQLOutputValue>;

export type OpenSession = Pick<Session, 'id' | 'intent' | 'startedAt'> & {
  /** Its start, or the last prompt that continued it. */
  readonly lastSignAt: number;
};

export type Ended = Session & Required<Pick<Session, 'endedAt' | 'ending'>>;

const COLUMNS =
  'id, intent, summary, started_at, last_call_at, ended_at, ending, last_seen_at, active_ms, active_since_break_ms';

/** The columns are typed by the schema (STRICT tables), which the casts below rely on. */
const openOf = (row: Row): OpenSession => ({
  id: row.id as string,
  intent: JSON.parse(row.intent as string) as string,
  startedAt: row.started_at as number,
  lastSignAt: row.last_call_at as number,
});

function endedOf(row: Row): Ended {
  const { id, intent, startedAt } = openOf(row);
  return {
    id,
    intent,
    startedAt,
    lastSeenAt: row.last_seen_at as number,
    endedAt: row.ended_at as number,
    ...(row.summary !== null && { summary: JSON.parse(row.summary as string) as string }),
    ending: row.ending as Ended['ending'],
    activeMs: row.active_ms as number,
    activeSinceBreakMs: row.active_since_break_ms as number,
  };
}

/** The tables' operations over an open connection. */
export function sessionTable(db: DatabaseSync) {
  const open = db.prepare(`SELECT ${COLUMNS} FROM sessions WHERE ended_at IS NULL`);
  const endedBetween = db.prepare(`
    SELECT ${COLUMNS}
      FROM sessions
     WHERE ended_at >= ?1 AND (ended_at > ?1 OR started_at >= ?1) AND started_at < ?2
     ORDER BY started_at, rowid`);
  const insert = db.prepare('INSERT INTO sessions (id, intent, started_at, last_call_at) VALUES (?, ?, ?, ?)');
  const updateLastSign = db.prepare('UPDATE sessions SET last_call_at = ? WHERE id = ?');
  const end = db.prepare(`
    UPDATE sessions
       SET ended_at = ?, ending = ?, summary = ?, last_seen_at = ?, active_ms = ?, active_since_break_ms = ?
     WHERE id = ?`);
  const lastPrompt = db.prepare('SELECT at FROM last_prompt');
  const setLastPrompt = db.prepare(`
    INSERT INTO last_prompt (only, at) VALUES (1, ?) ON CONFLICT (only) DO UPDATE SET at = excluded.at`);

  return {
    open(): OpenSession | undefined {
      const row = open.get();
      return row && openOf(row);
    },

    /** Ended sessions that overlap `[from, to)`, oldest first. */
    endedBetween: (from: number, to: number): Ended[] => endedBetween.all(from, to).map(endedOf),

    insert({ id, intent, startedAt, lastSignAt }: OpenSession): void {
      insert.run(id, JSON.stringify(intent), startedAt, lastSignAt);
    },

    /** A prompt that continues the session. */
    setLastSign(id: string, promptedAt: number): void {
      updateLastSign.run(promptedAt, id);
    },

    end({ id, endedAt, ending, summary, lastSeenAt, activeMs, activeSinceBreakMs }: Ended): void {
      const summaryJson = summary === undefined ? null : JSON.stringify(summary);
      end.run(endedAt, ending, summaryJson, lastSeenAt, activeMs, activeSinceBreakMs, id);
    },

    lastPromptAt: () => lastPrompt.get()?.at as number | undefined,

    prompted(now: number): void {
      setLastPrompt.run(now);
    },
  };
}
