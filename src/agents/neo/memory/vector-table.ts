/**
 * The `vectors` table. Every method is synchronous; `put` must run inside a transaction of the connection's group
 * commit.
 */
import type { DatabaseSync } from 'node:sqlite';
import { sketchOf } from './sketch.ts';

/** Bytes from SQLite may begin at any offset of their buffer; typed arrays need a multiple of four. */
const aligned = (bytes: Uint8Array) => bytes.slice().buffer as ArrayBuffer;
const bytesOf = (vector: Float32Array | Uint32Array) =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);

/** Makes the table's operations over an open connection. */
export function vectorTable(db: DatabaseSync) {
  // A memory that was forgotten meanwhile gets no vector.
  const put = db.prepare(`
    INSERT INTO vectors (memory, space, sketch, vector) SELECT seq, ?, ?, ? FROM memories WHERE seq = ?
    ON CONFLICT (memory) DO UPDATE SET space = excluded.space, sketch = excluded.sketch, vector = excluded.vector`);
  const sketches = db.prepare(`
    SELECT memory AS seq, sketch FROM vectors WHERE memory > ? AND space = ? ORDER BY memory LIMIT ?`);
  const vectors = db.prepare(`
    SELECT memory AS seq, vector FROM vectors WHERE space = ? AND memory IN (SELECT value FROM json_each(?))`);
  const missing = db.prepare(`
    SELECT seq, text FROM memories
    WHERE seq > ?1 AND seq <= ?2 AND NOT EXISTS (SELECT 1 FROM vectors WHERE memory = seq AND space = ?3)
    ORDER BY seq LIMIT ?4`);
  const spaceOf = db.prepare(`
    SELECT space FROM vectors WHERE substr(space, 1, length(?1)) = ?1 ORDER BY memory DESC LIMIT 1`);
  const last = db.prepare('SELECT max(seq) AS seq FROM memories');

  return {
    /** @param vector of length 1 */
    put(seq: number, space: string, vector: Float32Array): void {
      put.run(space, bytesOf(sketchOf(vector)), bytesOf(vector), seq);
    },

    /** A page of sketches after a memory. */
    sketches: (space: string, after: number, limit: number) =>
      (sketches.all(after, space, limit) as { seq: number; sketch: Uint8Array }[]).map(({ seq, sketch }) => ({
        seq,
        sketch: new Uint32Array(aligned(sketch)),
      })),

    /** The vectors of these memories, if they have one in the space. */
    vectors: (space: string, seqs: readonly number[]) =>
      (vectors.all(space, JSON.stringify(seqs)) as { seq: number; vector: Uint8Array }[]).map(({ seq, vector }) => ({
        seq,
        vector: new Float32Array(aligned(vector)),
      })),

    /** Up to `limit` memories from `after` (exclusive) to `through` without a vector in the space. */
    missing: (after: number, through: number, space: string, limit: number) =>
      missing.all(after, through, space, limit) as { seq: number; text: string }[],

    /** The space of a model's newest vector; the model's spaces have this prefix. */
    spaceOf: (beginning: string) => (spaceOf.get(beginning) as { space: string } | undefined)?.space,

    /** The newest memory's number; 0 when there is none. */
    newestSeq: () => (last.get() as { seq: number | null }).seq ?? 0,
  };
}
