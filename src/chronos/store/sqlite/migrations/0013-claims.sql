-- A claim lasts as long as the process that owns the file: it has no end of its own. Claims in a file of the version before are those
-- of a process that has ended; the next one ends them.
DROP VIEW occurrences;
ALTER TABLE leases RENAME TO claims;
ALTER TABLE claims DROP COLUMN lease_until;
CREATE VIEW occurrences AS
SELECT a.owner, a.id AS alarm_id, a.id || '@' || o.scheduled_for AS fire_id, o.source, o.scheduled_for, o.nominal, o.due_at,
  coalesce(c.attempt, o.attempt) AS attempt, o.missed_count, coalesce(c.fence, o.fence) AS fence, c.claimed_at,
  o.held_reason, o.held_until
FROM alarms AS a CROSS JOIN owed AS o ON o.alarm = a.seq
LEFT JOIN claims AS c ON c.alarm = o.alarm AND c.scheduled_for = o.scheduled_for;
