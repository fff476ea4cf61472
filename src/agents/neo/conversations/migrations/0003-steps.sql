-- What the model of a turn asked for, step by step, so that a turn which runs again goes on where it stood and repeats nothing.

CREATE TABLE turn_steps (
  turn_id TEXT    NOT NULL REFERENCES turns (id),
  -- 1 for the turn's first answer that asked for calls.
  step    INTEGER NOT NULL,
  -- What the model said beside the calls.
  said    TEXT    NOT NULL,
  -- Calls that it asked for beyond those that one step may make.
  left_out INTEGER NOT NULL,
  PRIMARY KEY (turn_id, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE turn_calls (
  turn_id     TEXT    NOT NULL,
  step        INTEGER NOT NULL,
  -- The order in which the model wrote the calls of a step, from 0.
  place       INTEGER NOT NULL,
  -- The endpoint's name for the call, and what it wants back beside it (JSON).
  call_id     TEXT    NOT NULL,
  opaque      TEXT,
  name        TEXT    NOT NULL,
  -- The arguments as the model wrote them; cut when they are long and the turn has ended.
  input       TEXT    NOT NULL,
  -- Stored before the call is made; without a finish nobody knows whether it took effect.
  begun_at    INTEGER NOT NULL,
  finished_at INTEGER,
  is_error    INTEGER,
  -- What came of it (JSON); dropped when it is long and the turn has ended.
  content     TEXT,
  PRIMARY KEY (turn_id, step, place)
) STRICT;
