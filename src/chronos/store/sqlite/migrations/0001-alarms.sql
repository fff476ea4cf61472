-- Instants are epoch milliseconds. Every key begins with the owner, so that no statement can reach another owner's row.

-- What the owner defined and how far it has come. The long texts stand apart: SQLite rewrites a whole row on UPDATE.
CREATE TABLE alarms (
  seq                  INTEGER PRIMARY KEY,
  owner                TEXT    NOT NULL,
  id                   TEXT    NOT NULL,
  kind                 TEXT    NOT NULL CHECK (kind IN ('once', 'cron')),
  label                TEXT    NOT NULL,
  conversation_id      TEXT,
  idempotency_key      TEXT,
  delay_seconds        REAL,
  fire_at              INTEGER,
  cron_expr            TEXT,
  timezone             TEXT,
  anchor               INTEGER NOT NULL,
  jitter_seconds       REAL    NOT NULL,
  ends_at              INTEGER,
  max_fires            INTEGER,
  max_failures         INTEGER NOT NULL,
  max_lateness_seconds REAL,
  status               TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'fired', 'cancelled', 'failed')),
  failure_count        INTEGER NOT NULL CHECK (failure_count >= 0),
  last_error           TEXT,
  created_at           INTEGER NOT NULL,
  updated_at           INTEGER NOT NULL,
  last_fired_at        INTEGER,
  fire_count           INTEGER NOT NULL CHECK (fire_count >= 0),
  scheduled_fires      INTEGER NOT NULL CHECK (scheduled_fires >= 0),
  UNIQUE (owner, id)
) STRICT;

-- Serves lists by status and kind, newest first.
CREATE INDEX alarms_by_status ON alarms (owner, status, kind, id);

CREATE UNIQUE INDEX alarms_idempotency ON alarms (owner, idempotency_key)
  WHERE idempotency_key IS NOT NULL AND status <> 'cancelled';

-- The agent's words: written once, read when they are delivered or shown, rewritten only by an edit.
CREATE TABLE alarm_texts (
  seq          INTEGER PRIMARY KEY REFERENCES alarms (seq),
  wake_message TEXT NOT NULL,
  payload      TEXT
) STRICT;

-- What is owed. Small rows: claiming, renewing and completing touch this table and not the alarms.
CREATE TABLE occurrences (
  owner         TEXT    NOT NULL,
  alarm_id      TEXT    NOT NULL,
  fire_id       TEXT    NOT NULL,
  source        TEXT    NOT NULL CHECK (source IN ('schedule', 'trigger')),
  scheduled_for INTEGER NOT NULL,
  nominal       INTEGER NOT NULL,
  due_at        INTEGER,
  attempt       INTEGER NOT NULL CHECK (attempt >= 0),
  missed_count  INTEGER NOT NULL CHECK (missed_count >= 0),
  fence         INTEGER NOT NULL CHECK (fence >= 0),
  lease_until   INTEGER,
  claimed_at    INTEGER,
  PRIMARY KEY (owner, alarm_id, fire_id),
  FOREIGN KEY (owner, alarm_id) REFERENCES alarms (owner, id),
  CHECK ((lease_until IS NULL) = (claimed_at IS NULL))
) STRICT, WITHOUT ROWID;

-- What may be claimed, by owner in the order of falling due.
CREATE INDEX occurrences_free ON occurrences (owner, due_at) WHERE due_at IS NOT NULL AND lease_until IS NULL;

-- What somebody holds: as many entries as there are deliveries under way.
CREATE INDEX occurrences_leased ON occurrences (lease_until) WHERE lease_until IS NOT NULL;

-- What follows from the rows above and would take too long to find out each time.
-- open_alarms: how many alarms are active or paused, so that a create costs the same for an owner who has ten thousand.
-- next_due: the first entry in occurrences_free (NULL: none), so that a claim costs the same whatever the backlog of any one
-- owner: it walks owners in the order of what they are owed first, and passes one who has enough in flight in one step.
CREATE TABLE owners (
  owner       TEXT    PRIMARY KEY,
  open_alarms INTEGER NOT NULL CHECK (open_alarms >= 0),
  next_due    INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX owners_queue ON owners (next_due) WHERE next_due IS NOT NULL;

-- The ledger: one row per attempt, in the order in which it is read back.
CREATE TABLE fire_attempts (
  owner         TEXT    NOT NULL,
  alarm_id      TEXT    NOT NULL,
  started_at    INTEGER NOT NULL,
  fire_id       TEXT    NOT NULL,
  attempt       INTEGER NOT NULL CHECK (attempt >= 1),
  scheduled_for INTEGER NOT NULL,
  finished_at   INTEGER NOT NULL,
  outcome       TEXT    NOT NULL CHECK (outcome IN ('delivered', 'failed', 'unknown', 'missed')),
  http_status   INTEGER,
  error         TEXT,
  missed_count  INTEGER NOT NULL,
  PRIMARY KEY (owner, alarm_id, started_at, fire_id, attempt),
  FOREIGN KEY (owner, alarm_id) REFERENCES alarms (owner, id)
) STRICT, WITHOUT ROWID;
