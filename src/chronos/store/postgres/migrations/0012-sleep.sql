-- The computer is woken from its sleep for it: 1, or 0. A fleet wakes no computers; the wish is kept for who moves on.
ALTER TABLE alarms ADD COLUMN wake_computer BIGINT NOT NULL DEFAULT 0 CHECK (wake_computer IN (0, 1));

-- Why the attempt was late: the computer slept, or nothing ran; NULL: neither, or nobody knows.
ALTER TABLE fire_attempts ADD COLUMN late_because TEXT;
