-- The person whose words the wake carries; NULL: the agent's own.
ALTER TABLE turns ADD COLUMN set_by TEXT;
