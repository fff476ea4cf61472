-- Whom a wake was for, as whoever delivered it said.
ALTER TABLE turns ADD COLUMN user_id TEXT;

-- How far wakes got, for chronosd: an outbox. A row is written in the transaction that moves its turn on, and goes when chronosd has it.
CREATE TABLE receipts (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id         TEXT    NOT NULL,
  fire_id         TEXT    NOT NULL,
  stage           TEXT    NOT NULL,
  at              INTEGER NOT NULL,
  -- Of turn_finished: ok, failed or unknown.
  outcome         TEXT,
  error           TEXT,
  turn_id         TEXT,
  conversation_id TEXT,
  UNIQUE (user_id, fire_id, stage)
) STRICT;
