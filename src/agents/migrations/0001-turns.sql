-- What the router knows of agents that have no daemon: their conversations and their turns. Instants are epoch milliseconds.

-- Which session of the target stands behind a conversation. Each preset has its own: the id of one agent means nothing to another.
CREATE TABLE conversations (
  user_id         TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  preset          TEXT NOT NULL,
  session         TEXT,             -- the target's own name for it; NULL: none yet, the next turn begins one
  cwd             TEXT,             -- where its first turn ran; later ones run there too
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (user_id, conversation_id, preset)
) STRICT, WITHOUT ROWID;

-- A row is there before the wake is acknowledged, and says 'running' before anything of the turn leaves the router: so a wake that
-- comes again finds its turn, and a router that starts after a crash knows which turns may have run.
CREATE TABLE turns (
  seq             INTEGER PRIMARY KEY,   -- the order of acceptance
  id              TEXT NOT NULL UNIQUE,
  user_id         TEXT NOT NULL,
  fire_id         TEXT NOT NULL,
  alarm_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  named           INTEGER NOT NULL,      -- 1: the wake named the conversation; 0: it is new with this turn
  preset          TEXT NOT NULL,
  message         TEXT NOT NULL,
  payload         TEXT,                  -- JSON source text
  scheduled_for   INTEGER NOT NULL,
  missed_count    INTEGER NOT NULL,
  label           TEXT,
  set_at          INTEGER,
  status          TEXT NOT NULL CHECK (status IN ('queued', 'running', 'accepted', 'done', 'failed', 'unknown')),
  attempts        INTEGER NOT NULL DEFAULT 0,   -- how often it was tried
  not_before      INTEGER,               -- while queued: when the next attempt may begin
  waits           TEXT,                  -- while queued: why the last attempt did not start
  session         TEXT,                  -- of the attempt that runs or ran last
  handle          TEXT,                  -- what the target calls the turn
  spawn_id        TEXT,                  -- stands in the environment of the attempt's process as REVEILLE_SPAWN_ID
  pid             INTEGER,               -- also the id of its process group
  birth           TEXT,                  -- when it was started, as the kernel tells it
  reply           TEXT,
  error           TEXT,
  accepted_at     INTEGER NOT NULL,
  started_at      INTEGER,
  finished_at     INTEGER,
  UNIQUE (user_id, fire_id)
) STRICT;

CREATE INDEX turns_unfinished ON turns (seq) WHERE status IN ('queued', 'running');
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL;
