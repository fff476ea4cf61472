-- Instants are milliseconds since the epoch, by the wall clock.

CREATE TABLE sessions (
  id                    TEXT    PRIMARY KEY,
  -- Intent and summary are JSON strings: plain text would lose halves of surrogate pairs, and they are kept as they came.
  intent                TEXT    NOT NULL,
  summary               TEXT,
  started_at            INTEGER NOT NULL,
  -- The last tool call that carried it on.
  last_call_at          INTEGER NOT NULL,
  ended_at              INTEGER CHECK (ended_at >= started_at),
  ending                TEXT    CHECK (ending IN ('ended', 'auto_closed')),
  -- What was counted when it ended. Spans go one day, these stay.
  last_seen_at          INTEGER,
  active_ms             INTEGER,
  active_since_break_ms INTEGER,
  CHECK ((ended_at IS NULL) = (ending IS NULL)),
  CHECK ((ended_at IS NULL) = (last_seen_at IS NULL)),
  CHECK ((ended_at IS NULL) = (active_ms IS NULL)),
  CHECK ((ended_at IS NULL) = (active_since_break_ms IS NULL))
) STRICT;

-- One session at a time, whoever starts them.
CREATE UNIQUE INDEX one_open_session ON sessions ((1)) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_end ON sessions (ended_at);

-- Who was there when: stretches that neither touch nor overlap. A heartbeat lengthens one; only a gap begins another.
CREATE TABLE spans (
  began_at INTEGER PRIMARY KEY,
  ended_at INTEGER NOT NULL CHECK (ended_at >= began_at)
) STRICT;

-- The last call of a tool, by whichever server.
CREATE TABLE last_call (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  at   INTEGER NOT NULL
) STRICT;

-- The last prompt that a prompt hook of a client told of.
CREATE TABLE last_prompt (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  at   INTEGER NOT NULL
) STRICT;
