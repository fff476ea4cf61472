-- Of turn_waits: when the turn is tried again. Of turn_finished: the beginning of what was answered.
ALTER TABLE fire_receipts ADD COLUMN retry_at BIGINT;
ALTER TABLE fire_receipts ADD COLUMN reply TEXT;
