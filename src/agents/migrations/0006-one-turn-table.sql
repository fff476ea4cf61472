-- The table of every agent's turns, with the same columns as Neo's.
CREATE TABLE new_turns (
  -- The order of acceptance. AUTOINCREMENT: a number is never given twice.
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT    NOT NULL UNIQUE,
  user_id         TEXT,
  conversation_id TEXT    NOT NULL,
  origin          TEXT    NOT NULL CHECK (origin IN ('user', 'chronos')),
  alarm_id        TEXT,
  fire_id         TEXT,
  -- 1: the wake named the conversation; 0: it is new with this turn.
  named           INTEGER,
  preset          TEXT,
  scheduled_for   INTEGER,
  missed_count    INTEGER,
  late_because    TEXT,
  label           TEXT,
  set_at          INTEGER,
  set_by          TEXT,
  message         TEXT    NOT NULL,
  -- JSON source text.
  payload         TEXT,
  status          TEXT    NOT NULL
    CHECK (status IN ('queued', 'running', 'accepted', 'done', 'failed', 'unknown', 'interrupted')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  -- Attempts that ended in a temporary failure.
  retries         INTEGER NOT NULL DEFAULT 0,
  -- While queued: when the next attempt may begin, and why the last one did not start.
  retry_at        INTEGER,
  waits           TEXT,
  -- Of the current or last attempt: the agent's conversation, its name of the turn, and the process.
  session         TEXT,
  handle          TEXT,
  spawn_id        TEXT,
  pid             INTEGER,
  birth           TEXT,
  reply           TEXT,
  error           TEXT,
  model           TEXT,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  finished_at     INTEGER,
  UNIQUE (user_id, fire_id)
) STRICT;

INSERT INTO new_turns (
  seq, id, user_id, conversation_id, origin, alarm_id, fire_id, named, preset, scheduled_for, missed_count, late_because,
  label, set_at, set_by, message, payload, status, attempts, retry_at, waits, session, handle, spawn_id, pid, birth,
  reply, error, created_at, started_at, finished_at)
SELECT
  seq, id, user_id, conversation_id, 'chronos', nullif(alarm_id, ''), fire_id, named, preset, scheduled_for,
  missed_count, late_because, label, set_at, set_by, message, payload, status, attempts, not_before, waits, session,
  handle, spawn_id, pid, birth, reply, error, accepted_at, started_at, finished_at
FROM turns ORDER BY seq;

DROP TABLE turns;
ALTER TABLE new_turns RENAME TO turns;

CREATE INDEX turns_unfinished ON turns (seq) WHERE status IN ('queued', 'running');
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL;
