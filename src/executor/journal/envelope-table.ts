/** The `envelopes` table: the chains themselves. Every method is synchronous and runs inside the caller's transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { ChainHead, Sealed } from '../receipt/chain.ts';
import { sha256Hex } from '../receipt/envelope.ts';

export type EnvelopeRow = { readonly seq: number; readonly text: string };

export function envelopeTable(db: DatabaseSync) {
  const insert = db.prepare('INSERT INTO envelopes (intent_id, seq, envelope) VALUES (?, ?, ?)');
  const of = db.prepare('SELECT seq, envelope FROM envelopes WHERE intent_id = ? ORDER BY seq');
  const first = db.prepare('SELECT envelope FROM envelopes WHERE intent_id = ? ORDER BY seq LIMIT 1');
  const last = db.prepare('SELECT seq, envelope FROM envelopes WHERE intent_id = ? ORDER BY seq DESC LIMIT 1');
  const keep = db.prepare(`
    INSERT INTO set_aside (intent_id, seq, envelope, at)
    SELECT intent_id, seq, envelope, ? FROM envelopes WHERE intent_id = ? AND seq > ?`);
  const remove = db.prepare('DELETE FROM envelopes WHERE intent_id = ? AND seq > ?');

  return {
    append: (intentId: string, { envelope, text }: Sealed): void => void insert.run(intentId, envelope.seq, text),

    of: (intentId: string): EnvelopeRow[] =>
      of.all(intentId).map(({ seq, envelope }) => ({ seq: seq as number, text: envelope as string })),

    /** What was put down when the intent was accepted. */
    first: (intentId: string) => first.get(intentId)?.envelope as string | undefined,

    /** Whether the chain ends in this envelope, by a look at its last row. */
    endsIn(intentId: string, { seq, hash }: ChainHead): boolean {
      const row = last.get(intentId);
      return row !== undefined && row.seq === seq && sha256Hex(row.envelope as string) === hash;
    },

    /** Moves the rows after `goodSeq` aside. */
    setAside(intentId: string, goodSeq: number, at: number): void {
      keep.run(at, intentId, goodSeq);
      remove.run(intentId, goodSeq);
    },
  };
}
