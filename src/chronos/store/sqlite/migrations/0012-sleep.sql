-- The computer is woken from its sleep for it: 1, or 0.
ALTER TABLE alarms ADD COLUMN wake_computer INTEGER NOT NULL DEFAULT 0 CHECK (wake_computer IN (0, 1));
-- Serves the question when the computer has to be awake next; those that do not ask for it are not in it.
CREATE INDEX alarms_waking ON alarms (seq) WHERE wake_computer = 1;

-- Why the attempt was late: the computer slept, or nothing ran; NULL: neither, or nobody knows.
ALTER TABLE ledger ADD COLUMN late_because TEXT;
DROP VIEW fire_attempts;
CREATE VIEW fire_attempts AS
SELECT a.owner, a.id AS alarm_id, f.started_at, a.id || '@' || f.scheduled_for AS fire_id, f.attempt, f.scheduled_for, f.finished_at,
  f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because
FROM alarms AS a CROSS JOIN ledger AS f ON f.alarm = a.seq;
