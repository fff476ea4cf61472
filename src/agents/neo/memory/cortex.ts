/**
 * The file of the memories, `cortex.db` beside `neo.db`. Several connections may have it open: Neo, and the command
 * line that lists and forgets while Neo runs or sleeps. Every write resolves when it is on disk.
 */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../../../kit/clock/clock.ts';
import { GroupCommit } from '../../../kit/sqlite/group-commit.ts';
import { openDatabase } from '../../../kit/sqlite/open.ts';
import { storageError } from '../../../kit/sqlite/sqlite-error.ts';
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import { checkNewMemory, type NewMemory, type RememberResult, type Source, type StoredMemory } from './memory.ts';
import { type Keys, type ListQuery, memoryTable } from './memory-table.ts';
import { sketchOf } from './sketch.ts';
import { normalizeText, searchTextOf, textSearch } from './text-search.ts';

// The `lessons` table: turns to learn from. Every method is synchronous; writes must run inside a transaction of the
// connection's group commit.

/** A turn that waits for learning. */
export type Lesson = {
  readonly turnId: string;
  readonly conversationId: string;
  /** How often it has been tried. */
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly dueAt: number;
};

type LessonState = 'waiting' | 'learned' | 'given_up' | 'dropped';

/** How many settled lessons are kept, to recognize a turn that is offered again. */
const SETTLED_KEPT = 2048;

const COLUMNS = 'turn_id AS turnId, conversation_id AS conversationId, attempts, due_at AS dueAt';

/** Makes the table's operations over an open connection. */
function lessonTable(db: DatabaseSync) {
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

// The `vectors` table. Every method is synchronous; `put` must run inside a transaction of the connection's group
// commit.

/** Bytes from SQLite may begin at any offset of their buffer; typed arrays need a multiple of four. */
const aligned = (bytes: Uint8Array) => bytes.slice().buffer as ArrayBuffer;
const bytesOf = (vector: Float32Array | Uint32Array) =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);

/** Makes the table's operations over an open connection. */
function vectorTable(db: DatabaseSync) {
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

/** The path of the memories of a data folder. */
export function cortexPath(dataDir: string): string {
  return join(dataDir, 'cortex.db');
}

/** Models use several names for the person. */
const PERSON = new Set(['user', 'person', 'human']);

function keysOf({ text, claim }: NewMemory): Keys {
  const normalized = normalizeText(text);
  if (!claim) return { normalized };
  const subject = normalizeText(claim.subject);
  const claimKey = [PERSON.has(subject) ? 'user' : subject, normalizeText(claim.attribute)];
  return { normalized, claim: JSON.stringify(claimKey), claimValue: normalizeText(claim.value) };
}

/** Each repetition raises salience a little, but never above 1. */
export function strengthened(salience: number, again: number): number {
  const base = Math.max(salience, again);
  return base + (1 - base) * 0.1;
}

export type CortexOptions = { path: string; clock: Clock };

/**
 * Opens or creates the file.
 *
 * @throws the errors of `openDatabase`: `unavailable` when the file is damaged, `conflict` when it belongs to a newer
 *   version
 */
export function openCortex({ path, clock }: CortexOptions) {
  const migrations = new URL('./migrations/', import.meta.url);
  // Shared: the lock of neo.db decides which Neo runs, and the command line must be able to open this file beside it.
  const file = openDatabase({ path, migrations, clock, lock: 'shared' });
  // Deleted content is overwritten, not only unlinked.
  file.db.exec('PRAGMA secure_delete = ON');
  const writes = new GroupCommit(file.db);
  const table = memoryTable(file.db);
  const search = textSearch(file.db);

  function rememberOne(item: NewMemory, source: Source): RememberResult {
    const keys = keysOf(item);
    const known = table.same(keys);
    if (known) {
      const again = table.strengthen(known.seq, strengthened(known.salience, item.salience), source);
      // A memory that is learned again may have been contradicted meanwhile; now it is the newest.
      const claimKey = keysOf(known).claim;
      if (again && claimKey !== undefined) table.settleClaim(claimKey);
      return { id: known.id, outcome: again ? 'strengthened' : 'known' };
    }
    const id = uuidv7({ msecs: Math.max(0, source.at) });
    const { text, claim } = item;
    const searchText = searchTextOf(claim ? `${text}\n${claim.subject} ${claim.attribute}` : text);
    table.insert(id, item, keys, source, searchText);
    if (keys.claim !== undefined) table.settleClaim(keys.claim);
    return { id, outcome: 'new' };
  }

  /** Translates a read error. */
  function reading<T>(read: () => T): T {
    try {
      return read();
    } catch (thrown) {
      const error = storageError(thrown);
      if (!error.retryable || error.code !== 'unavailable') throw error;
      const reason = thrownText(thrown);
      throw new ReveilleError('unavailable', `${file.path} cannot be read: ${reason}; retry later`, { cause: thrown });
    }
  }

  return {
    path: file.path,
    vectors: vectorTable(file.db),
    lessons: lessonTable(file.db),

    /** Runs writes in a transaction; the operation is synchronous. */
    write: <T>(operation: () => T): Promise<T> => writes.run(operation),

    /** {@link remember} as a part of an operation of {@link write}. */
    rememberIn: (items: readonly NewMemory[], source: Source): RememberResult[] =>
      items.map((item) => rememberOne(item, source)),

    /**
     * Stores memories, or strengthens equal ones; a contradiction is kept and marked. All or none.
     *
     * @throws ReveilleError `invalid_request` for an invalid memory, `unavailable` when nothing was stored
     */
    async remember(items: readonly NewMemory[], source: Source): Promise<RememberResult[]> {
      for (const item of items) checkNewMemory(item);
      return writes.run(() => items.map((item) => rememberOne(item, source)));
    },

    /**
     * Deletes memories permanently: text, words, vectors. A memory that one of them contradicted holds again.
     *
     * @returns how many there were
     */
    async forget(ids: readonly string[]): Promise<number> {
      const forgotten = await writes.run(() => {
        const found = new Map(ids.map((id) => [id, table.get(id)]));
        const existing = [...found.values()].filter((memory) => memory !== undefined);
        for (const { seq } of existing) table.remove(seq);
        return existing.length;
      });
      // The write-ahead log still contains the old pages. While another process reads, a later checkpoint empties it.
      reading(() => file.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get());
      return forgotten;
    },

    findByText: (query: string, limit: number) => reading(() => search.find(query, limit)),
    many: (seqs: readonly number[]): StoredMemory[] => reading(() => table.many(seqs)),
    /** The most important and the newest memories, each up to `limit`; some may be in both. */
    foremost: (limit: number): StoredMemory[] => reading(() => [...table.weightiest(limit), ...table.newest(limit)]),
    pinned: (kind: StoredMemory['kind'], limit: number): StoredMemory[] => reading(() => table.pinned(kind, limit)),
    factsAboutPerson: (limit: number): StoredMemory[] => reading(() => table.factsAboutPerson(limit)),
    list: (query: ListQuery): StoredMemory[] => reading(() => table.list(query)),
    startingWith: (prefix: string, limit: number): StoredMemory[] => reading(() => table.startingWith(prefix, limit)),
    after: (seq: number, limit: number): StoredMemory[] => reading(() => table.after(seq, limit)),
    turnsOf: (seq: number) => reading(() => table.turnsOf(seq)),
    count: (): number => reading(() => table.count()),

    /** Waits for pending writes and closes the file. */
    async close(): Promise<void> {
      await writes.drain();
      file.close();
    },
  };
}
export type Cortex = ReturnType<typeof openCortex>;
