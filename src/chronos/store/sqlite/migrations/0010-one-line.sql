-- One line of what falls due, over all owners: fires and creates change its ends, and not a page for each owner. Whose places are full
-- is passed over in memory.
DROP INDEX owed_due;
CREATE INDEX owed_due ON owed (due_at, owner) WHERE due_at IS NOT NULL;
DROP INDEX owners_queue;
ALTER TABLE owners DROP COLUMN next_due;
