-- Tasks of other agents. A task is stored before it is acknowledged. The id of its turn is derived from the task's id, so that
-- the turn starts once. Instants are epoch milliseconds.
CREATE TABLE tasks (
  id              TEXT    PRIMARY KEY,
  user_id         TEXT    NOT NULL,
  caller          TEXT    NOT NULL,  -- digest of the user, the issuer, the subject and the client
  caller_name     TEXT    NOT NULL,
  context_id      TEXT    NOT NULL,
  conversation_id TEXT    NOT NULL,
  message_id      TEXT    NOT NULL,
  message         TEXT    NOT NULL,  -- JSON of A2A 1.0
  payload         TEXT,              -- source text of its data parts
  state           TEXT    NOT NULL
    CHECK (state IN ('submitted', 'working', 'auth_required', 'completed', 'failed', 'canceled')),
  turn_id         TEXT,
  waits_for       TEXT,              -- JSON list of intents that continue after the turn
  note            TEXT,
  reply           TEXT,
  result          TEXT,              -- JSON that is returned with the reply
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  UNIQUE (caller, message_id)
) STRICT;
CREATE INDEX tasks_of_caller ON tasks (caller, updated_at DESC, id DESC);
CREATE INDEX tasks_unfinished ON tasks (user_id) WHERE state IN ('submitted', 'working', 'auth_required');
CREATE INDEX tasks_by_age ON tasks (updated_at);

CREATE TABLE push_configs (
  task_id     TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  id          TEXT NOT NULL,
  url         TEXT NOT NULL,
  token       TEXT NOT NULL,
  scheme      TEXT NOT NULL,
  credentials TEXT NOT NULL,
  version     TEXT NOT NULL,         -- of the protocol of its notifications
  PRIMARY KEY (task_id, id)
) STRICT, WITHOUT ROWID;

-- Undelivered notifications.
CREATE TABLE notifications (
  id        TEXT    PRIMARY KEY,
  task_id   TEXT    NOT NULL,
  config_id TEXT    NOT NULL,
  body      TEXT    NOT NULL,
  attempts  INTEGER NOT NULL DEFAULT 0,
  due_at    INTEGER NOT NULL,
  FOREIGN KEY (task_id, config_id) REFERENCES push_configs (task_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX notifications_due ON notifications (due_at);
CREATE INDEX notifications_of_config ON notifications (task_id, config_id);
