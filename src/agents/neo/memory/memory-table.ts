/**
 * The `memories` table and its text index. Every method is synchronous; writes must run inside a transaction of the
 * connection's group commit.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { MemoryKind, NewMemory, Source, StoredMemory } from './memory.ts';

type Row = Record<string, SQLOutputValue>;

/** The columns are typed by the schema (STRICT tables); the casts below rely on this. */
function memoryOf(row: Row): StoredMemory {
  const claim =
    row.claim === null
      ? {}
      : {
          claim: { subject: row.subject as string, attribute: row.attribute as string, value: row.value as string },
        };
  return {
    seq: row.seq as number,
    id: row.id as string,
    kind: row.kind as MemoryKind,
    text: row.text as string,
    ...claim,
    salience: row.salience as number,
    strength: row.strength as number,
    createdAt: row.created_at as number,
    lastSeenAt: row.last_seen_at as number,
    turnId: row.turn_id as string,
    conversationId: row.conversation_id as string,
    ...(row.superseded_by === null ? {} : { supersededBy: row.superseded_by as string }),
  };
}

const COLUMNS = `seq, id, kind, text, subject, attribute, value, claim, salience, strength, created_at, last_seen_at, turn_id,
  conversation_id, superseded_by`;

/**
 * The keys by which memories are equal or contradictory, computed by the caller. `claim` is a JSON array of subject and
 * attribute, with the subject `user` for the person.
 */
export type Keys = { readonly normalized: string; readonly claim?: string; readonly claimValue?: string };

export type ListQuery = {
  readonly kind?: MemoryKind | undefined;
  /** Also memories that newer ones contradict. */
  readonly superseded: boolean;
  readonly limit: number;
};

