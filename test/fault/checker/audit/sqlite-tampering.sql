-- Views show pending occurrences and the ledger in full. These triggers let a test write to them as to PostgreSQL's tables, while its
-- connection is open.
CREATE TEMP TRIGGER tamper_owed_deleted INSTEAD OF DELETE ON occurrences BEGIN
  DELETE FROM owed WHERE alarm = (SELECT seq FROM alarms WHERE owner = OLD.owner AND id = OLD.alarm_id)
    AND scheduled_for = OLD.scheduled_for;
  DELETE FROM leases WHERE alarm = (SELECT seq FROM alarms WHERE owner = OLD.owner AND id = OLD.alarm_id)
    AND scheduled_for = OLD.scheduled_for;
END;

CREATE TEMP TRIGGER tamper_owed_changed INSTEAD OF UPDATE ON occurrences BEGIN
  INSERT INTO leases (alarm, scheduled_for, attempt, fence, lease_until, claimed_at)
    SELECT seq, NEW.scheduled_for, NEW.attempt, NEW.fence, NEW.lease_until, NEW.claimed_at
    FROM alarms WHERE owner = NEW.owner AND id = NEW.alarm_id AND OLD.lease_until IS NULL AND NEW.lease_until IS NOT NULL;
  UPDATE leases SET attempt = NEW.attempt, fence = NEW.fence, lease_until = NEW.lease_until, claimed_at = NEW.claimed_at
    WHERE OLD.lease_until IS NOT NULL AND NEW.lease_until IS NOT NULL AND scheduled_for = NEW.scheduled_for
      AND alarm = (SELECT seq FROM alarms WHERE owner = NEW.owner AND id = NEW.alarm_id);
  UPDATE owed SET attempt = NEW.attempt, fence = NEW.fence, due_at = NEW.due_at
    WHERE scheduled_for = NEW.scheduled_for AND alarm = (SELECT seq FROM alarms WHERE owner = NEW.owner AND id = NEW.alarm_id);
  DELETE FROM leases
    WHERE NEW.lease_until IS NULL AND scheduled_for = NEW.scheduled_for
      AND alarm = (SELECT seq FROM alarms WHERE owner = NEW.owner AND id = NEW.alarm_id);
END;

CREATE TEMP TRIGGER tamper_attempt_came INSTEAD OF INSERT ON fire_attempts BEGIN
  INSERT INTO ledger (alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count)
    SELECT seq, NEW.scheduled_for, NEW.attempt, NEW.started_at, NEW.finished_at, NEW.outcome, NEW.http_status, NEW.error,
      NEW.missed_count
    FROM alarms WHERE owner = NEW.owner AND id = NEW.alarm_id;
END;
