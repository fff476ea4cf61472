-- Records every change of alarms, pending occurrences and attempts, in the same transaction. No writer can avoid it.
-- The triggers run after the row has been changed and is locked: of two changes to one row, the later has the larger seq.
CREATE TABLE checker_audit (
  seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transaction TEXT   NOT NULL,
  "at"        BIGINT NOT NULL,
  "table"     TEXT   NOT NULL,
  before      JSONB,
  after       JSONB
);

-- Attempts that were recorded. One enters the ledger when a later one takes its place in the row of its alarm: that is no change.
CREATE TABLE checker_attempts (
  owner         TEXT   NOT NULL,
  alarm_id      TEXT   NOT NULL,
  started_at    BIGINT NOT NULL,
  scheduled_for BIGINT NOT NULL,
  attempt       BIGINT NOT NULL,
  PRIMARY KEY (owner, alarm_id, started_at, scheduled_for, attempt)
);

CREATE FUNCTION checker_note(relation TEXT, image_before JSONB, image_after JSONB) RETURNS VOID LANGUAGE sql AS $$
  INSERT INTO checker_audit (transaction, "at", "table", before, after) VALUES (
    pg_current_xact_id()::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, relation, image_before, image_after)
$$;

CREATE FUNCTION checker_alarm(p progress) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p.trigger_at = 0 THEN jsonb_build_object('id', p.alarm_id, 'status', p.status) END
$$;

CREATE FUNCTION checker_occurrence(p progress) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p.scheduled_for IS NOT NULL THEN jsonb_build_object(
    'fireId', p.alarm_id || '@' || p.scheduled_for, 'alarmId', p.alarm_id,
    'source', CASE WHEN p.trigger_at = 0 THEN 'schedule' ELSE 'trigger' END, 'nominal', p.nominal, 'dueAt', p.due_at,
    'attempt', p.attempt, 'fence', p.fence, 'claimedAt', p.claimed_at) END
$$;

CREATE FUNCTION checker_attempt(alarm_id TEXT, scheduled_for BIGINT, attempt BIGINT, outcome TEXT) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('fireId', alarm_id || '@' || scheduled_for, 'alarmId', alarm_id, 'attempt', attempt, 'outcome', outcome)
$$;

CREATE FUNCTION checker_attempt_came(l ledger) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO checker_attempts VALUES (l.owner, l.alarm_id, l.started_at, l.scheduled_for, l.attempt) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM checker_note('fire_attempts', NULL, checker_attempt(l.alarm_id, l.scheduled_for, l.attempt, l.outcome));
END
$$;

CREATE FUNCTION checker_attempt_went(l ledger) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM checker_attempts AS c WHERE c.owner = l.owner AND c.alarm_id = l.alarm_id AND c.started_at = l.started_at
    AND c.scheduled_for = l.scheduled_for AND c.attempt = l.attempt;
  PERFORM checker_note('fire_attempts', checker_attempt(l.alarm_id, l.scheduled_for, l.attempt, l.outcome), NULL);
END
$$;

CREATE FUNCTION checker_last(p progress) RETURNS ledger LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  l ledger;
BEGIN
  l.owner := p.owner;
  l.alarm_id := p.alarm_id;
  l.started_at := p.last_started_at;
  l.scheduled_for := p.last_scheduled_for;
  l.attempt := p.last_attempt;
  l.outcome := p.last_outcome;
  RETURN l;
END
$$;

CREATE FUNCTION checker_progress() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  alarm_before JSONB;
  alarm_after JSONB;
  owed_before JSONB;
  owed_after JSONB;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    alarm_before := checker_alarm(OLD);
    owed_before := checker_occurrence(OLD);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    alarm_after := checker_alarm(NEW);
    owed_after := checker_occurrence(NEW);
  END IF;
  IF alarm_before IS DISTINCT FROM alarm_after THEN PERFORM checker_note('alarms', alarm_before, alarm_after); END IF;
  IF owed_before ->> 'fireId' = owed_after ->> 'fireId' THEN
    IF owed_before <> owed_after THEN PERFORM checker_note('occurrences', owed_before, owed_after); END IF;
  ELSE
    IF owed_before IS NOT NULL THEN PERFORM checker_note('occurrences', owed_before, NULL); END IF;
    IF owed_after IS NOT NULL THEN PERFORM checker_note('occurrences', NULL, owed_after); END IF;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    IF NEW.last_attempt IS NOT NULL THEN PERFORM checker_attempt_came(checker_last(NEW)); END IF;
  ELSIF OLD.last_attempt IS NOT NULL THEN
    PERFORM checker_attempt_went(checker_last(OLD));
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION checker_ledger() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN PERFORM checker_attempt_came(NEW);
  ELSIF TG_OP = 'DELETE' THEN PERFORM checker_attempt_went(OLD);
  ELSE
    PERFORM checker_note('fire_attempts', checker_attempt(OLD.alarm_id, OLD.scheduled_for, OLD.attempt, OLD.outcome),
      checker_attempt(NEW.alarm_id, NEW.scheduled_for, NEW.attempt, NEW.outcome));
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER checker_progress AFTER INSERT OR UPDATE OR DELETE ON progress FOR EACH ROW EXECUTE FUNCTION checker_progress();
CREATE TRIGGER checker_ledger AFTER INSERT OR UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION checker_ledger();
