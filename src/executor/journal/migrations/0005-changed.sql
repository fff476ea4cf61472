-- When the last envelope was appended, epoch milliseconds: a stream of events that resumes reads what changed since then.
-- 0 for older rows: no stream can resume before this.
ALTER TABLE intents ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;

CREATE INDEX intents_changed ON intents (user_id, changed_at);
