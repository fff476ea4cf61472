-- The person whose words the alarm carries; NULL: its agent's own.
ALTER TABLE alarms ADD COLUMN set_by TEXT;
