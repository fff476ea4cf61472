-- Alarms that wait for events, and the events.

DROP VIEW fire_attempts;
DROP VIEW occurrences;
DROP VIEW alarms;

ALTER TABLE definitions RENAME COLUMN kind TO former_kind;
ALTER TABLE definitions ADD COLUMN kind TEXT NOT NULL DEFAULT 'once'
  CHECK (kind = 'once' OR kind = 'cron' OR kind = 'rrule' OR kind = 'event');
UPDATE definitions SET kind = former_kind WHERE former_kind <> 'once';
ALTER TABLE definitions DROP COLUMN former_kind;

CREATE TABLE events (
  seq         INTEGER PRIMARY KEY,
  alarm       INTEGER NOT NULL,
  -- From 1 in the order of arrival; 0: no wake carries it.
  number      INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  received_at INTEGER NOT NULL,
  -- NULL: it was carried by a wake, or none carries it. The id stays, so that the event is known when it comes again.
  data        TEXT,
  UNIQUE (alarm, id)
) STRICT;
CREATE INDEX events_waiting ON events (alarm, number) WHERE data IS NOT NULL;
-- Serves pruning, oldest first.
CREATE INDEX events_by_age ON events (received_at) WHERE data IS NULL;

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

CREATE VIEW alarm_events AS
SELECT d.owner, d.id AS alarm_id, e.number, e.id, e.received_at, e.data
FROM definitions AS d CROSS JOIN events AS e ON e.alarm = d.seq;
