-- Users whose daemon accepted a wake and has not been seen idle since. A machine that does not run although it stands here is
-- started again without another wake. One row for a whole time of work, not one for each wake.
CREATE TABLE owed_turns (
  user_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
