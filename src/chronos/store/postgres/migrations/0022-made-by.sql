-- The credential that made an alarm or a feed: 'client <id>' or 'key <fingerprint>'. NULL: the operator's token, or unknown.
ALTER TABLE definitions ADD COLUMN made_by TEXT;
UPDATE definitions SET made_by = 'client ' || (substr(set_by, 2)::json ->> 0) WHERE starts_with(set_by, chr(1));
ALTER TABLE calendar_feeds ADD COLUMN made_by TEXT;

DROP VIEW alarms;
CREATE VIEW alarms AS
SELECT d.*, p.status, p.failure_count, p.last_error, p.updated_at, p.last_fired_at, p.fire_count, p.scheduled_fires
FROM definitions AS d
JOIN progress AS p ON p.bucket = d.bucket AND p.owner = d.owner AND p.alarm_id = d.id AND p.trigger_at = 0;
