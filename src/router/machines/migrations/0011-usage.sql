-- What the turn of a wake used, as JSON, or 'unknown' for one that ended without saying so. NULL: no end is known yet.
-- It is asked for only where a budget in tokens or in money needs it.
ALTER TABLE wakes ADD COLUMN usage TEXT;
