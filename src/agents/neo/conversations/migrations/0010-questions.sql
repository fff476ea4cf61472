-- Questions of MCP servers to the user. The questions of a turn are removed when the turn has ended.
CREATE TABLE questions (
  id              TEXT    PRIMARY KEY,
  turn_id         TEXT    NOT NULL REFERENCES turns (id),
  conversation_id TEXT    NOT NULL,
  server          TEXT    NOT NULL,
  tool            TEXT    NOT NULL,
  -- The same for the same question of the same tool.
  digest          TEXT    NOT NULL,
  -- The question, as JSON.
  asked           TEXT    NOT NULL,
  state           TEXT    NOT NULL,
  -- The values of an accepted form, as JSON.
  content         TEXT,
  -- Whether the server has the answer.
  is_used         INTEGER NOT NULL DEFAULT 0,
  asked_at        INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX questions_of_turn ON questions (turn_id);
