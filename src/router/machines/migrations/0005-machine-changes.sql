-- Who changed which machine, and what of it: one row for each change, written in its transaction. Never a value, so never a secret.
CREATE TABLE machine_changes (
  seq     INTEGER PRIMARY KEY,
  user_id TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  actor   TEXT    NOT NULL CHECK (actor IN ('admin', 'router')),
  action  TEXT    NOT NULL,
  fields  TEXT    NOT NULL,   -- the names of what changed: a JSON list
  state   TEXT    NOT NULL,   -- of the machine afterwards
  reason  TEXT
) STRICT;

CREATE INDEX machine_changes_by_user ON machine_changes (user_id, seq);
