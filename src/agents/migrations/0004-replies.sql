-- Of turn_finished: the beginning of what was answered. A turn of these agents is never reported as waiting.
ALTER TABLE receipts ADD COLUMN retry_at INTEGER;
ALTER TABLE receipts ADD COLUMN reply TEXT;
