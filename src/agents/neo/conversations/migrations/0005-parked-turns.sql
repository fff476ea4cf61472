-- A wake's turn that failed for a reason that passes waits: queued, and not begun before this instant; NULL: it may begin.
ALTER TABLE turns ADD COLUMN retry_at INTEGER;
-- How many of its attempts ended so; a crash of Neo is not among them.
ALTER TABLE turns ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

DROP INDEX turns_queued;
CREATE INDEX turns_queued ON turns (conversation_id, seq) WHERE status = 'queued' AND retry_at IS NULL;
CREATE INDEX turns_parked ON turns (retry_at) WHERE status = 'queued' AND retry_at IS NOT NULL;

-- Of turn_waits: when the turn is tried again. Of turn_finished: the beginning of what was answered.
ALTER TABLE receipts ADD COLUMN retry_at INTEGER;
ALTER TABLE receipts ADD COLUMN reply TEXT;
