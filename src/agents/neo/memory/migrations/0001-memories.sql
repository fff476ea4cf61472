-- Instants are milliseconds since the epoch, UTC.

CREATE TABLE memories (
  -- The row of the text index. AUTOINCREMENT: a number that was forgotten is never given again.
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT    NOT NULL UNIQUE,
  kind            TEXT    NOT NULL CHECK (kind IN ('fact', 'event', 'preference', 'goal', 'pattern')),
  text            TEXT    NOT NULL,
  -- What makes two texts the same memory.
  gist            TEXT    NOT NULL UNIQUE,
  -- Set together: "the <attribute> of <subject> is <value>", which can hold for one value at a time.
  subject         TEXT,
  attribute       TEXT,
  value           TEXT,
  -- The gists of subject and attribute, and of the value: memories with the same claim and another value contradict each other.
  claim           TEXT,
  claim_value     TEXT,
  salience        REAL    NOT NULL CHECK (salience BETWEEN 0 AND 1),
  -- In how many turns it was learned.
  strength        INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  last_seen_at    INTEGER NOT NULL,
  -- Where it was learned first.
  turn_id         TEXT    NOT NULL,
  conversation_id TEXT    NOT NULL,
  -- The newer memory that contradicts this one.
  superseded_by   TEXT    REFERENCES memories (id) ON DELETE SET NULL,
  -- The words of text, subject and attribute as the text index takes them.
  search          TEXT    NOT NULL
) STRICT;

CREATE INDEX memories_by_claim ON memories (claim) WHERE claim IS NOT NULL;
CREATE INDEX memories_by_superseder ON memories (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_by_age ON memories (last_seen_at);
CREATE INDEX memories_by_salience ON memories (salience);
CREATE INDEX memories_by_kind ON memories (kind, salience);

CREATE VIRTUAL TABLE memory_text USING fts5 (
  search,
  content = 'memories',
  content_rowid = 'seq',
  tokenize = 'porter unicode61 remove_diacritics 2'
);

-- What is forgotten leaves the index at once, not when segments happen to be merged.
INSERT INTO memory_text (memory_text, rank) VALUES ('secure-delete', 1);

-- The turns in which a memory was learned: one turn counts once, however often its learning is repeated.
CREATE TABLE sightings (
  memory  INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  turn_id TEXT    NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (memory, turn_id)
) STRICT, WITHOUT ROWID;

-- Embeddings. A space is a model and its number of dimensions; only vectors of one space can be compared.
CREATE TABLE vectors (
  memory INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  space  TEXT NOT NULL,
  -- The signs of the vector, a bit each.
  sketch BLOB NOT NULL,
  -- Of length 1; 32-bit floats, little-endian.
  vector BLOB NOT NULL
) STRICT;

-- The queue of turns to learn from. Settled ones stay for a while, so that a turn is not learned from twice.
CREATE TABLE lessons (
  turn_id         TEXT    PRIMARY KEY,
  conversation_id TEXT    NOT NULL,
  offered_at      INTEGER NOT NULL,
  state           TEXT    NOT NULL CHECK (state IN ('waiting', 'learned', 'given_up', 'dropped')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  -- When it is tried next.
  due_at          INTEGER NOT NULL,
  -- Why it was given up or dropped.
  reason          TEXT
) STRICT;

CREATE INDEX lessons_by_state ON lessons (state, due_at);