/** Makes the table's operations over an open connection. */
export function memoryTable(db: DatabaseSync) {
  const byNormalized = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE gist = ?`);
  const byClaim = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE claim = ? AND claim_value = ?`);
  const byId = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE id = ?`);
  const byPrefix = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT ?2`);
  const insert = db.prepare(`
    INSERT INTO memories (id, kind, text, gist, subject, attribute, value, claim, claim_value, salience, strength, created_at,
                          last_seen_at, turn_id, conversation_id, search)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
    RETURNING seq`);
  const index = db.prepare('INSERT INTO memory_text (rowid, search) VALUES (?, ?)');
  const unindex = db.prepare(`
    INSERT INTO memory_text (memory_text, rowid, search) SELECT 'delete', seq, search FROM memories WHERE seq = ?`);
  const remove = db.prepare('DELETE FROM memories WHERE seq = ?');
  const sighted = db.prepare(
    'INSERT INTO sightings (memory, turn_id, seen_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const strengthen = db.prepare(`
    UPDATE memories SET strength = strength + 1, salience = ?, last_seen_at = max(last_seen_at, ?) WHERE seq = ?`);
  // The newest holds; of two equally new ones, the one that was learned first later.
  const newestOf = db.prepare(`SELECT id FROM memories WHERE claim = ? ORDER BY last_seen_at DESC, seq DESC LIMIT 1`);
  const supersede = db.prepare(`
    UPDATE memories SET superseded_by = CASE WHEN id = ?2 THEN NULL ELSE ?2 END
    WHERE claim = ?1 AND superseded_by IS NOT CASE WHEN id = ?2 THEN NULL ELSE ?2 END`);
  const claimOf = db.prepare('SELECT claim FROM memories WHERE seq = ?');
  const many = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE seq IN (SELECT value FROM json_each(?))`);
  const weightiest = db.prepare(`SELECT ${COLUMNS} FROM memories ORDER BY salience DESC LIMIT ?`);
  const newest = db.prepare(`SELECT ${COLUMNS} FROM memories ORDER BY last_seen_at DESC LIMIT ?`);
  const pinned = db.prepare(`
    SELECT ${COLUMNS} FROM memories WHERE kind = ? AND superseded_by IS NULL ORDER BY salience DESC, seq DESC LIMIT ?`);
  // Claims are JSON arrays; these begin with the person.
  const aboutPerson = db.prepare(`
    SELECT ${COLUMNS} FROM memories
    WHERE claim >= '["user",' AND claim < '["user"-' AND kind = 'fact' AND superseded_by IS NULL
    ORDER BY salience DESC, seq DESC LIMIT ?`);
  const list = db.prepare(`
    SELECT ${COLUMNS} FROM memories
    WHERE (?1 IS NULL OR kind = ?1) AND (?2 OR superseded_by IS NULL)
    ORDER BY seq DESC LIMIT ?3`);
  const after = db.prepare(`SELECT ${COLUMNS} FROM memories WHERE seq > ? ORDER BY seq LIMIT ?`);
  const turnsOf = db.prepare(
    'SELECT turn_id AS turnId, seen_at AS at FROM sightings WHERE memory = ? ORDER BY seen_at',
  );
  const count = db.prepare('SELECT count(*) AS n FROM memories');

  const some = (rows: unknown[]) => (rows as Row[]).map(memoryOf);
  const one = (row: unknown) => (row === undefined ? undefined : memoryOf(row as Row));

  return {
    /** The equal memory: with the same text, or about the same claim with the same value. */
    same({ normalized, claim, claimValue }: Keys): StoredMemory | undefined {
      const found = one(byNormalized.get(normalized));
      if (found || claim === undefined) return found;
      return one(byClaim.get(claim, claimValue!));
    },

    /** @param search the words for the text index */
    insert(id: string, item: NewMemory, keys: Keys, source: Source, search: string): number {
      const { kind, text, salience, claim } = item;
      const { seq } = insert.get(
        id,
        kind,
        text,
        keys.normalized,
        claim?.subject ?? null,
        claim?.attribute ?? null,
        claim?.value ?? null,
        keys.claim ?? null,
        keys.claimValue ?? null,
        salience,
        source.at,
        source.at,
        source.turnId,
        source.conversationId,
        search,
      ) as { seq: number };
      index.run(seq, search);
      sighted.run(seq, source.turnId, source.at);
      return seq;
    },

    /** Counts a repetition. @returns false when it was from this very turn, and nothing has changed */
    strengthen(seq: number, salience: number, { turnId, at }: Source): boolean {
      if (sighted.run(seq, turnId, at).changes === 0) return false;
      strengthen.run(salience, at, seq);
      return true;
    },

    /** Of contradictory memories the newest holds, and the others are marked with its id. */
    settleClaim(claim: string): void {
      const winner = newestOf.get(claim) as { id: string } | undefined;
      if (winner) supersede.run(claim, winner.id);
    },

    /** Deletes a memory, with its words, its vector and its contradiction marks. */
    remove(seq: number): void {
      const { claim } = (claimOf.get(seq) ?? { claim: null }) as { claim: string | null };
      unindex.run(seq);
      remove.run(seq);
      if (claim !== null) this.settleClaim(claim);
    },

    get: (id: string) => one(byId.get(id)),

    /** Memories whose id begins like this, at most `limit`. */
    startingWith: (prefix: string, limit: number): StoredMemory[] => some(byPrefix.all(prefix, limit)),

    /** The existing ones of these memories, in no order. */
    many: (seqs: readonly number[]): StoredMemory[] => some(many.all(JSON.stringify(seqs))),

    weightiest: (limit: number): StoredMemory[] => some(weightiest.all(limit)),

    newest: (limit: number): StoredMemory[] => some(newest.all(limit)),

    /** The most important ones of a kind that are not contradicted. */
    pinned: (kind: MemoryKind, limit: number): StoredMemory[] => some(pinned.all(kind, limit)),

    /** The most important facts about the person that are not contradicted. */
    factsAboutPerson: (limit: number): StoredMemory[] => some(aboutPerson.all(limit)),

    /** Newest first. */
    list: ({ kind, superseded, limit }: ListQuery): StoredMemory[] =>
      some(list.all(kind ?? null, superseded ? 1 : 0, limit)),

    /** Up to `limit` memories after a position in the order of learning. */
    after: (seq: number, limit: number): StoredMemory[] => some(after.all(seq, limit)),

    /** The turns that a memory was learned from, oldest first. */
    turnsOf: (seq: number) => turnsOf.all(seq) as { turnId: string; at: number }[],

    count: () => (count.get() as { n: number }).n,
  };
}
