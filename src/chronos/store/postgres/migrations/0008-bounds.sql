-- How much of each owner is stored, ended alarms included, so that a create need not count it. With defaults, for replicas of the
-- version before this one go on inserting.
ALTER TABLE owners ADD COLUMN stored_alarms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
INSERT INTO owners (owner, open_at_most, stored_alarms, stored_bytes)
SELECT owner, count(*), count(*),
  sum(1024 + octet_length(wake_message) + coalesce(octet_length(payload), 0) + octet_length(label))
FROM alarms GROUP BY owner
ON CONFLICT (owner) DO UPDATE SET stored_alarms = excluded.stored_alarms, stored_bytes = excluded.stored_bytes;

-- Serves forgetting alarms that ended, longest ago first. Deliveries of a series do not move updated_at.
CREATE INDEX alarms_ended ON alarms (updated_at ASC) WHERE status IN ('fired', 'cancelled', 'failed');

-- How many triggers of an owner wait.
CREATE INDEX occurrences_triggers ON occurrences (owner ASC) WHERE source = 'trigger' AND due_at IS NOT NULL;

-- How many owners came by trust on first use within the last hour.
CREATE INDEX agent_keys_by_age ON agent_keys (enrolled_at ASC);
