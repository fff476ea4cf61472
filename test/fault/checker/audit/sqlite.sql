-- Records every change of pending occurrences and of the ledger, in the same transaction. No writer can avoid it.
CREATE TABLE IF NOT EXISTS checker_audit (
  seq    INTEGER PRIMARY KEY,
  "at"   INTEGER NOT NULL,
  "table" TEXT   NOT NULL,
  before TEXT,
  after  TEXT
) STRICT;

-- A row of progress has the status of an alarm, the occurrence of its schedule, and its last attempt.
CREATE TRIGGER IF NOT EXISTS checker_alarm_came AFTER INSERT ON progress BEGIN
  INSERT INTO checker_audit ("at", "table", after)
    SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms', json_object('id', id, 'status', NEW.status) FROM definitions WHERE seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_alarm_changed AFTER UPDATE ON progress WHEN OLD.status <> NEW.status BEGIN
  INSERT INTO checker_audit ("at", "table", before, after)
    SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms', json_object('id', id, 'status', OLD.status), json_object('id', id, 'status', NEW.status)
    FROM definitions WHERE seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_alarm_went AFTER DELETE ON progress BEGIN
  INSERT INTO checker_audit ("at", "table", before)
    SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER), 'alarms', json_object('id', id, 'status', OLD.status) FROM definitions WHERE seq = OLD.alarm;
END;

-- A claim is a separate row here; the audit shows it together with the pending occurrence.
CREATE TRIGGER IF NOT EXISTS checker_trigger_came AFTER INSERT ON triggers BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', 'trigger', 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(c.attempt, NEW.attempt), 'fence', coalesce(c.fence, NEW.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = NEW.alarm AND c.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm
    -- A claimed one was there before: as a trigger, or in the schedule.
    AND c.alarm IS NULL;
END;
CREATE TRIGGER IF NOT EXISTS checker_trigger_changed AFTER UPDATE ON triggers BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', 'trigger', 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(c.attempt, OLD.attempt), 'fence', coalesce(c.fence, OLD.fence), 'claimedAt', c.claimed_at),
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', 'trigger', 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(c.attempt, NEW.attempt), 'fence', coalesce(c.fence, NEW.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = NEW.alarm AND c.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_trigger_went AFTER DELETE ON triggers BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', 'trigger', 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(c.attempt, OLD.attempt), 'fence', coalesce(c.fence, OLD.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = OLD.alarm AND c.scheduled_for = OLD.scheduled_for WHERE a.seq = OLD.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_schedule_came AFTER INSERT ON progress WHEN NEW.scheduled_for IS NOT NULL BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(c.attempt, NEW.attempt), 'fence', coalesce(c.fence, NEW.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = NEW.alarm AND c.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_schedule_changed AFTER UPDATE ON progress
  WHEN OLD.scheduled_for = NEW.scheduled_for
    AND (OLD.nominal, OLD.attempt, OLD.fence, OLD.due_at) IS NOT (NEW.nominal, NEW.attempt, NEW.fence, NEW.due_at)
BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(c.attempt, OLD.attempt), 'fence', coalesce(c.fence, OLD.fence), 'claimedAt', c.claimed_at),
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(c.attempt, NEW.attempt), 'fence', coalesce(c.fence, NEW.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = NEW.alarm AND c.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_schedule_moved AFTER UPDATE ON progress WHEN OLD.scheduled_for IS NOT NEW.scheduled_for BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(c.attempt, OLD.attempt), 'fence', coalesce(c.fence, OLD.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = OLD.alarm AND c.scheduled_for = OLD.scheduled_for WHERE a.seq = OLD.alarm AND OLD.scheduled_for IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM triggers AS t WHERE t.alarm = OLD.alarm AND t.scheduled_for = OLD.scheduled_for);
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', NEW.nominal,
      'dueAt', NEW.due_at, 'attempt', coalesce(c.attempt, NEW.attempt), 'fence', coalesce(c.fence, NEW.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = NEW.alarm AND c.scheduled_for = NEW.scheduled_for WHERE a.seq = NEW.alarm AND NEW.scheduled_for IS NOT NULL;
  -- The order of triggers is not defined, and an attempt comes after the end of its claim.
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || NEW.last_scheduled_for, 'alarmId', a.id, 'attempt', NEW.last_attempt, 'outcome', NEW.last_outcome)
  FROM definitions AS a WHERE a.seq = NEW.alarm
    AND (OLD.last_scheduled_for, OLD.last_attempt, OLD.last_started_at) IS NOT (NEW.last_scheduled_for, NEW.last_attempt, NEW.last_started_at)
    AND NEW.last_attempt IS NOT NULL;
END;
CREATE TRIGGER IF NOT EXISTS checker_schedule_went AFTER DELETE ON progress WHEN OLD.scheduled_for IS NOT NULL BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'source', 'schedule', 'nominal', OLD.nominal,
      'dueAt', OLD.due_at, 'attempt', coalesce(c.attempt, OLD.attempt), 'fence', coalesce(c.fence, OLD.fence), 'claimedAt', c.claimed_at)
  FROM definitions AS a LEFT JOIN claims AS c ON c.alarm = OLD.alarm AND c.scheduled_for = OLD.scheduled_for WHERE a.seq = OLD.alarm;
END;

CREATE TRIGGER IF NOT EXISTS checker_claim_came AFTER INSERT ON claims BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', o.attempt, 'fence', o.fence, 'claimedAt', NULL),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'claimedAt', NEW.claimed_at)
  FROM (
    SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, fence FROM progress
    UNION ALL SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, fence FROM triggers
  ) AS o JOIN definitions AS a ON a.seq = o.alarm WHERE o.alarm = NEW.alarm AND o.scheduled_for = NEW.scheduled_for;
END;
CREATE TRIGGER IF NOT EXISTS checker_claim_changed AFTER UPDATE ON claims BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'claimedAt', OLD.claimed_at),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', NEW.attempt, 'fence', NEW.fence, 'claimedAt', NEW.claimed_at)
  FROM (
    SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, fence FROM progress
    UNION ALL SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, fence FROM triggers
  ) AS o JOIN definitions AS a ON a.seq = o.alarm WHERE o.alarm = NEW.alarm AND o.scheduled_for = NEW.scheduled_for;
