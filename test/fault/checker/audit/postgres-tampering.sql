-- Views show alarms and attempts in full. These triggers let a test write to them as to tables.
CREATE OR REPLACE FUNCTION tamper_alarm() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM progress AS p WHERE p.owner = OLD.owner AND p.alarm_id = OLD.id;
  DELETE FROM definitions AS d WHERE d.owner = OLD.owner AND d.id = OLD.id;
  RETURN OLD;
END
$$;
CREATE OR REPLACE TRIGGER tamper_alarm INSTEAD OF DELETE ON alarms FOR EACH ROW EXECUTE FUNCTION tamper_alarm();

CREATE OR REPLACE FUNCTION tamper_attempt() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ledger (bucket, owner, alarm_id, started_at, attempt, scheduled_for, finished_at, outcome, missed_count)
  SELECT bucket, owner, id, NEW.started_at, NEW.attempt, NEW.scheduled_for, NEW.finished_at, NEW.outcome, NEW.missed_count
  FROM definitions WHERE owner = NEW.owner AND id = NEW.alarm_id;
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER tamper_attempt INSTEAD OF INSERT ON fire_attempts FOR EACH ROW EXECUTE FUNCTION tamper_attempt();
