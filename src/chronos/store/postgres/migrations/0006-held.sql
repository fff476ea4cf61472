-- Quiet hours of its owner do not hold an urgent alarm back: 1, or 0. A number, as in SQLite, so that both sides of a move compare
-- equal; with a default, for replicas of the version before this one go on inserting.
ALTER TABLE alarms ADD COLUMN urgent BIGINT NOT NULL DEFAULT 0 CHECK (urgent IN (0, 1));

-- Why, and until when, the router last held the occurrence back; NULL when it did not. At due_at it is asked again.
ALTER TABLE occurrences ADD COLUMN held_reason TEXT;
ALTER TABLE occurrences ADD COLUMN held_until BIGINT;
