-- Counts the changes of an owner's alarms that their owner requested, and deferrals, so that replicas find them without reading the
-- alarms. Fires do not change it: their attempts are found by their end. With a default, for replicas of the version before this one.
ALTER TABLE owners ADD COLUMN edits BIGINT NOT NULL DEFAULT 0;
