-- What a fire changes, in few and narrow rows: integer keys instead of two UUIDs, leases in a table of their own, and the ledger in
-- the order of arrival.

-- Owners get a number, which stands for them wherever an index begins with the owner.
ALTER TABLE owners RENAME TO former_owners;
DROP INDEX owners_queue;
CREATE TABLE owners (
  seq           INTEGER PRIMARY KEY,
  owner         TEXT    NOT NULL UNIQUE,
  -- How many alarms are active or paused, so that a create costs the same for an owner who has ten thousand.
  open_alarms   INTEGER NOT NULL CHECK (open_alarms >= 0),
  -- How much is stored, ended alarms included.
  stored_alarms INTEGER NOT NULL CHECK (stored_alarms >= 0),
  stored_bytes  INTEGER NOT NULL CHECK (stored_bytes >= 0),
  -- Nothing that nobody holds is due before this instant (NULL: nothing is). A lower bound: a claim does not raise it, the change that
  -- ends the lease does. In between, the process that owns the file knows it exactly.
  next_due      INTEGER
) STRICT;
INSERT INTO owners (owner, open_alarms, stored_alarms, stored_bytes, next_due)
SELECT owner, open_alarms, stored_alarms, stored_bytes, next_due FROM former_owners;
DROP TABLE former_owners;
CREATE INDEX owners_queue ON owners (next_due) WHERE next_due IS NOT NULL;

-- What is owed. An occurrence is named by its alarm and the instant that it stands for; so is its fire id.
CREATE TABLE owed (
  alarm         INTEGER NOT NULL REFERENCES alarms (seq),
  scheduled_for INTEGER NOT NULL,
  owner         INTEGER NOT NULL REFERENCES owners (seq),
  source        TEXT    NOT NULL CHECK (source IN ('schedule', 'trigger')),
  nominal       INTEGER NOT NULL,
  due_at        INTEGER,
  -- Both as they were before the lease, where there is one.
  attempt       INTEGER NOT NULL CHECK (attempt >= 0),
  fence         INTEGER NOT NULL CHECK (fence >= 0),
  missed_count  INTEGER NOT NULL CHECK (missed_count >= 0),
  held_reason   TEXT,
  held_until    INTEGER,
  PRIMARY KEY (alarm, scheduled_for)
) STRICT, WITHOUT ROWID;
INSERT INTO owed (alarm, scheduled_for, owner, source, nominal, due_at, attempt, fence, missed_count, held_reason, held_until)
SELECT a.seq, o.scheduled_for, w.seq, o.source, o.nominal, o.due_at, o.attempt, o.fence, o.missed_count, o.held_reason, o.held_until
FROM occurrences AS o JOIN alarms AS a ON a.owner = o.owner AND a.id = o.alarm_id JOIN owners AS w ON w.owner = o.owner
ORDER BY a.seq, o.scheduled_for;

-- What may be tried, by owner in the order of falling due; what is held is among it.
CREATE INDEX owed_due ON owed (owner, due_at) WHERE due_at IS NOT NULL;

-- How many triggers of an owner wait.
CREATE INDEX owed_triggers ON owed (owner) WHERE source = 'trigger' AND due_at IS NOT NULL;

-- Who holds what: a few rows, as many as there are deliveries under way. Kept in memory too, for the file has one owner; read back
-- by the next one, who learns from it what was interrupted.
CREATE TABLE leases (
  alarm         INTEGER NOT NULL,
  scheduled_for INTEGER NOT NULL,
  attempt       INTEGER NOT NULL CHECK (attempt >= 0),
  fence         INTEGER NOT NULL CHECK (fence >= 0),
  lease_until   INTEGER NOT NULL,
  claimed_at    INTEGER NOT NULL,
  PRIMARY KEY (alarm, scheduled_for)
) STRICT, WITHOUT ROWID;
INSERT INTO leases (alarm, scheduled_for, attempt, fence, lease_until, claimed_at)
SELECT a.seq, o.scheduled_for, o.attempt, o.fence, o.lease_until, o.claimed_at
FROM occurrences AS o JOIN alarms AS a ON a.owner = o.owner AND a.id = o.alarm_id
WHERE o.lease_until IS NOT NULL;
DROP TABLE occurrences;

-- The ledger: one row per attempt, in the order of arrival.
CREATE TABLE ledger (
  seq              INTEGER PRIMARY KEY,
  alarm            INTEGER NOT NULL REFERENCES alarms (seq),
  scheduled_for    INTEGER NOT NULL,
  attempt          INTEGER NOT NULL CHECK (attempt >= 1),
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL,
  outcome          TEXT    NOT NULL CHECK (outcome IN ('delivered', 'failed', 'unknown', 'missed')),
  http_status      INTEGER,
  error            TEXT,
  missed_count     INTEGER NOT NULL,
  machine_ready_ms INTEGER
) STRICT;
INSERT INTO ledger (alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms)
SELECT a.seq, f.scheduled_for, f.attempt, f.started_at, f.finished_at, f.outcome, f.http_status, f.error, f.missed_count,
  f.machine_ready_ms
FROM fire_attempts AS f JOIN alarms AS a ON a.owner = f.owner AND a.id = f.alarm_id
ORDER BY f.finished_at;
DROP TABLE fire_attempts;
-- Serves reading an alarm's ledger, latest first.
CREATE INDEX ledger_of_alarm ON ledger (alarm, started_at);
-- Serves pruning, oldest first.
CREATE INDEX ledger_by_age ON ledger (finished_at);

-- Serves lists by status and kind, newest first, but for what a store is full of: those are found by walking the owner's alarms.
DROP INDEX alarms_by_status;
CREATE INDEX alarms_by_status ON alarms (owner, status, kind, id) WHERE NOT (status = 'fired' AND kind = 'once');

-- The same in full, for whoever reads the file: the move to PostgreSQL, checkers, people.
CREATE VIEW occurrences AS
SELECT a.owner, a.id AS alarm_id, a.id || '@' || o.scheduled_for AS fire_id, o.source, o.scheduled_for, o.nominal, o.due_at,
  coalesce(l.attempt, o.attempt) AS attempt, o.missed_count, coalesce(l.fence, o.fence) AS fence, l.lease_until, l.claimed_at,
  o.held_reason, o.held_until
FROM alarms AS a CROSS JOIN owed AS o ON o.alarm = a.seq
  LEFT JOIN leases AS l ON l.alarm = o.alarm AND l.scheduled_for = o.scheduled_for;

CREATE VIEW fire_attempts AS
SELECT a.owner, a.id AS alarm_id, f.started_at, a.id || '@' || f.scheduled_for AS fire_id, f.attempt, f.scheduled_for, f.finished_at,
  f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms
FROM alarms AS a CROSS JOIN ledger AS f ON f.alarm = a.seq;
