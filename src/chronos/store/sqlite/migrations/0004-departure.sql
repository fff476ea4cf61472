-- Whether these alarms are on their way to PostgreSQL, or have gone there: while they are, nobody may ring them from here. One row,
-- made with the first move.
CREATE TABLE departures (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  -- Names this file to the databases that it moves to, for good.
  source   TEXT    NOT NULL,
  -- home: in use here. moving: being copied. verified: the copy is whole and may be in use already. moved: it is.
  state    TEXT    NOT NULL CHECK (state IN ('home', 'moving', 'verified', 'moved')),
  -- Names the move, here and in the database; new with every beginning.
  transfer TEXT,
  -- The database by its address, without user and password.
  target   TEXT,
  since    INTEGER NOT NULL,
  CHECK ((state = 'home') = (transfer IS NULL)),
  CHECK ((transfer IS NULL) = (target IS NULL))
) STRICT;