END;
CREATE TRIGGER IF NOT EXISTS checker_claim_went AFTER DELETE ON claims BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'occurrences',
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', OLD.attempt, 'fence', OLD.fence, 'claimedAt', OLD.claimed_at),
    json_object('fireId', a.id || '@' || o.scheduled_for, 'alarmId', a.id, 'source', o.source, 'nominal', o.nominal,
      'dueAt', o.due_at, 'attempt', o.attempt, 'fence', o.fence, 'claimedAt', NULL)
  FROM (
    SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, fence FROM progress
    UNION ALL SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, fence FROM triggers
  ) AS o JOIN definitions AS a ON a.seq = o.alarm WHERE o.alarm = OLD.alarm AND o.scheduled_for = OLD.scheduled_for;
END;

-- An attempt enters the ledger when a later one takes its place in the row of progress: it came with that row.
CREATE TRIGGER IF NOT EXISTS checker_attempt_came AFTER INSERT ON ledger
  WHEN NOT EXISTS (
    SELECT 1 FROM progress AS p WHERE p.alarm = NEW.alarm
      AND (p.last_scheduled_for, p.last_attempt, p.last_started_at) IS (NEW.scheduled_for, NEW.attempt, NEW.started_at))
BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'attempt', NEW.attempt, 'outcome', NEW.outcome)
  FROM definitions AS a WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_last_attempt_came AFTER UPDATE ON progress
  WHEN (OLD.last_scheduled_for, OLD.last_attempt, OLD.last_started_at) IS NOT (NEW.last_scheduled_for, NEW.last_attempt, NEW.last_started_at)
    AND NEW.last_attempt IS NOT NULL AND OLD.scheduled_for IS NEW.scheduled_for
BEGIN
  INSERT INTO checker_audit ("at", "table", after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || NEW.last_scheduled_for, 'alarmId', a.id, 'attempt', NEW.last_attempt, 'outcome', NEW.last_outcome)
  FROM definitions AS a WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_changed AFTER UPDATE ON ledger BEGIN
  INSERT INTO checker_audit ("at", "table", before, after) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'attempt', OLD.attempt, 'outcome', OLD.outcome),
    json_object('fireId', a.id || '@' || NEW.scheduled_for, 'alarmId', a.id, 'attempt', NEW.attempt, 'outcome', NEW.outcome)
  FROM definitions AS a WHERE a.seq = NEW.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_attempt_went AFTER DELETE ON ledger BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || OLD.scheduled_for, 'alarmId', a.id, 'attempt', OLD.attempt, 'outcome', OLD.outcome)
  FROM definitions AS a WHERE a.seq = OLD.alarm;
END;
CREATE TRIGGER IF NOT EXISTS checker_last_attempt_went AFTER DELETE ON progress WHEN OLD.last_attempt IS NOT NULL BEGIN
  INSERT INTO checker_audit ("at", "table", before) SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER), 'fire_attempts',
    json_object('fireId', a.id || '@' || OLD.last_scheduled_for, 'alarmId', a.id, 'attempt', OLD.last_attempt, 'outcome', OLD.last_outcome)
  FROM definitions AS a WHERE a.seq = OLD.alarm;
END;
