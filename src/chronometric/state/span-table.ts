/** The `spans` table: who was there when. What writes must run inside a transaction. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { areOne, joined } from './spans.ts';
import { type ActiveSpan, ASLEEP_AFTER_MS } from './state.ts';

/**
 * So many stretches are kept, which is more than a year's, even of days with fifty of them. By number and not by age: a clock that is
 * wrong by years for a moment must not take anything away.
 */
export const SPANS_KEPT = 20_000;

/** Makes the table's operations over an open connection. */
export function spanTable(db: DatabaseSync) {
  // Spans do not overlap: of those that began before, only the last can reach into the stretch.
  const reachingInto = `
    SELECT began_at AS "from", ended_at AS "to"
      FROM spans
     WHERE began_at >= coalesce((SELECT max(began_at) FROM spans WHERE began_at <= ?1), ?1) AND began_at <= ?2 AND ended_at >= ?1
     ORDER BY began_at`;
  const between = db.prepare(reachingInto);
  const walked = db.prepare(reachingInto);
  const remove = db.prepare('DELETE FROM spans WHERE began_at = ?');
  const insert = db.prepare(`
    INSERT INTO spans (began_at, ended_at) VALUES (?, ?)
    ON CONFLICT (began_at) DO UPDATE SET ended_at = excluded.ended_at`);
  const oldestKept = db.prepare('SELECT began_at AS at FROM spans ORDER BY began_at DESC LIMIT 1 OFFSET ?');
  const removeBefore = db.prepare('DELETE FROM spans WHERE began_at < ?');

  const spanOf = (row: Record<string, SQLOutputValue>) => ({ from: row.from as number, to: row.to as number });
  const spansBetween = (from: number, to: number) => between.all(from, to).map(spanOf);

  return {
    /** Those that reach into `[from, to]`, whole, in order. */
    between: spansBetween,

    /** The same, one after the other, for those who may not need them all. One walk at a time. */
    walk: (from: number, to: number): Iterable<ActiveSpan> => walked.iterate(from, to).map(spanOf),

    /** Adds a stretch; whatever it touches becomes one with it. */
    add(added: ActiveSpan): void {
      const near = spansBetween(added.from - ASLEEP_AFTER_MS, added.to + ASLEEP_AFTER_MS);
      const touched = near.filter((span) => areOne(span, added));
      if (touched.some(({ from, to }) => from <= added.from && to >= added.to)) return;
      const whole = joined([added, ...touched]);
      for (const { from } of touched) if (from !== whole.from) remove.run(from);
      insert.run(whole.from, whole.to);
    },

    /** Forgets the oldest beyond a number. */
    keep(number: number): void {
      const oldest = oldestKept.get(number - 1);
      if (oldest) removeBefore.run(oldest.at as number);
    },
  };
}
