-- Who is told of what, and where. `spec` holds secrets: the file is its owner's alone.
CREATE TABLE channels (
  id            TEXT PRIMARY KEY,
  user_id       TEXT NOT NULL,
  name          TEXT NOT NULL,
  kind          TEXT NOT NULL,
  spec          TEXT NOT NULL,
  told          TEXT NOT NULL,
  quiet         TEXT,
  -- Whether quiet hours hold approvals back as well.
  quiet_all     INTEGER NOT NULL DEFAULT 0,
  -- Neither told nor written for: the desktop of a machine where nobody sits.
  paused        INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL,
  last_told_at  INTEGER,
  last_error    TEXT,
  last_error_at INTEGER,
  UNIQUE (user_id, name)
) STRICT;

-- What was found already, so that it is told once, whoever finds it again.
CREATE TABLE found (
  user_id  TEXT NOT NULL,
  key      TEXT NOT NULL,
  found_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX found_by_age ON found (found_at);

-- From when on the sources are looked at.
CREATE TABLE cursors (
  user_id  TEXT NOT NULL,
  source   TEXT NOT NULL,
  begun_at INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  PRIMARY KEY (user_id, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE notifications (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The same on every attempt: receivers recognise a repetition by it.
  id         TEXT NOT NULL UNIQUE,
  channel_id TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
  news       TEXT NOT NULL,
  -- held: until quiet hours are over, then part of a summary
  state      TEXT NOT NULL CHECK (state IN ('waiting', 'held', 'told', 'dropped', 'summed')),
  created_at INTEGER NOT NULL,
  due_at     INTEGER NOT NULL,
  attempts   INTEGER NOT NULL DEFAULT 0,
  why        TEXT,
  ended_at   INTEGER
) STRICT;
CREATE INDEX notifications_open ON notifications (channel_id, state, due_at) WHERE state IN ('waiting', 'held');
CREATE INDEX notifications_ended ON notifications (ended_at) WHERE ended_at IS NOT NULL;

-- Questions that were answered by a link, until the links would have expired.
CREATE TABLE used_links (
  question   TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
