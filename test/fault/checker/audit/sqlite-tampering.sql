-- Views show alarms, pending occurrences and the ledger in full. These triggers let a test write to them as to PostgreSQL's, while its
-- connection is open.
CREATE TEMP TRIGGER tamper_alarm_deleted INSTEAD OF DELETE ON alarms BEGIN
  DELETE FROM progress WHERE alarm = OLD.seq;
  DELETE FROM definitions WHERE seq = OLD.seq;
END;

CREATE TEMP TRIGGER tamper_alarm_changed INSTEAD OF UPDATE ON alarms BEGIN
  UPDATE progress SET status = NEW.status, failure_count = NEW.failure_count, last_error = NEW.last_error, updated_at = NEW.updated_at,
    last_fired_at = NEW.last_fired_at, fire_count = NEW.fire_count, scheduled_fires = NEW.scheduled_fires WHERE alarm = OLD.seq;
  UPDATE definitions SET label = NEW.label, wake_message = NEW.wake_message, fire_at = NEW.fire_at WHERE seq = OLD.seq;
END;

CREATE TEMP TRIGGER tamper_occurrence_deleted INSTEAD OF DELETE ON occurrences BEGIN
  UPDATE progress SET scheduled_for = NULL, nominal = NULL, due_at = NULL, attempt = NULL, fence = NULL, missed_count = NULL
    WHERE scheduled_for = OLD.scheduled_for AND alarm = (SELECT seq FROM definitions WHERE owner = OLD.owner AND id = OLD.alarm_id);
  DELETE FROM triggers
    WHERE scheduled_for = OLD.scheduled_for AND alarm = (SELECT seq FROM definitions WHERE owner = OLD.owner AND id = OLD.alarm_id);
  DELETE FROM claims
    WHERE scheduled_for = OLD.scheduled_for AND alarm = (SELECT seq FROM definitions WHERE owner = OLD.owner AND id = OLD.alarm_id);
END;

CREATE TEMP TRIGGER tamper_occurrence_changed INSTEAD OF UPDATE ON occurrences BEGIN
  INSERT INTO claims (alarm, scheduled_for, attempt, fence, claimed_at)
    SELECT seq, NEW.scheduled_for, NEW.attempt, NEW.fence, NEW.claimed_at
    FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id AND OLD.claimed_at IS NULL AND NEW.claimed_at IS NOT NULL;
  UPDATE claims SET attempt = NEW.attempt, fence = NEW.fence, claimed_at = NEW.claimed_at
    WHERE OLD.claimed_at IS NOT NULL AND NEW.claimed_at IS NOT NULL AND scheduled_for = NEW.scheduled_for
      AND alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
  UPDATE progress SET attempt = NEW.attempt, fence = NEW.fence, due_at = NEW.due_at
    WHERE scheduled_for = NEW.scheduled_for AND alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
  UPDATE triggers SET attempt = NEW.attempt, fence = NEW.fence, due_at = NEW.due_at
    WHERE scheduled_for = NEW.scheduled_for AND alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
  DELETE FROM claims
    WHERE NEW.claimed_at IS NULL AND scheduled_for = NEW.scheduled_for
      AND alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
END;

CREATE TEMP TRIGGER tamper_attempt_came INSTEAD OF INSERT ON fire_attempts BEGIN
  INSERT INTO ledger (alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count)
    SELECT alarm, last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome, last_http_status, last_attempt_error,
      last_missed_count
    FROM progress WHERE last_attempt IS NOT NULL AND alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
  UPDATE progress SET last_scheduled_for = NEW.scheduled_for, last_attempt = NEW.attempt, last_started_at = NEW.started_at,
    last_finished_at = NEW.finished_at, last_outcome = NEW.outcome, last_http_status = NEW.http_status, last_attempt_error = NEW.error,
    last_missed_count = NEW.missed_count
    WHERE alarm = (SELECT seq FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id);
END;
