-- The addresses at which calendar apps read the alarms of an owner. Of their secrets only digests are stored.
CREATE TABLE calendar_feeds (
  owner      TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  -- Whether the messages of alarms are in it.
  messages   INTEGER NOT NULL CHECK (messages IN (0, 1)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
