-- Records every change of pending occurrences and of the ledger, in the same transaction. No writer can avoid it.
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

-- A lease is a separate row here; the audit shows it together with the pending occurrence.
CREATE TRIGGER IF NOT EXISTS checker_occurrence_came AFTER INSERT ON owed BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', NEW.source, 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(l.attempt, NEW.attempt), 'fence', coalesce(l.fence, NEW.fence), 'leaseUntil', l.lease_until, 'claimedAt', l.claimed_at)
  FROM alarms AS a LEFT JOIN leases AS l ON l.alarm = NEW.alarm AND l.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_occurrence_changed AFTER UPDATE ON owed BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', OLD.source, 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(l.attempt, OLD.attempt), 'fence', coalesce(l.fence, OLD.fence), 'leaseUntil', l.lease_until, 'claimedAt', l.claimed_at),
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', NEW.source, 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(l.attempt, NEW.attempt), 'fence', coalesce(l.fence, NEW.fence), 'leaseUntil', l.lease_until, 'claimedAt', l.claimed_at)
  FROM alarms AS a LEFT JOIN leases AS l ON l.alarm = NEW.alarm AND l.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_occurrence_went AFTER DELETE ON owed BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', OLD.source, 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(l.attempt, OLD.attempt), 'fence', coalesce(l.fence, OLD.fence), 'leaseUntil', l.lease_until, 'claimedAt', l.claimed_at)
  FROM alarms AS a LEFT JOIN leases AS l ON l.alarm = OLD.alarm AND l.scheduled_for = OLD.scheduled_for WHERE a.seq = OLD.alarm;
END;

CREATE TRIGGER IF NOT EXISTS checker_lease_came AFTER INSERT ON leases BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', o.attempt, 'fence', o.fence, 'leaseUntil', NULL, 'claimedAt', NULL),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'leaseUntil', NEW.lease_until, 'claimedAt', NEW.claimed_at)
  FROM owed AS o JOIN alarms AS a ON a.seq = o.alarm WHERE o.alarm = NEW.alarm AND o.scheduled_for = NEW.scheduled_for;
END;
CREATE TRIGGER IF NOT EXISTS checker_lease_changed AFTER UPDATE ON leases BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'leaseUntil', OLD.lease_until, 'claimedAt', OLD.claimed_at),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'leaseUntil', NEW.lease_until, 'claimedAt', NEW.claimed_at)
  FROM owed AS o JOIN alarms AS a ON a.seq = o.alarm WHERE o.alarm = NEW.alarm AND o.scheduled_for = NEW.scheduled_for;
END;
CREATE TRIGGER IF NOT EXISTS checker_lease_went AFTER DELETE ON leases BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'leaseUntil', OLD.lease_until, 'claimedAt', OLD.claimed_at),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', o.attempt, 'fence', o.fence, 'leaseUntil', NULL, 'claimedAt', NULL)
  FROM owed AS o JOIN alarms AS a ON a.seq = o.alarm WHERE o.alarm = OLD.alarm AND o.scheduled_for = OLD.scheduled_for;
END;

CREATE TRIGGER IF NOT EXISTS checker_attempt_came AFTER INSERT ON ledger BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'attempt', NEW.attempt, 'outcome', NEW.outcome)
  FROM alarms AS a WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_changed AFTER UPDATE ON ledger BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'attempt', OLD.attempt, 'outcome', OLD.outcome),
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'attempt', NEW.attempt, 'outcome', NEW.outcome)
  FROM alarms AS a WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_went AFTER DELETE ON ledger BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'attempt', OLD.attempt, 'outcome', OLD.outcome)
  FROM alarms AS a WHERE a.seq = OLD.alarm;
END;
