-- Where each user's agent lives. Rows are never removed: a deleted machine stays as a tombstone, so that a wake for it is
-- answered with 410 and not with 404. Instants are epoch milliseconds.
CREATE TABLE machines (
  user_id      TEXT PRIMARY KEY,
  provider     TEXT NOT NULL,
  spec         TEXT NOT NULL,     -- JSON
  state        TEXT NOT NULL CHECK (state IN ('active', 'provisioning', 'suspended', 'deleted')),
  idle_seconds INTEGER,
  token        TEXT NOT NULL,     -- what the daemon expects; empty in a tombstone
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Processes that this router started. A row is written before the fork (without a pid) and completed right after it, so that a
-- router that starts after a crash finds what still runs.
CREATE TABLE processes (
  user_id     TEXT PRIMARY KEY,
  spawn_id    TEXT NOT NULL,      -- stands in the environment of the process as REVEILLE_SPAWN_ID
  fingerprint TEXT NOT NULL,      -- of the specification it was started from
  port        INTEGER NOT NULL,
  pid         INTEGER,            -- also the id of its process group
  birth       TEXT                -- when it was started, as the kernel tells it: a reused pid has another one
) STRICT, WITHOUT ROWID;

-- One row that /readyz rewrites.
CREATE TABLE readiness (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  checked_at INTEGER NOT NULL
) STRICT;
