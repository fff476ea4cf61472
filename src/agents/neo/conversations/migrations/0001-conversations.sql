-- Instants are milliseconds since the epoch, UTC.

CREATE TABLE conversations (
  id               TEXT    PRIMARY KEY,
  created_at       INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  turn_count       INTEGER NOT NULL,
  -- The beginning of the newest message, so that a list need not read whole turns.
  last_message     TEXT    NOT NULL
) STRICT;

CREATE INDEX conversations_by_activity ON conversations (last_activity_at DESC, id DESC);

CREATE TABLE turns (
  -- The order of acceptance. AUTOINCREMENT: a number is never given twice.
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT    NOT NULL UNIQUE,
  conversation_id TEXT    NOT NULL REFERENCES conversations (id),
  origin          TEXT    NOT NULL CHECK (origin IN ('user', 'chronos')),
  alarm_id        TEXT,
  -- One occurrence of one alarm is one turn, however often its wake is repeated.
  fire_id         TEXT    UNIQUE,
  scheduled_for   INTEGER,
  missed_count    INTEGER,
  label           TEXT,
  set_at          INTEGER,
  -- What reached us, byte for byte; the payload is JSON source text and never parsed.
  message         TEXT    NOT NULL,
  payload         TEXT,
  status          TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'done', 'failed', 'interrupted')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  reply           TEXT,
  error           TEXT,
  model           TEXT,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  finished_at     INTEGER
) STRICT;

CREATE INDEX turns_by_conversation ON turns (conversation_id, seq);
-- Both hold only what is unfinished, however long the history grows.
CREATE INDEX turns_queued ON turns (conversation_id, seq) WHERE status = 'queued';
CREATE INDEX turns_running ON turns (seq) WHERE status = 'running';

CREATE TABLE events (
  -- What readers resume from. AUTOINCREMENT: it only ever grows, across restarts and deletions.
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT    NOT NULL,
  turn_id         TEXT    NOT NULL,
  type            TEXT    NOT NULL,
  data            TEXT    NOT NULL
) STRICT;

CREATE INDEX events_by_conversation ON events (conversation_id, id);
CREATE INDEX events_said ON events (turn_id, id) WHERE type = 'say';

CREATE TABLE event_retention (
  -- Events up to this id have been dropped because they were old.
  dropped_through INTEGER NOT NULL
) STRICT;

INSERT INTO event_retention (dropped_through) VALUES (0);
