-- When the next turn is tried again of a daemon that has nothing else to do: it may sleep until then. NULL: it owes one now.
ALTER TABLE owed_turns ADD COLUMN due_at INTEGER;
