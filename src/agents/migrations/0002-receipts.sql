-- How far turns got, for chronosd: an outbox. A row is written in the transaction that ends its turn, and goes when chronosd has it.
CREATE TABLE receipts (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id         TEXT    NOT NULL,
  fire_id         TEXT    NOT NULL,
  stage           TEXT    NOT NULL,
  at              INTEGER NOT NULL,
  outcome         TEXT,             -- of turn_finished: ok, failed or unknown
  error           TEXT,
  turn_id         TEXT,
  conversation_id TEXT,
  UNIQUE (user_id, fire_id, stage)
) STRICT;
