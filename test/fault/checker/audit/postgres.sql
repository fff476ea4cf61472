-- Records every change of pending occurrences and of the ledger, in the same transaction. No writer can avoid it.
-- The triggers run after the row has been changed and is locked: of two changes to one row, the later has the larger seq.
CREATE TABLE checker_audit (
  seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transaction TEXT   NOT NULL,
  "at"        BIGINT NOT NULL,
  "table"     TEXT   NOT NULL,
  before      JSONB,
  after       JSONB
);

CREATE FUNCTION checker_image(relation TEXT, whole JSONB) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN whole IS NULL THEN NULL
    WHEN relation = 'alarms' THEN jsonb_build_object('id', whole -> 'id', 'status', whole -> 'status')
    WHEN relation = 'fire_attempts' THEN jsonb_build_object(
      'fireId', whole -> 'fire_id', 'alarmId', whole -> 'alarm_id', 'attempt', whole -> 'attempt', 'outcome', whole -> 'outcome')
    ELSE jsonb_build_object(
      'fireId', whole -> 'fire_id', 'alarmId', whole -> 'alarm_id', 'source', whole -> 'source', 'nominal', whole -> 'nominal',
      'dueAt', whole -> 'due_at', 'attempt', whole -> 'attempt', 'fence', whole -> 'fence',
      'claimedAt', whole -> 'claimed_at')
  END
$$;

CREATE FUNCTION checker_note() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
  old_row JSONB;
  new_row JSONB;
BEGIN
  IF TG_OP <> 'INSERT' THEN old_row := to_jsonb(OLD); END IF;
  IF TG_OP <> 'DELETE' THEN new_row := to_jsonb(NEW); END IF;
  INSERT INTO checker_audit (transaction, "at", "table", before, after) VALUES (
    pg_current_xact_id()::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, TG_TABLE_NAME,
    checker_image(TG_TABLE_NAME, old_row), checker_image(TG_TABLE_NAME, new_row));
  RETURN NULL;
END
$$;

CREATE TRIGGER checker_alarm_made AFTER INSERT OR DELETE ON alarms FOR EACH ROW EXECUTE FUNCTION checker_note();
-- A series counts its deliveries in the alarm's row: only status changes are recorded, to save time.
CREATE TRIGGER checker_alarm_changed AFTER UPDATE ON alarms FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION checker_note();
CREATE TRIGGER checker_occurrence AFTER INSERT OR UPDATE OR DELETE ON occurrences FOR EACH ROW EXECUTE FUNCTION checker_note();
CREATE TRIGGER checker_attempt AFTER INSERT OR UPDATE OR DELETE ON fire_attempts FOR EACH ROW EXECUTE FUNCTION checker_note();
