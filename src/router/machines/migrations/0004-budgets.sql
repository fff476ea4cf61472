-- How often, and when, the agent may be woken: JSON; NULL where the router's own setting applies.
ALTER TABLE machines ADD COLUMN budget TEXT;

-- The wakes of the last 24 hours that count, for users with a budget. A row is written before the machine is started, and removed when
-- the wake was certainly not accepted.
CREATE TABLE wakes (
  user_id TEXT    NOT NULL,
  fire_id TEXT    NOT NULL,
  at      INTEGER NOT NULL,   -- when it was let in, epoch milliseconds
  PRIMARY KEY (user_id, fire_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX wakes_by_age ON wakes (at);
