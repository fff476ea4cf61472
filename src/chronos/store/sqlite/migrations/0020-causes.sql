-- Who caused a fire: of a pending occurrence, whose request made it due; of an attempt, NULL is the alarm's own clock.

DROP VIEW alarm_events;
DROP VIEW fire_attempts;
DROP VIEW occurrences;

ALTER TABLE progress ADD COLUMN cause TEXT;
ALTER TABLE progress ADD COLUMN last_cause TEXT;
ALTER TABLE triggers ADD COLUMN cause TEXT;
ALTER TABLE ledger ADD COLUMN cause TEXT;
ALTER TABLE events ADD COLUMN cause TEXT;

CREATE VIEW occurrences AS
SELECT d.owner, d.id AS alarm_id, d.id || '@' || o.scheduled_for AS fire_id, o.source, o.scheduled_for, o.nominal, o.due_at,
  coalesce(c.attempt, o.attempt) AS attempt, o.missed_count, coalesce(c.fence, o.fence) AS fence, c.claimed_at, o.held_reason,
  o.held_until, o.cause
FROM (
  SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until, cause
  FROM progress WHERE scheduled_for IS NOT NULL
  UNION ALL
  SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until, cause
  FROM triggers
) AS o JOIN definitions AS d ON d.seq = o.alarm
  LEFT JOIN claims AS c ON c.alarm = o.alarm AND c.scheduled_for = o.scheduled_for;

CREATE VIEW fire_attempts AS
SELECT d.owner, d.id AS alarm_id, f.started_at, d.id || '@' || f.scheduled_for AS fire_id, f.attempt, f.scheduled_for, f.finished_at,
  f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because, f.cause
FROM (
  SELECT alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms,
    late_because, cause
  FROM ledger
  UNION ALL
  SELECT alarm, last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome, last_http_status, last_attempt_error,
    last_missed_count, last_machine_ready_ms, last_late_because, last_cause
  FROM progress WHERE last_attempt IS NOT NULL
) AS f JOIN definitions AS d ON d.seq = f.alarm;

CREATE VIEW alarm_events AS
SELECT d.owner, d.id AS alarm_id, e.number, e.id, e.received_at, e.data, e.cause
FROM definitions AS d CROSS JOIN events AS e ON e.alarm = d.seq;
