-- Writes down every change to what is owed and to the ledger, in the transaction that makes it. Nobody who writes can avoid it.
CREATE TABLE IF NOT EXISTS checker_audit (
  seq    INTEGER PRIMARY KEY,
  "at"   INTEGER NOT NULL,
  "table" TEXT   NOT NULL,
  before TEXT,
  after  TEXT
) STRICT;

CREATE TRIGGER IF NOT EXISTS checker_alarm_came AFTER INSERT ON alarms BEGIN
  INSERT INTO checker_audit ("at", "table", after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms', json_object('id', NEW.id, 'status', NEW.status));
END;
CREATE TRIGGER IF NOT EXISTS checker_alarm_changed AFTER UPDATE ON alarms WHEN OLD.status <> NEW.status BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms',
    json_object('id', OLD.id, 'status', OLD.status), json_object('id', NEW.id, 'status', NEW.status));
END;
CREATE TRIGGER IF NOT EXISTS checker_alarm_went AFTER DELETE ON alarms BEGIN
  INSERT INTO checker_audit ("at", "table", before) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms', json_object('id', OLD.id, 'status', OLD.status));
END;

CREATE TRIGGER IF NOT EXISTS checker_occurrence_came AFTER INSERT ON occurrences BEGIN
  INSERT INTO checker_audit ("at", "table", after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', NEW.fire_id, 'alarmId', NEW.alarm_id, 'source', NEW.source, 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'leaseUntil', NEW.lease_until,
      'claimedAt', NEW.claimed_at));
END;
CREATE TRIGGER IF NOT EXISTS checker_occurrence_changed AFTER UPDATE ON occurrences BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', OLD.fire_id, 'alarmId', OLD.alarm_id, 'source', OLD.source, 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'leaseUntil', OLD.lease_until,
      'claimedAt', OLD.claimed_at),
    json_object('fireId', NEW.fire_id, 'alarmId', NEW.alarm_id, 'source', NEW.source, 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'leaseUntil', NEW.lease_until,
      'claimedAt', NEW.claimed_at));
END;
CREATE TRIGGER IF NOT EXISTS checker_occurrence_went AFTER DELETE ON occurrences BEGIN
  INSERT INTO checker_audit ("at", "table", before) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', OLD.fire_id, 'alarmId', OLD.alarm_id, 'source', OLD.source, 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'leaseUntil', OLD.lease_until,
      'claimedAt', OLD.claimed_at));
END;

CREATE TRIGGER IF NOT EXISTS checker_attempt_came AFTER INSERT ON fire_attempts BEGIN
  INSERT INTO checker_audit ("at", "table", after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', NEW.fire_id, 'alarmId', NEW.alarm_id, 'attempt', NEW.attempt, 'outcome', NEW.outcome));
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_changed AFTER UPDATE ON fire_attempts BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', OLD.fire_id, 'alarmId', OLD.alarm_id, 'attempt', OLD.attempt, 'outcome', OLD.outcome),
    json_object('fireId', NEW.fire_id, 'alarmId', NEW.alarm_id, 'attempt', NEW.attempt, 'outcome', NEW.outcome));
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_went AFTER DELETE ON fire_attempts BEGIN
  INSERT INTO checker_audit ("at", "table", before) VALUES (
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', OLD.fire_id, 'alarmId', OLD.alarm_id, 'attempt', OLD.attempt, 'outcome', OLD.outcome));
END;
