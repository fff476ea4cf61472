-- Wakes that came without a fire id, by the name that was derived from them. A row is written before the wake goes on to its machine,
-- so that the same wake, sent again until `until`, is known: it gets the same fire id, and goes nowhere once it was accepted.
CREATE TABLE unnamed_wakes (
  user_id         TEXT    NOT NULL,
  name            TEXT    NOT NULL,
  first_at        INTEGER NOT NULL,   -- when the first of them arrived, epoch milliseconds
  until           INTEGER NOT NULL,   -- from when on it is a new wake
  accepted        INTEGER NOT NULL DEFAULT 0,
  conversation_id TEXT,               -- of the turn, where whoever accepted it said so
  turn_id         TEXT,
  PRIMARY KEY (user_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX unnamed_wakes_by_age ON unnamed_wakes (until);
