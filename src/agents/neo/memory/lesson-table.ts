/**
 * The `lessons` table: turns to learn from. Every method is synchronous; writes must run inside a transaction of the
 * connection's group commit.
 */
import type { DatabaseSync } from 'node:sqlite';

/** A turn that waits for learning. */
export type Lesson = {
  readonly turnId: string;
  readonly conversationId: string;
  /** How often it has been tried. */
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly dueAt: number;
};

export type LessonState = 'waiting' | 'learned' | 'given_up' | 'dropped';

/** How many settled lessons are kept, to recognize a turn that is offered again. */
const SETTLED_KEPT = 2048;

const COLUMNS = 'turn_id AS turnId, conversation_id AS conversationId, attempts, due_at AS dueAt';

/** Makes the table's operations over an open connection. */
export function lessonTable(db: DatabaseSync) {
  const add = db.prepare(`
    INSERT INTO lessons (turn_id, conversation_id, offered_at, state, due_at) VALUES (?1, ?2, ?3, 'waiting', ?3)
    ON CONFLICT DO NOTHING`);
  const dropOldest = db.prepare(`
    UPDATE lessons SET state = 'dropped', reason = ?1
    WHERE turn_id IN (
      SELECT turn_id FROM lessons WHERE state = 'waiting' ORDER BY offered_at DESC, turn_id DESC LIMIT -1 OFFSET ?2
    )`);
  const prune = db.prepare(`
    DELETE FROM lessons WHERE turn_id IN (
      SELECT turn_id FROM lessons WHERE state <> 'waiting' ORDER BY offered_at DESC LIMIT -1 OFFSET ${SETTLED_KEPT}
    )`);
  const next = db.prepare(`SELECT ${COLUMNS} FROM lessons WHERE state = 'waiting' ORDER BY due_at, turn_id LIMIT 1`);
  const settle = db.prepare(`UPDATE lessons SET state = ?, reason = ? WHERE turn_id = ? AND state = 'waiting'`);
  const putOff = db.prepare(`
    UPDATE lessons SET attempts = attempts + 1, due_at = ?, reason = ? WHERE turn_id = ? AND state = 'waiting'`);
  const counts = db.prepare('SELECT state, count(*) AS n FROM lessons GROUP BY state');

  return {
    /**
     * Queues a turn, unless it is known. Beyond `most` waiting turns the oldest are dropped.
     *
     * @returns how many were dropped
     */
    add(turnId: string, conversationId: string, now: number, most: number): number {
      if (add.run(turnId, conversationId, now).changes === 0) return 0;
      return Number(dropOldest.run(`more than ${most} turns were waiting`, most).changes);
    },

    /** The waiting turn that is due first. */
    next: () => next.get() as Lesson | undefined,

    /** Ends a waiting lesson. @returns false when it was not waiting any more */
    settle(turnId: string, state: Exclude<LessonState, 'waiting'>, reason?: string): boolean {
      const { changes } = settle.run(state, reason ?? null, turnId);
      prune.run();
      return changes > 0;
    },

    /** The attempt failed; the lesson is due again later. */
    putOff(turnId: string, dueAt: number, reason: string): void {
      putOff.run(dueAt, reason, turnId);
    },

    /** How many of the stored lessons are in each state. */
    counts(): Readonly<Record<LessonState, number>> {
      const found = Object.fromEntries(
        (counts.all() as { state: LessonState; n: number }[]).map((c) => [c.state, c.n]),
      );
      return { waiting: 0, learned: 0, given_up: 0, dropped: 0, ...found };
    },
  };
}
