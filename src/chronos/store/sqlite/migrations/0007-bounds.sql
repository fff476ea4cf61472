-- How much of each owner is stored, ended alarms included, so that a create need not count it.
ALTER TABLE owners ADD COLUMN stored_alarms INTEGER NOT NULL DEFAULT 0 CHECK (stored_alarms >= 0);
ALTER TABLE owners ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0);
INSERT INTO owners (owner, open_alarms, next_due, stored_alarms, stored_bytes)
SELECT a.owner, 0, NULL, count(*),
  sum(1024 + octet_length(t.wake_message) + coalesce(octet_length(t.payload), 0) + octet_length(a.label))
FROM alarms AS a JOIN alarm_texts AS t USING (seq) WHERE true GROUP BY a.owner
ON CONFLICT (owner) DO UPDATE SET stored_alarms = excluded.stored_alarms, stored_bytes = excluded.stored_bytes;

-- Serves forgetting alarms that ended, longest ago first.
CREATE INDEX alarms_ended ON alarms (updated_at) WHERE status IN ('fired', 'cancelled', 'failed');

-- How many triggers of an owner wait.
CREATE INDEX occurrences_triggers ON occurrences (owner) WHERE source = 'trigger' AND due_at IS NOT NULL;

-- How many owners came by trust on first use within the last hour.
CREATE INDEX agent_keys_by_age ON agent_keys (enrolled_at);
