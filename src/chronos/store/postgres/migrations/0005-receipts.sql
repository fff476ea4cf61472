-- How far a fire got after its wake was accepted, as the machine tells it: one row for each stage.
CREATE TABLE fire_receipts (
  owner           TEXT   NOT NULL,
  alarm_id        TEXT   NOT NULL,
  fire_id         TEXT   NOT NULL,
  -- turn_started or turn_finished; others may come.
  stage           TEXT   NOT NULL,
  -- When it happened, by the machine's clock.
  at              BIGINT NOT NULL,
  -- Of turn_finished: ok, failed or unknown.
  outcome         TEXT   CHECK (outcome IN ('ok', 'failed', 'unknown')),
  error           TEXT,
  turn_id         TEXT,
  conversation_id TEXT,
  recorded_at     BIGINT NOT NULL,
  PRIMARY KEY (owner, alarm_id, fire_id, stage)
);

-- Serves pruning, oldest first.
CREATE INDEX fire_receipts_by_age ON fire_receipts (recorded_at ASC);

-- How long after the attempt began the machine was ready, in milliseconds.
ALTER TABLE fire_attempts ADD COLUMN machine_ready_ms BIGINT;
