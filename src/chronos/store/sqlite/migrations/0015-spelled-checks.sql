-- The checks of what a fire writes spell out their alternatives. For an IN of more than two values, in a check or in the condition
-- of an index, SQLite fills a table in each statement, which takes as long as the rest of a delivery's row.
DROP VIEW alarms;
DROP VIEW occurrences;
DROP VIEW fire_attempts;

ALTER TABLE progress RENAME TO former_progress;
DROP INDEX progress_due;
DROP INDEX progress_ended;
CREATE TABLE progress (
  alarm                INTEGER PRIMARY KEY REFERENCES definitions (seq),
  owner                INTEGER NOT NULL,
  status               TEXT    NOT NULL
    CHECK (status = 'active' OR status = 'paused' OR status = 'fired' OR status = 'cancelled' OR status = 'failed'),
  failure_count        INTEGER NOT NULL CHECK (failure_count >= 0),
  last_error           TEXT,
  updated_at           INTEGER NOT NULL,
  last_fired_at        INTEGER,
  fire_count           INTEGER NOT NULL CHECK (fire_count >= 0),
  scheduled_fires      INTEGER NOT NULL CHECK (scheduled_fires >= 0),
  -- The pending occurrence of the alarm's own schedule; NULL: there is none.
  scheduled_for        INTEGER,
  nominal              INTEGER,
  due_at               INTEGER,
  -- Both as they were before the claim, where there is one.
  attempt              INTEGER CHECK (attempt >= 0),
  fence                INTEGER CHECK (fence >= 0),
  missed_count         INTEGER CHECK (missed_count >= 0),
  held_reason          TEXT,
  held_until           INTEGER,
  -- The last attempt; NULL: there was none.
  last_scheduled_for   INTEGER,
  last_attempt         INTEGER CHECK (last_attempt >= 1),
  last_started_at      INTEGER,
  last_finished_at     INTEGER,
  last_outcome         TEXT
    CHECK (last_outcome = 'delivered' OR last_outcome = 'failed' OR last_outcome = 'unknown' OR last_outcome = 'missed'),
  last_http_status     INTEGER,
  last_attempt_error   TEXT,
  last_missed_count    INTEGER,
  last_machine_ready_ms INTEGER,
  last_late_because    TEXT,
  CHECK ((scheduled_for IS NULL) = (fence IS NULL)),
  CHECK ((last_attempt IS NULL) = (last_finished_at IS NULL))
) STRICT;
INSERT INTO progress (
  alarm, owner, status, failure_count, last_error, updated_at, last_fired_at, fire_count, scheduled_fires, scheduled_for,
  nominal, due_at, attempt, fence, missed_count, held_reason, held_until, last_scheduled_for, last_attempt, last_started_at,
  last_finished_at, last_outcome, last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms,
  last_late_because)
SELECT
  alarm, owner, status, failure_count, last_error, updated_at, last_fired_at, fire_count, scheduled_fires, scheduled_for,
  nominal, due_at, attempt, fence, missed_count, held_reason, held_until, last_scheduled_for, last_attempt, last_started_at,
  last_finished_at, last_outcome, last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms,
  last_late_because
FROM former_progress ORDER BY alarm;
DROP TABLE former_progress;
-- What may be tried, of all owners, in the order of falling due.
CREATE INDEX progress_due ON progress (due_at, owner) WHERE due_at IS NOT NULL;
-- Serves deleting alarms that ended, longest ago first.
CREATE INDEX progress_ended ON progress (updated_at) WHERE status NOT IN ('active', 'paused');

ALTER TABLE ledger RENAME TO former_ledger;
DROP INDEX ledger_of_alarm;
DROP INDEX ledger_by_age;
CREATE TABLE ledger (
  seq              INTEGER PRIMARY KEY,
  alarm            INTEGER NOT NULL,
  scheduled_for    INTEGER NOT NULL,
  attempt          INTEGER NOT NULL CHECK (attempt >= 1),
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL,
  outcome          TEXT    NOT NULL
    CHECK (outcome = 'delivered' OR outcome = 'failed' OR outcome = 'unknown' OR outcome = 'missed'),
  http_status      INTEGER,
  error            TEXT,
  missed_count     INTEGER NOT NULL,
  machine_ready_ms INTEGER,
  late_because     TEXT
) STRICT;
INSERT INTO ledger (
  seq, alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms,
  late_because)
SELECT
  seq, alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms,
  late_because
FROM former_ledger ORDER BY seq;
DROP TABLE former_ledger;
-- Serves reading an alarm's ledger, latest first.
CREATE INDEX ledger_of_alarm ON ledger (alarm, started_at);
-- Serves pruning, oldest first.
CREATE INDEX ledger_by_age ON ledger (finished_at);

-- The same in full, for readers of the file: the move to PostgreSQL, checkers, people.
CREATE VIEW alarms AS
SELECT d.*, p.status, p.failure_count, p.last_error, p.updated_at, p.last_fired_at, p.fire_count, p.scheduled_fires
FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq;

CREATE VIEW occurrences AS
SELECT d.owner, d.id AS alarm_id, d.id || '@' || o.scheduled_for AS fire_id, o.source, o.scheduled_for, o.nominal, o.due_at,
  coalesce(c.attempt, o.attempt) AS attempt, o.missed_count, coalesce(c.fence, o.fence) AS fence, c.claimed_at, o.held_reason,
  o.held_until
FROM (
  SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until
  FROM progress WHERE scheduled_for IS NOT NULL
  UNION ALL
  SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until FROM triggers
) AS o JOIN definitions AS d ON d.seq = o.alarm
  LEFT JOIN claims AS c ON c.alarm = o.alarm AND c.scheduled_for = o.scheduled_for;

CREATE VIEW fire_attempts AS
SELECT d.owner, d.id AS alarm_id, f.started_at, d.id || '@' || f.scheduled_for AS fire_id, f.attempt, f.scheduled_for, f.finished_at,
  f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because
FROM (
  SELECT alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms, late_because
  FROM ledger
  UNION ALL
  SELECT alarm, last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome, last_http_status, last_attempt_error,
    last_missed_count, last_machine_ready_ms, last_late_because
  FROM progress WHERE last_attempt IS NOT NULL
) AS f JOIN definitions AS d ON d.seq = f.alarm;
