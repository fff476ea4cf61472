-- The key that the envelopes of this journal are signed with.
CREATE TABLE journal_key (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  key_id   TEXT NOT NULL
) STRICT;

CREATE TABLE intents (
  -- In order of acceptance.
  seq               INTEGER PRIMARY KEY AUTOINCREMENT,
  id                TEXT NOT NULL UNIQUE,
  user_id           TEXT NOT NULL,
  idempotency_key   TEXT,
  -- The pieces of conversation that it was handed over with, as JSON; kept until it is compiled.
  context           TEXT,
  -- Follows from the envelopes; kept for queries.
  status            TEXT NOT NULL,
  is_over           INTEGER NOT NULL,
  -- What the last envelope must be. Rows that were cut off cannot say so themselves.
  head_seq          INTEGER NOT NULL,
  head_hash         TEXT NOT NULL,
  -- Stays set even when the envelope that says so is gone.
  escalate_started  INTEGER NOT NULL,
  created_at        INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX intents_by_key ON intents (user_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX intents_by_user ON intents (user_id, seq);
CREATE INDEX intents_open ON intents (seq) WHERE is_over = 0;

CREATE TABLE envelopes (
  intent_id TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  -- Canonical JSON, the very text that its hash is over.
  envelope  TEXT NOT NULL,
  PRIMARY KEY (intent_id, seq)
) STRICT, WITHOUT ROWID;

-- Rows that somebody changed: they count no more, and are kept for whoever looks into it.
CREATE TABLE set_aside (
  intent_id TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  envelope  TEXT NOT NULL,
  at        INTEGER NOT NULL
) STRICT;

-- Amounts that calls have moved or may have moved, for the limits of policies.
CREATE TABLE spends (
  intent_id TEXT NOT NULL,
  node_id   TEXT NOT NULL,
  user_id   TEXT NOT NULL,
  tool      TEXT NOT NULL,
  value     TEXT NOT NULL,
  currency  TEXT NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (intent_id, node_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX spends_by_user ON spends (user_id, at);

CREATE TABLE errands (
  id              TEXT PRIMARY KEY,
  kind            TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  intent_id       TEXT NOT NULL,
  node_id         TEXT,
  conversation_id TEXT,
  attempts        INTEGER NOT NULL DEFAULT 0,
  due_at          INTEGER NOT NULL,
  -- `waiting`, `done` or `dropped`; errands that are over are remembered, so that none is put down twice.
  state           TEXT NOT NULL DEFAULT 'waiting',
  error           TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX errands_due ON errands (due_at) WHERE state = 'waiting';
