-- Rare fields of an alarm in one column, alarms by rule, and attempts that a policy skipped.

DO $$
DECLARE
  rule record;
BEGIN
  FOR rule IN
    SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
    WHERE contype = 'c' AND (
      conrelid = 'definitions'::regclass AND pg_get_constraintdef(oid) LIKE '%cron%'
      OR conrelid = 'ledger'::regclass AND pg_get_constraintdef(oid) LIKE '%missed%')
  LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', rule.of_table, rule.conname);
  END LOOP;
END $$;
ALTER TABLE definitions ADD COLUMN options TEXT;
ALTER TABLE definitions ADD CONSTRAINT definitions_kind CHECK (kind IN ('once', 'cron', 'rrule'));
ALTER TABLE ledger ADD CONSTRAINT ledger_outcome CHECK (outcome IN ('delivered', 'failed', 'unknown', 'missed', 'skipped'));

DROP VIEW alarms;
CREATE VIEW alarms AS
SELECT d.*, p.status, p.failure_count, p.last_error, p.updated_at, p.last_fired_at, p.fire_count, p.scheduled_fires
FROM definitions AS d
JOIN progress AS p ON p.bucket = d.bucket AND p.owner = d.owner AND p.alarm_id = d.id AND p.trigger_at = 0;
