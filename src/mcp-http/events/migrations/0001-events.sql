-- Clients that use events. Each belongs to one user, and its grant is checked before each delivery.
CREATE TABLE principals (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  issuer    TEXT NOT NULL,
  subject   TEXT NOT NULL,
  client_id TEXT NOT NULL,
  user_id   TEXT NOT NULL,
  -- JSON: the name of the client, its scopes and the claims of its token.
  details   TEXT NOT NULL,
  UNIQUE (issuer, subject, client_id)
) STRICT;
CREATE INDEX principals_of_user ON principals (user_id);

-- The sequence numbers of a user's events. Events up to the floor were removed.
CREATE TABLE logs (
  user_id  TEXT PRIMARY KEY,
  last_seq INTEGER NOT NULL,
  floor    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- A row that records a gap is named after its source.
CREATE TABLE events (
  user_id   TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  event_id  TEXT NOT NULL,
  name      TEXT NOT NULL,
  at        INTEGER NOT NULL,
  stored_at INTEGER NOT NULL,
  -- JSON: the members by which subscriptions select.
  facts     TEXT NOT NULL,
  -- JSON: the delivered data.
  data      TEXT NOT NULL,
  PRIMARY KEY (user_id, seq),
  UNIQUE (user_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_age ON events (stored_at);

-- The position up to which each stream of a daemon was read.
CREATE TABLE sources (
  user_id TEXT NOT NULL,
  source  TEXT NOT NULL,
  cursor  TEXT NOT NULL,
  PRIMARY KEY (user_id, source)
) STRICT, WITHOUT ROWID;

-- Clients that read by poll or by stream, with their last request.
CREATE TABLE readers (
  principal INTEGER NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  name      TEXT NOT NULL,
  arguments TEXT NOT NULL,
  seen_at   INTEGER NOT NULL,
  PRIMARY KEY (principal, name, arguments)
) STRICT, WITHOUT ROWID;

CREATE TABLE subscriptions (
  id               TEXT PRIMARY KEY,
  principal        INTEGER NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  name             TEXT NOT NULL,
  arguments        TEXT NOT NULL,
  url              TEXT NOT NULL,
  -- Sealed.
  secret           TEXT NOT NULL,
  old_secret       TEXT,
  old_until        INTEGER,
  created_at       INTEGER NOT NULL,
  -- NULL: no expiry.
  expires_at       INTEGER,
  -- Every event up to it was acknowledged or abandoned.
  position         INTEGER NOT NULL,
  failures         INTEGER NOT NULL DEFAULT 0,
  failed_since     INTEGER,
  last_delivery_at INTEGER,
  last_error       TEXT,
  -- NULL while it is active.
  ended_at         INTEGER,
  end_reason       TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_of_principal ON subscriptions (principal, ended_at);

-- Callbacks that have answered a challenge.
CREATE TABLE verified (
  principal INTEGER NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  url       TEXT NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (principal, url)
) STRICT, WITHOUT ROWID;

-- Distinguishes the cursors of this database from those of an earlier one.
CREATE TABLE epoch (value TEXT NOT NULL) STRICT;
INSERT INTO epoch VALUES (lower(hex(randomblob(4))));
