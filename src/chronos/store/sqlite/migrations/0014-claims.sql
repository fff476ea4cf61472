-- A claim lasts as long as the process that owns the file: it has no end of its own. Claims in a file of the version before are those
-- of a process that has ended; the next one ends them.
DROP VIEW occurrences;
ALTER TABLE leases RENAME TO claims;
ALTER TABLE claims DROP COLUMN lease_until;
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
