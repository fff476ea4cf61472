-- Who caused a fire: of a pending occurrence, whose request made it due; of an attempt, NULL is the alarm's own clock.

DROP VIEW fire_attempts;
DROP VIEW occurrences;

ALTER TABLE progress ADD COLUMN cause TEXT, ADD COLUMN last_cause TEXT;
ALTER TABLE ledger ADD COLUMN cause TEXT;
ALTER TABLE events ADD COLUMN cause TEXT;

CREATE VIEW occurrences AS
SELECT bucket, owner, alarm_id, alarm_id || '@' || scheduled_for AS fire_id,
  CASE WHEN trigger_at = 0 THEN 'schedule' ELSE 'trigger' END AS source, scheduled_for, nominal, due_at, attempt, missed_count, fence,
  holder, claimed_at, held_reason, held_until, cause
FROM progress WHERE scheduled_for IS NOT NULL;

CREATE VIEW fire_attempts AS
SELECT bucket, owner, alarm_id, alarm_id || '@' || scheduled_for AS fire_id, started_at, attempt, scheduled_for, finished_at, outcome,
  http_status, error, missed_count, machine_ready_ms, late_because, cause
FROM ledger
UNION ALL
SELECT bucket, owner, alarm_id, alarm_id || '@' || last_scheduled_for, last_started_at, last_attempt, last_scheduled_for,
  last_finished_at, last_outcome, last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms, last_late_because,
  last_cause
FROM progress WHERE last_attempt IS NOT NULL;
